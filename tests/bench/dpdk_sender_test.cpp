// The sender and the receiver by DPDK, in two processes that share memory (net_memif): every packet arrives.
#include "bench/dpdk_sender.hpp"
#include "bench/control_listener.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "bench/loopback.hpp"
#include "bench/measurement.hpp"
#include "bench/server.hpp"
#include "core/error.hpp"

namespace {

using weir::bench::Client;
using weir::bench::ControlConnection;
using weir::bench::ControlListener;
using weir::bench::Measurement;
using weir::bench::MemifLoopback;
using weir::bench::open_dpdk_sender;
using weir::bench::Point;
using weir::bench::Server;

/// A server for one client, in a process of its own.
class MemifServer {
public:
    MemifServer() {
        loopback_.start([this] {
            Server::Config config;
            config.device = loopback_.server_device();
            config.address = MemifLoopback::server_address;
            ControlConnection client(listener_.accept(30));
            Server(config, [](const std::string&) {}).serve(client);
        });
    }
    [[nodiscard]] std::unique_ptr<ControlConnection> connect() const {
        return ControlConnection::connect(MemifLoopback::control_address, listener_.port(), 1);
    }
    [[nodiscard]] std::string client_device() const { return loopback_.client_device(); }

private:
    MemifLoopback loopback_;
    ControlListener listener_{MemifLoopback::control_address, 0};
};

Measurement over_memif(const std::string& transport, const std::string& device) {
    Measurement one;
    one.transport = transport;
    one.sender = "dpdk";
    one.device = device;
    one.bytes = 2003;
    one.at_gbps = 0.16;  // 10000 packets/s
    one.at_s = 0.1;
    one.rules = {
        .unsent_ratio = 1, .stretch_ratio = 1000, .stretch_s = 1000, .lag_s = 1000};  // a test machine may stop
    return one;
}

/// One test, because DPDK starts once in a process, and whoever is forked after that has half of it.
TEST(DpdkSender, WhatItSendsIsReceivedOnce) {
    struct Way {
        const char* transport;
        MemifServer server;
    };
    std::array<Way, 3> ways{{{"dpdk-udp", {}}, {"dpdk-roce-send", {}}, {"dpdk-roce-write", {}}}};
    const std::atomic<bool> stop{false};
    for (const Way& way : ways) {
        Client client(way.server.connect(), "", "test");
        for (int again = 0; again < 2; ++again) {  // a device can be had again
            const Point point = client.run(
                over_memif(way.transport, way.server.client_device()), [](const auto&) {}, stop);
            ASSERT_EQ(point.not_available, "");
            EXPECT_NE(point.remarks.find("net_memif lets the sender wait"), std::string::npos);
            const auto& trial = point.trials.at(0);
            EXPECT_GT(trial.sender.handed_over, 0U);
            EXPECT_EQ(trial.sender.on_wire, trial.sender.handed_over) << way.transport;
            EXPECT_EQ(trial.receiver.received, trial.sender.handed_over) << way.transport;
            EXPECT_EQ(trial.receiver.taken, trial.sender.handed_over);
            // On a machine that stands still a trial may leave packets in the device, which come in the next one.
            if (again == 0) {
                EXPECT_EQ(trial.receiver.others, 0U);
            }
        }
    }
    const MemifLoopback nobody;
    EXPECT_THROW(
        (void)open_dpdk_sender(
            {.to = {"10.99.0.2", 19522}, .device = nobody.client_device(), .own_address = "10.99.0.1", .bytes = 1000}),
        weir::core::RunError);
}

}  // namespace
