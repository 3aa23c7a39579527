// Results to test reports with.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>

#include "bench/results.hpp"

namespace weir::bench {

/// A valid trial that lost `loss` of a million packets, in the kernel; with a `why` an invalid one.
inline TrialRecord some_trial(double gbps, double loss, std::string why = {}) {
    TrialRecord trial;
    trial.intended_gbps = gbps;
    trial.sender.intended = trial.sender.offered = trial.sender.handed_over = 1'000'000;
    trial.sender.planned_s = trial.sender.took_s = 1;
    trial.lost.kernel = static_cast<std::uint64_t>(loss * 1e6);
    trial.receiver.taken = trial.receiver.received = 1'000'000 - trial.lost.kernel;
    trial.valid = why.empty();
    trial.loss_ratio = trial.valid ? loss : 0;
    trial.why = std::move(why);
    return trial;
}

/// A search that found `gbps`, or nothing.
inline Point some_point(std::uint32_t bytes, std::optional<double> gbps, std::uint32_t repeat = 0) {
    Point point;
    point.transport = "udp-socket";
    point.sender = "sendmmsg";
    point.depth = "receive";
    point.bytes = bytes;
    point.goal = "ndr";
    point.repeat = repeat;
    point.conditional_gbps = point.lower_gbps = gbps;
    if (!gbps) {
        point.irregular = "there was loss at every load";
        return point;
    }
    point.upper_gbps = *gbps * 1.005;
    point.sender_cpu_s_per_gb = 0.4;
    point.receiver_cpu_s_per_gb = 0.7;
    point.latency = Latency{12e-6, 88e-6, 240e-6, 1.5e-3};
    point.trials = {some_trial(*gbps, 0), some_trial(*gbps * 1.005, 0.002), some_trial(*gbps * 2, 0.4)};
    return point;
}

inline Point not_available_point(std::uint32_t bytes, std::string why) {
    Point point = some_point(bytes, std::nullopt);
    point.irregular.clear();
    point.not_available = std::move(why);
    return point;
}

inline Results some_results(std::initializer_list<double> rates, std::uint32_t bytes = 8240) {
    Results results;
    results.title = "a benchmark";
    results.started = "2026-11-23T20:00:00Z";
    results.command = "weir bench --repeats 5";
    results.link = "two network namespaces of one machine";
    for (const char* role : {"sender", "receiver"}) {
        HostFacts host;
        host.role = role;
        host.name = "readout1";
        host.cpu = "AMD EPYC 7543";
        host.cpus = 64;
        host.kernel = "6.1.0-23-amd64";
        host.interface = "mlx5_core, 100 Gb/s, MTU 9000";
        results.hosts.push_back(host);
    }
    std::uint32_t repeat = 0;
    for (const double rate : rates) results.points.push_back(some_point(bytes, rate, repeat++));
    return results;
}

inline std::size_t longest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
}

}  // namespace weir::bench
