// Destinations and addresses as people write them, and what is said of those that are none.
#include "resend/rewrite_text.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace weir::resend {
namespace {

std::string refusal_of(const std::string& text) {
    try {
        static_cast<void>(parse_rewrite({text}));
    } catch (const core::UsageError& error) {
        return error.what();
    }
    return {};
}

std::string destination_text(const std::string& text) {
    try {
        const Destination to = parse_destination(text);
        return to.is_socket() ? to.host + " " + std::to_string(to.port) : to.device;
    } catch (const core::UsageError&) {
        return "refused";
    }
}

TEST(RewriteText, Destinations) {
    EXPECT_TRUE(is_destination("udp:x"));
    EXPECT_TRUE(is_destination("device:net_null0"));
    for (const char* text : {"+2s", "1700000000", "2026-11-21T13:05:00Z", "udp", "device", ""})
        EXPECT_FALSE(is_destination(text)) << text;
    EXPECT_EQ(destination_text("device:net_null0,copy=1"), "net_null0,copy=1");
    EXPECT_EQ(destination_text("device:0000:3b:00.1"), "0000:3b:00.1");
    EXPECT_EQ(destination_text("udp:10.1.0.2"), "10.1.0.2 0");
    EXPECT_EQ(destination_text("udp:host:50001"), "host 50001");
    EXPECT_EQ(destination_text("udp:fd00::2"), "fd00::2 0");
    EXPECT_EQ(destination_text("udp:[fd00::2]"), "fd00::2 0");
    EXPECT_EQ(destination_text("udp:[fd00::2]:7"), "fd00::2 7");
    for (const char* text : {"udp:", "udp::1x", "udp:host:", "udp:host:0", "udp:host:65536", "udp:[fd00::2",
                             "udp:[fd00::2]7", "udp:[]:7", "device:", "device:,a=b"})
        EXPECT_EQ(destination_text(text), "refused") << text;
}

TEST(RewriteText, EverythingAtOnce) {
    const wire::Rewrite rewrite = parse_rewrite({"dst-mac=02:00:00:00:0a:ff,src-ip=10.0.0.1,dst-ip=fd00::2",
                                                 "dst-ip=10.0.0.2,dst-port=9,dst-port=50001:60001"});
    EXPECT_EQ((*rewrite.dst_mac)[5], 0xff);
    EXPECT_FALSE(rewrite.src_mac.has_value());
    EXPECT_EQ((*rewrite.src_ipv4)[3], 1);
    EXPECT_EQ((*rewrite.dst_ipv4)[3], 2);
    EXPECT_EQ((*rewrite.dst_ipv6)[15], 2);
    EXPECT_EQ(rewrite.port_for(50001), 60001);
    EXPECT_EQ(rewrite.port_for(50002), 9);
}

TEST(RewriteText, WhatIsWrongIsNamed) {
    for (const char* text : {"", "dst-mac", "dst-mac=", "dst-mac=02:00:00:00:00", "dst-mac=02-00-00-00-00-01",
                             "dst-mac=0x:00:00:00:00:01", "dst-ip=10.0.0", "dst-ip=10.0.0.256", "src-ip=host",
                             "dst-port=0", "dst-port=1:0", "dst-port=0:1", "dst-port=1:2:3", "dst-port=70000", "ttl=3",
                             "dst-ip=10.0.0.1,", "dst-ip=10.0.0.1,dst-ip=10.0.0.2", "dst-port=5:6,dst-port=5:7"}) {
        const std::string refusal = refusal_of(text);
        EXPECT_NE(refusal.find("--rewrite"), std::string::npos) << text;
        EXPECT_NE(refusal.find("accepted"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace weir::resend
