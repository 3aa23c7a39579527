// A server and its client over the loopback interface: what they say to each other. How fast it goes is for live tests.
#include "bench/server.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "bench/measurement.hpp"
#include "core/error.hpp"

namespace {

using weir::bench::Client;
using weir::bench::ControlConnection;
using weir::bench::ControlListener;
using weir::bench::Depth;
using weir::bench::FileDescriptor;
using weir::bench::Measurement;
using weir::bench::Point;
using weir::bench::Server;
using weir::core::RunError;

class ServerTest : public testing::Test {
protected:
    ServerTest() : thread_([this] { serve(); }) {}
    ~ServerTest() override { thread_.join(); }
    std::unique_ptr<ControlConnection> connect() {
        return ControlConnection::connect("127.0.0.1", listener_.port(), 1);
    }
    std::string said() {
        thread_.join();
        thread_ = std::thread([] {});
        return said_;
    }

    std::atomic<bool> stop_{false};

private:
    void serve() {
        Server::Config config;
        config.token = "word";
        config.weir_version = "test";
        Server server(config, [this](const std::string& line) { said_ += line + "\n"; });
        FileDescriptor socket = listener_.accept(20);
        if (!socket) return;
        ControlConnection client(std::move(socket));
        server.serve(client);
    }

    ControlListener listener_{"127.0.0.1", 0};
    std::string said_;
    std::thread thread_;
};

Measurement at(const std::string& transport, const std::string& depth) {
    Measurement one;
    one.transport = transport;
    one.depth = depth;
    one.packets = 8;
    one.bytes = 1000;
    one.at_gbps = 0.001;  // 125 packets/s
    one.at_s = 0.2;
    one.rules = {
        .unsent_ratio = 1, .stretch_ratio = 1000, .stretch_s = 1000, .lag_s = 1000};  // a test machine may stop
    return one;
}

TEST_F(ServerTest, TrialsCountTheSameOnBothSides) {
    Client client(connect(), "word", "test");
    EXPECT_TRUE(client.same_clock());
    EXPECT_EQ(client.server_host().role, "receiver");
    for (const char* depth : {"receive", "assemble"}) {
        const Point point = client.run(
            at("udp-socket", depth), [](const auto&) {}, stop_);
        ASSERT_EQ(point.not_available, "");
        ASSERT_EQ(point.trials.size(), 1U);
        const auto& trial = point.trials[0];
        EXPECT_GT(trial.sender.handed_over, 0U);
        EXPECT_EQ(trial.receiver.received, trial.sender.handed_over);
        EXPECT_EQ(trial.receiver.kernel_dropped, 0U);
        EXPECT_EQ(trial.receiver.assembled.has_value(), std::string(depth) == "assemble");
        if (trial.receiver.assembled) {
            EXPECT_EQ(trial.receiver.assembled, trial.sender.handed_over);
            EXPECT_EQ(trial.receiver.messages, trial.sender.handed_over / 8);
        }
        EXPECT_TRUE(trial.latency.has_value());
        EXPECT_EQ(trial.loss_ratio, 0);
    }
}

TEST_F(ServerTest, WhereTheSenderJoinsPacketsNoInterfaceIsAsked) {
    Client client(connect(), "word", "test");
    Measurement one = at("udp-socket", "receive");
    one.sender = "gso";
    const Point point = client.run(
        one, [](const auto&) {}, stop_);
    ASSERT_EQ(point.trials.size(), 1U);
    const auto& trial = point.trials[0];
    EXPECT_EQ(trial.receiver.received, trial.sender.handed_over);
    EXPECT_FALSE(trial.sender.on_wire.has_value());
    EXPECT_FALSE(trial.receiver.arrived.has_value());
    EXPECT_FALSE(trial.receiver.device_dropped.has_value());
}

/// Both sides, and the sender that nobody named.
TEST_F(ServerTest, WithoutAnRdmaDeviceItsTransportsAreNotAvailable) {
    Client client(connect(), "word", "test");
    for (const char* name : {"verbs-send", "verbs-write", "verbs-raw"}) {
        Measurement one = at(name, "receive");
        one.bytes = 8240;
        one.sender = usual_sender(transport_named(name), Depth::receive);
        const Point point = client.run(
            one, [](const auto&) {}, stop_);
        EXPECT_NE(point.not_available, "") << name;
    }
}

TEST_F(ServerTest, AnAnswerThatNobodyAskedForIsRefused) {
    const auto raw = connect();
    raw->send({{"type", "hello"}, {"version", weir::bench::protocol_version}, {"token", "word"}});
    (void)raw->receive("welcome", 5);
    raw->send({{"type", "connect"}, {"answer", nullptr}});
    EXPECT_THROW((void)raw->receive(5), RunError);
}

TEST_F(ServerTest, AReceiverOfFramesIsNotMeasuredWithJoinedOnes) {
    Client client(connect(), "word", "test");
    Measurement one = at("packet-mmap", "receive");
    one.sender = "gso";
    EXPECT_THROW((void)client.run(
                     one, [](const auto&) {}, stop_),
                 weir::core::UsageError);
}

TEST_F(ServerTest, WhatTheServerCannotReceiveIsNotAvailable) {
    Client client(connect(), "word", "test");
    const auto why = [&](Measurement one) {
        return client
            .run(
                one, [](const auto&) {}, stop_)
            .not_available;
    };
    EXPECT_EQ(why(at("dpdk-roce-write-rc", "receive")), "a reliable connection has to be answered: depth assemble");
    Measurement large = at("dpdk-roce-send", "receive");
    large.sender = "dpdk";
    large.bytes = 8240;
    EXPECT_EQ(why(large), "a RoCE packet carries at most 4096 bytes, not 8240");
    large.sender = "sendmmsg";
    EXPECT_THROW((void)why(large), weir::core::UsageError);
}

/// A server whose only link is a device: nothing of the kernel's goes there.
TEST(DeviceServer, TransportsOfTheKernelAreNotAvailable) {
    ControlListener listener("127.0.0.1", 0);
    std::thread thread([&listener] {
        Server::Config config;
        config.device = "net_memif0,role=server";
        config.address = "10.99.0.2";
        ControlConnection client(listener.accept(20));
        Server(config, [](const std::string&) {}).serve(client);
    });
    {
        Client client(ControlConnection::connect("127.0.0.1", listener.port(), 1), "", "test");
        const std::atomic<bool> stop{false};
        const Point point = client.run(
            at("udp-tuned", "receive"), [](const auto&) {}, stop);
        EXPECT_EQ(point.not_available, "udp-tuned needs a network of the kernel's, and does not go over net_memif");
    }
    thread.join();
}

TEST_F(ServerTest, AStrangerIsSentAway) {
    try {
        Client client(connect(), "another word", "test");
        FAIL();
    } catch (const RunError& error) {
        EXPECT_STREQ(error.what(), "the token is not the one that this server was started with");
    }
    EXPECT_NE(said().find("the token is not the one"), std::string::npos);
}

TEST_F(ServerTest, AnAddressOfSomebodyElseIsRefused) {
    Client client(connect(), "word", "test");
    Measurement one = at("udp-socket", "receive");
    one.address = "192.0.2.1";
    try {
        (void)client.run(
            one, [](const auto&) {}, stop_);
        FAIL();
    } catch (const RunError& error) {
        EXPECT_STREQ(error.what(), "192.0.2.1 is no address of this host: nothing will be sent there");
    }
}

TEST_F(ServerTest, AStoppedClientEndsAndTheServerGoesOn) {
    stop_ = true;
    Client client(connect(), "word", "test");
    EXPECT_THROW((void)client.run(
                     at("udp-socket", "receive"), [](const auto&) {}, stop_),
                 RunError);
}

TEST_F(ServerTest, MessagesThatCannotBeReadAreAnswered) {
    const auto raw = connect();
    raw->send({{"type", "hello"}, {"version", weir::bench::protocol_version}, {"token", "word"}});
    (void)raw->receive("welcome", 5);
    raw->send({{"type", "begin"}});
    EXPECT_THROW((void)raw->receive(5), RunError);
}

TEST_F(ServerTest, AnotherVersionIsSaid) {
    const auto raw = connect();
    raw->send({{"type", "hello"}, {"version", 99}, {"token", "word"}});
    EXPECT_THROW((void)raw->receive(5), RunError);
}

}  // namespace
