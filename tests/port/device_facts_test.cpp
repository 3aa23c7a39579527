#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "config/device_facts.hpp"
#include "port/device_problem.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"
#include "temporary_directory.hpp"

namespace {

using namespace weir::port;

TEST(DeviceFacts, AreFoundByTheDriverOfADevice) {
    EXPECT_EQ(weir::config::driver_of("net_af_packet0,iface=det0"), "net_af_packet");
    EXPECT_EQ(weir::config::driver_of("net_memif12"), "net_memif");
    EXPECT_EQ(weir::config::driver_of("0000:3b:00.0"), "pci");
    EXPECT_EQ(weir::config::driver_of("sim,format=jungfrau"), "sim");
    EXPECT_EQ(weir::config::device_facts("net_vhost0,iface=/x").loss, weir::config::LossTold::lossless);
    EXPECT_EQ(weir::config::device_facts("net_pcap0").loss, weir::config::LossTold::counted);
    EXPECT_EQ(weir::config::device_facts("net_whatever0").loss, weir::config::LossTold::unknown);
    EXPECT_TRUE(weir::config::device_facts("net_memif0").forgets);
}

TEST(DeviceFacts, GiveFramesRoomWhereNothingIsSaid) {
    EXPECT_EQ(weir::config::with_frame_room("net_memif0", 9000), "net_memif0,bsize=9216");
    EXPECT_EQ(weir::config::with_frame_room("net_memif0,id=1", 1500), "net_memif0,id=1,bsize=2048");
    EXPECT_EQ(weir::config::with_frame_room("net_memif0,bsize=100", 9000), "net_memif0,bsize=100");
    EXPECT_EQ(weir::config::with_frame_room("net_af_packet0,iface=a", 9000),
              "net_af_packet0,iface=a,framesz=16384,blocksz=65536");
    EXPECT_EQ(weir::config::with_frame_room("net_af_packet0,blocksz=4096", 9000), "net_af_packet0,blocksz=4096");
    EXPECT_EQ(weir::config::with_frame_room("net_tap0", 9000), "net_tap0");
}

TEST(DeviceFacts, GiveDevicesTheirQueuesWhereNothingIsSaid) {
    EXPECT_EQ(weir::config::with_queues("net_af_packet0,iface=a", 2), "net_af_packet0,iface=a,qpairs=2");
    EXPECT_EQ(weir::config::with_queues("net_af_packet0,iface=a,qpairs=1", 2),
              "net_af_packet0,iface=a,qpairs=1");  // an error, later
    EXPECT_EQ(weir::config::with_queues("net_af_packet0,iface=a", 1), "net_af_packet0,iface=a");
    EXPECT_EQ(weir::config::with_queues("net_af_xdp0,iface=a", 4), "net_af_xdp0,iface=a,queue_count=4");
    EXPECT_EQ(weir::config::with_queues("net_vhost0,iface=/x", 2), "net_vhost0,iface=/x,queues=2");
    EXPECT_EQ(weir::config::with_queues("net_virtio_user0,path=/x", 2), "net_virtio_user0,path=/x,queues=2");
    for (const char* device : {"net_tap0", "net_memif0", "0000:3b:00.0", "net_whatever0"})
        EXPECT_EQ(weir::config::with_queues(device, 2), device);
}

TEST(DeviceFacts, TellWhichFramesDoNotFit) {
    EXPECT_NE(weir::config::frame_room_problem("net_memif0,bsize=2048", 9000), "");
    EXPECT_EQ(weir::config::frame_room_problem("net_memif0,bsize=2048", 1500), "");
    EXPECT_NE(weir::config::frame_room_problem("net_memif0,bsize=9025", 9000), "");
    EXPECT_EQ(weir::config::frame_room_problem("net_memif0,bsize=9026", 9000), "");
    EXPECT_NE(weir::config::frame_room_problem("net_af_packet0,framesz=2048", 9000), "");
    EXPECT_EQ(weir::config::frame_room_problem("net_af_packet0,framesz=2048", 1500), "");
    EXPECT_NE(weir::config::frame_room_problem("net_af_xdp0,iface=a", 9000), "");
    EXPECT_EQ(weir::config::frame_room_problem("net_af_xdp0,iface=a", 3200), "");
    EXPECT_EQ(weir::config::frame_room_problem("net_vhost0,iface=a", 9000), "");
    // Only whole keys count.
    EXPECT_EQ(weir::config::frame_room_problem("net_memif0,xbsize=1", 9000), "");
    for (const char* device : {"net_memif0", "net_af_packet0,iface=a", "net_memif0,id=3"})
        EXPECT_EQ(weir::config::frame_room_problem(weir::config::with_frame_room(device, 9600), 9600), "") << device;
}

TEST(DeviceFacts, KnowTheArgumentsOfTheKernelDevice) {
    using weir::config::argument_problem;
    EXPECT_EQ(argument_problem("kernel,iface=det0"), "");
    EXPECT_EQ(argument_problem("kernel,iface=det0,ring=4096"), "");
    EXPECT_EQ(argument_problem("kernel,ring=1,iface=det0"), "");
    for (const char* wrong : {"kernel,iface=", "kernel,iface=det0,ring=0", "kernel,iface=det0,ring=4097",
                              "kernel,iface=det0,ring=8x", "kernel,iface=det0,ring=", "kernel,iface=det0,framesz=2048"})
        EXPECT_NE(argument_problem(wrong), "") << wrong;
    EXPECT_EQ(argument_problem("net_af_packet0,framesz=2048"), "");
    EXPECT_EQ(weir::config::kernel_ring_mib("kernel,iface=det0"), 64U);
    EXPECT_EQ(weir::config::kernel_ring_mib("kernel,iface=det0,ring=8"), 8U);
    EXPECT_EQ(interface_of("kernel", "iface=det0,ring=8"), "det0");
    EXPECT_EQ(weir::config::driver_of("kernel,iface=det0"), "kernel");
    EXPECT_EQ(device_name_problem("kernel,iface=det0"), "");
    EXPECT_NE(device_name_problem("lo").find("kernel,iface=lo"), std::string::npos);
    EXPECT_NE(interface_problem("kernel,ring=8").find("iface=NAME"), std::string::npos);
}

TEST(DeviceFacts, KnowTheFilesThatADeviceWouldEmpty) {
    const weir::test::TemporaryDirectory folder;
    const std::string there = (folder / "there.pcap").string();
    const std::string free = (folder / "free.pcap").string();
    std::ofstream(there) << "packets";
    EXPECT_EQ(overwriting_problem("net_pcap0,tx_pcap=" + free), "");
    EXPECT_EQ(overwriting_problem("net_pcap0,rx_pcap=" + there + ",tx_iface=lo"), "");
    EXPECT_EQ(overwriting_problem("net_pcap0,tx_pcap=/dev/null"), "");
    for (const std::string& device : {"net_pcap0,tx_pcap=" + there, "eth_pcap0,tx_pcap=" + there,
                                      "net_pcap0,tx_pcap=" + free + ",tx_pcap=" + there})
        EXPECT_NE(overwriting_problem(device).find("tx_pcap=" + there + ": exists already"), std::string::npos)
            << device;
}

TEST(DeviceFacts, NameTheLibraryOfADriverThatIsNotThere) {
    EXPECT_NE(missing_driver_text("net_nosuch0").find("librte_net_nosuch.so"), std::string::npos);
    EXPECT_NE(missing_driver_text("net_no_such0").find("librte-net-no-such"), std::string::npos);
    EXPECT_EQ(missing_driver_text("0000:3b:00.0"), "");
}

TEST(InterfaceDrops, AreKnownOnlyOfDriversWithAnInterface) {
    const auto dropped = [](const char* driver, const char* args) {
        return InterfaceDrops::find(driver, args).dropped().all;
    };
    EXPECT_FALSE(dropped("net_vhost", "iface=/x").has_value());
    EXPECT_FALSE(InterfaceDrops::find("net_vhost", "iface=/x").applies());
    EXPECT_EQ(dropped("net_tap", "iface=lo"), 0u);
    EXPECT_FALSE(dropped("net_tap", "iface=nosuch0").has_value());
    EXPECT_FALSE(dropped("net_af_xdp", "iface=lo").has_value());     // has no such statistics
    EXPECT_FALSE(dropped("net_af_packet", "iface=lo").has_value());  // no socket: nobody counts its ring
    EXPECT_EQ(dropped("net_pcap", "iface=lo"), 0u);
    EXPECT_EQ(argument("a=1,iface=det0,b=2", "iface"), "det0");
    EXPECT_EQ(argument("xiface=det0", "iface"), "");
}

}  // namespace
