#include "bench/results.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace {

using weir::bench::Results;

Results some_results() {
    Results results;
    results.title = "t";
    results.started = "2026-01-01T00:00:00Z";
    results.command = "weir bench";
    results.link = "a to b";
    results.hosts.resize(2);
    results.hosts[0].role = "sender";
    results.hosts[0].remarks = {"noisy"};
    results.hosts[1].memory_bytes = 1ULL << 40;
    weir::bench::Point point;
    point.transport = "udp-socket";
    point.bytes = 8240;
    point.sources = 3;
    point.lower_gbps = 1.5;
    point.conditional_gbps = 1.4999;
    point.irregular = "no more could be offered";
    point.remarks = "no SCHED_FIFO";
    point.latency = weir::bench::Latency{1e-6, 2e-6, 3e-6, 4e-6};
    weir::bench::TrialRecord trial;
    trial.sender.ramp = 4;
    trial.receiver.ramp = 3;
    trial.sender.intended = 10;
    trial.sender.on_wire = 9;
    trial.sender.cpu_s = 0.25;
    trial.receiver.cpu_s = 0.75;
    trial.receiver.taken = 8;
    trial.receiver.settled = false;
    trial.receiver.kernel_dropped = 3;
    trial.receiver.assembled = 2;
    trial.lost.kernel = 3;
    trial.loss_ratio = 1e-7;
    trial.valid = true;
    point.trials = {trial, weir::bench::TrialRecord{}};
    point.trials[1].why = "late";
    point.bursts = {.packets = {7, 9}, .reached_most = true, .implied_s = 0.5, .corrected_s = 0.25, .trials = {trial}};
    results.points = {point, weir::bench::Point{}};
    results.points[1].not_available = "needs root";
    return results;
}

TEST(Results, ComeBackFromJsonAsTheyWere) {
    const nlohmann::json json = to_json(some_results());
    EXPECT_EQ(to_json(weir::bench::results_from_json(json)), json);
    EXPECT_EQ(json["results"][0]["trials"][0]["on_wire"], 9);
    EXPECT_EQ(json["results"][0]["trials"][0]["ramp"], 4);
    EXPECT_EQ(json["results"][0]["trials"][0]["ramp_received"], 3);
    EXPECT_EQ(json["results"][0]["bursts"]["corrected_s"], 0.25);
    EXPECT_EQ(json["results"][0]["bursts"]["trials"].size(), 1U);
    EXPECT_TRUE(json["results"][1]["bursts"].is_null());
    EXPECT_TRUE(json["results"][0]["trials"][1]["on_wire"].is_null());
    EXPECT_TRUE(json["results"][1]["lower_gbps"].is_null());
    EXPECT_EQ(json["results"][0]["cpu_s_per_gb"]["sender"], nullptr);
}

TEST(Results, WhatIsNoneIsRefused) {
    using weir::bench::results_from_json;
    EXPECT_THROW((void)results_from_json(nlohmann::json::object()), weir::core::RunError);
    nlohmann::json json = to_json(some_results());
    json["version"] = 99;
    EXPECT_THROW((void)results_from_json(json), weir::core::RunError);
    json = to_json(some_results());
    json["results"][0]["trials"][0].erase("sent");
    EXPECT_THROW((void)results_from_json(json), weir::core::RunError);
    EXPECT_THROW((void)weir::bench::read_results("/nowhere/x.json"), weir::core::RunError);
}

}  // namespace
