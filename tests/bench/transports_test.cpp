#include "bench/transports.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using weir::bench::Depth;
using weir::bench::depth_problem;
using weir::bench::fit;
using weir::bench::require_fit;
using weir::bench::sender_kinds;
using weir::bench::sender_named;
using weir::bench::SenderKind;
using weir::bench::Transport;
using weir::bench::transport_named;
using weir::bench::usual_sender;
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
        EXPECT_EQ(kind.open({.to = {"127.0.0.1", 9}})->joins_packets(), kind.joins) << name;
    }
}

TEST(Transports, RoceFramesAreForSendersThatMakeThem) {
    for (const char* name : {"dpdk-roce-send", "dpdk-roce-write"}) {
        EXPECT_EQ(usual_sender(transport_named(name), Depth::receive), "dpdk");
        EXPECT_EQ(usual_sender(transport_named(name), Depth::assemble), "sendmmsg");
        EXPECT_TRUE(fit(transport_named(name), sender_named("dpdk"), Depth::receive));
        EXPECT_TRUE(fit(transport_named(name), sender_named("sendmmsg"), Depth::assemble));
    }
    EXPECT_EQ(usual_sender(transport_named("dpdk-udp"), Depth::receive), "sendmmsg");
    try {
        require_fit(transport_named("dpdk-roce-send"), sender_named("af-packet"), Depth::receive);
        FAIL();
    } catch (const UsageError& error) {
        EXPECT_STREQ(
            error.what(),
            "af-packet makes no RoCE frames, which dpdk-roce-send takes at depth receive: use the sender dpdk");
    }
}

TEST(Transports, WhichDepthsThereAre) {
    for (const char* name : {"dpdk-roce-send", "dpdk-roce-write"}) {
        const Transport& roce = transport_named(name);
        for (const Depth depth : {Depth::receive, Depth::assemble, Depth::full})
            EXPECT_EQ(depth_problem(roce, depth), "");
        EXPECT_FALSE(roce.by_pipeline(Depth::receive, false));
        EXPECT_TRUE(roce.by_pipeline(Depth::assemble, false));
    }
    EXPECT_EQ(depth_problem(transport_named("dpdk-roce-write-rc"), Depth::receive),
              "a reliable connection has to be answered: depth assemble");
    EXPECT_EQ(depth_problem(transport_named("packet-mmap"), Depth::full), "packet-mmap has no depth full");
    EXPECT_FALSE(transport_named("dpdk-udp").by_pipeline(Depth::assemble, false));
    EXPECT_TRUE(transport_named("dpdk-udp").by_pipeline(Depth::assemble, true));
}

}  // namespace
