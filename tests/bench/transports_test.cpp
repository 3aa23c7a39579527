#include "bench/transports.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using weir::bench::Depth;
using weir::bench::depth_problem;
using weir::bench::fit;
using weir::bench::ReceiverSpec;
using weir::bench::require_fit;
using weir::bench::sender_kinds;
using weir::bench::sender_named;
using weir::bench::SenderKind;
using weir::bench::Transport;
using weir::bench::transport_named;
using weir::bench::usual_sender;
using weir::core::RunError;
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

TEST(Transports, RdmaMessagesAreSentByTheirOwnSender) {
    for (const char* name : {"verbs-send", "verbs-write", "verbs-write-rc"}) {
        EXPECT_EQ(usual_sender(transport_named(name), Depth::assemble), "verbs");
        EXPECT_TRUE(fit(transport_named(name), sender_named("verbs")));
        for (const char* sender : {"sendmmsg", "gso", "af-packet", "dpdk", "weir"})
            EXPECT_FALSE(fit(transport_named(name), sender_named(sender))) << sender;
    }
    for (const char* name : {"udp-socket", "packet-mmap", "dpdk-udp", "verbs-raw"}) {
        EXPECT_EQ(usual_sender(transport_named(name), Depth::receive), "sendmmsg");
        EXPECT_FALSE(fit(transport_named(name), sender_named("verbs")));
    }
    EXPECT_TRUE(fit(transport_named("verbs-raw"), sender_named("sendmmsg")));
    EXPECT_FALSE(fit(transport_named("verbs-raw"), sender_named("gso")));
    const auto why = [](const char* transport, const char* sender) -> std::string {
        try {
            require_fit(transport_named(transport), sender_named(sender));
        } catch (const UsageError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(why("verbs-send", "weir"), "verbs-send receives RDMA messages, weir does not: use another sender");
    EXPECT_EQ(why("udp-socket", "verbs"), "verbs sends RDMA messages, udp-socket does not: use another sender");
}

/// No RDMA device can have this address, with or without libibverbs.
TEST(Transports, WhereThereIsNoRdmaDeviceThatIsSaid) {
    ReceiverSpec spec;
    spec.address = "192.0.2.1";  // RFC 5737: of nobody
    spec.bytes = 1000;
    for (const char* name : {"verbs-send", "verbs-write", "verbs-write-rc", "verbs-raw"}) {
        try {
            (void)transport_named(name).open(spec);
            FAIL() << name;
        } catch (const RunError& error) {
            const std::string what = error.what();
            EXPECT_TRUE(what.find("RDMA device") != what.npos || what.find("built without libibverbs") != what.npos)
                << what;
        }
    }
    EXPECT_THROW((void)sender_named("verbs").open({.to = {"127.0.0.1", 4791}}), RunError);
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
