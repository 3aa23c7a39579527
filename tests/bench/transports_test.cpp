#include "bench/transports.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using weir::bench::fit;
using weir::bench::require_fit;
using weir::bench::sender_kinds;
using weir::bench::sender_named;
using weir::bench::SenderKind;
using weir::bench::transport_named;
using weir::core::UsageError;

TEST(Transports, FramesThatAreJoinedAreForTheKernelsUdpOnly) {
    for (const char* name : {"udp-socket", "udp-tuned", "udp-iouring"})
        EXPECT_NO_THROW(require_fit(transport_named(name), sender_named("gso")));
    for (const char* name : {"packet-mmap", "af-xdp", "dpdk-udp"}) {
        EXPECT_FALSE(fit(transport_named(name), sender_named("gso")));
        EXPECT_TRUE(fit(transport_named(name), sender_named("sendmmsg")));
        EXPECT_TRUE(fit(transport_named(name), sender_named("af-packet")));
    }
    try {
        require_fit(transport_named("packet-mmap"), sender_named("gso"));
        FAIL();
    } catch (const UsageError& error) {
        EXPECT_STREQ(error.what(), "packet-mmap sees what gso joins as one frame: use another sender");
    }
}

TEST(Transports, TheTableSaysOfASenderWhatItSaysOfItself) {
    for (const char* name : {"sendmmsg", "gso"}) {
        const SenderKind& kind = sender_named(name);
        EXPECT_EQ(kind.open({.to = {"127.0.0.1", 9}, .frames = {}, .device = {}, .own_address = {}})->joins_packets(),
                  kind.joins)
            << name;
    }
}

}  // namespace
