#include "simulate/reading_peer.hpp"

#include <gtest/gtest.h>

namespace weir::simulate {
namespace {

using std::chrono::seconds;

TEST(ReadingPeers, AreWaitedForWhileTheyAreThere) {
    for (const char* device : {"net_memif0,role=client,id=0", "net_virtio_user0,path=/tmp/v.sock"}) {
        bool up = true;
        const auto link = [&up] { return up; };
        EXPECT_TRUE(may_take_more(device, seconds(10), link)) << device;
        EXPECT_TRUE(may_take_more(device, seconds(60), link)) << device;
        EXPECT_FALSE(may_take_more(device, seconds(61), link)) << device;
        up = false;
        EXPECT_TRUE(may_take_more(device, seconds(10), link)) << device;
        EXPECT_FALSE(may_take_more(device, seconds(11), link)) << device;
    }
}

TEST(ReadingPeers, OtherDevicesAreGivenUpSooner) {
    for (const char* device : {"net_af_packet0,iface=det0", "net_tap0", "net_null0", "0000:3b:00.0"}) {
        EXPECT_TRUE(may_take_more(device, seconds(10), [] { return true; })) << device;
        EXPECT_FALSE(may_take_more(device, seconds(11), [] { return true; })) << device;
    }
}

}  // namespace
}  // namespace weir::simulate
