#include "bench/transports.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using weir::bench::fit;
using weir::bench::ReceiverSpec;
using weir::bench::require_fit;
using weir::bench::sender_for;
using weir::bench::sender_kinds;
using weir::bench::sender_named;
using weir::bench::SenderKind;
using weir::bench::transport_named;
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
        for (const char* sender : {"sendmmsg", "gso", "af-packet", "verbs"}) {
            EXPECT_EQ(sender_for(transport_named(name), sender_named(sender)).name, "verbs");
            EXPECT_TRUE(fit(transport_named(name), sender_named(sender)));
        }
        EXPECT_FALSE(fit(transport_named(name), sender_named("weir")));
    }
    for (const char* name : {"udp-socket", "packet-mmap", "dpdk-udp", "dpdk-roce-send", "verbs-raw"}) {
        EXPECT_EQ(sender_for(transport_named(name), sender_named("sendmmsg")).name, "sendmmsg");
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
    EXPECT_THROW((void)sender_named("verbs").open({"127.0.0.1", 4791}), RunError);
}

TEST(Transports, TheTableSaysOfASenderWhatItSaysOfItself) {
    for (const char* name : {"sendmmsg", "gso"}) {
        const SenderKind& kind = sender_named(name);
        EXPECT_EQ(kind.open({"127.0.0.1", 9})->joins_packets(), kind.joins) << name;
    }
}

}  // namespace
