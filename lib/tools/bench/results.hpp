// What a benchmark found, as it is kept, written and read again. Rates in Gb/s are 10^9 bits of UDP payload a second.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/trial_counts.hpp"

namespace weir::bench {

struct TrialRecord {
    double intended_gbps = 0;
    SenderCounts sender;
    ReceiverCounts receiver;
    std::optional<Latency> latency;  ///< where both sides have the same clock
    double seconds = 0;              ///< with waiting and draining
    double loss_ratio = 0;           ///< of a valid trial
    Losses lost;
    bool valid = false;
    std::string why;  ///< why it is not valid
};

/// The longest bursts at full speed of which nothing was lost (RFC 9004).
struct Bursts {
    std::vector<std::uint64_t> packets;  ///< of each repeat; empty: bursts were not asked for
    bool reached_most = false;           ///< nothing was lost of the longest burst that was tried
    double implied_s = 0;                ///< that the receiver's buffers hold, at the sender's full speed
    double corrected_s = 0;              ///< the same, less what was taken out meanwhile
    std::vector<TrialRecord> trials;     ///< a burst each
};

/// One search, or one load (`goal` "at", "max"): a transport, a depth, a size.
struct Point {
    std::string transport;        ///< of the receiver: "udp-socket", "dpdk-udp", ...
    std::string sender;           ///< "sendmmsg", "gso", ...
    std::string depth;            ///< "receive", "assemble", "full"
    std::uint32_t bytes = 0;      ///< of UDP payload in a packet
    std::uint32_t packets = 1;    ///< in a message
    std::uint32_t sources = 1;    ///< that take turns to send a message: one of each is an event
    std::uint32_t addresses = 1;  ///< places in the receiver's memory that payload went to in turn
    std::string goal;
    std::uint32_t repeat = 0;  ///< the n-th time, from 0
    std::optional<double> lower_gbps;
    std::optional<double> upper_gbps;
    std::optional<double> conditional_gbps;
    Bursts bursts;
    std::string irregular;               ///< why there are no two bounds within the goal's width; empty: there are
    std::optional<double> ceiling_gbps;  ///< the most that the sender could offer
    std::optional<double> sender_cpu_s_per_gb;  ///< GB: 10^9 bytes of payload; of the trials at the lower bound
    std::optional<double> receiver_cpu_s_per_gb;
    std::optional<Latency> latency;  ///< of a trial at the lower bound
    std::string remarks;             ///< what the receiver could not have: "no SCHED_FIFO: ..."; empty if nothing
    std::vector<TrialRecord> trials;
    std::string not_available;  ///< why there is nothing else; empty: there is
};

/// What one has to know of a machine to believe its numbers.
struct HostFacts {
    std::string role;  ///< "sender", "receiver"
    std::string name;
    std::string cpu;
    std::uint32_t cpus = 0;
    std::uint64_t memory_bytes = 0;
    std::string kernel;
    std::string system;                ///< of the distribution
    std::string interface;             ///< that the packets go through: driver, speed, MTU
    std::string virtual_by;            ///< hypervisor; empty: none is known
    std::string weir;                  ///< version
    std::vector<std::string> remarks;  ///< what makes numbers worse or less sure: frequency scaling, shared CPUs
};

struct Results {
    std::string title;
    std::string started;  ///< ISO 8601, UTC
    std::string command;
    std::string link;  ///< "two network namespaces of one machine", "10.1.0.1 to 10.1.0.2"
    std::vector<HostFacts> hosts;
    std::vector<Point> points;
};

[[nodiscard]] nlohmann::json to_json(const HostFacts& host);
[[nodiscard]] HostFacts host_from_json(const nlohmann::json& json);  ///< throws nlohmann::json::exception
[[nodiscard]] nlohmann::json to_json(const ReceiverCounts& counts);
[[nodiscard]] ReceiverCounts receiver_counts_from_json(const nlohmann::json& json);  ///< throws the same

/// With the keys of docs/reference/BENCH_JSON.md.
[[nodiscard]] nlohmann::json to_json(const Results& results);
/// Throws core::RunError that says what is wrong with it.
[[nodiscard]] Results results_from_json(const nlohmann::json& json);
/// Throws core::RunError with the path.
[[nodiscard]] Results read_results(const std::string& path);

}  // namespace weir::bench
