// What is measured as a whole: `weir run` as the receiver, `weir send` as the sender, each a process of its own for
// each trial. Their reports are the counts.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "bench/child_process.hpp"
#include "bench/faulty_sender.hpp"
#include "bench/interface_counters.hpp"
#include "bench/receiver.hpp"
#include "bench/receiving.hpp"
#include "bench/sender.hpp"

namespace weir::bench {

/// How a stream comes to weir.
struct PipelineKind {
    std::string_view transport;  ///< of `weir send`: "udp", "roce-send", "roce-write"
    std::string_view service;    ///< RoCE: "uc", "rc"
};

/// Bytes of an IP packet beside its payload, at most.
[[nodiscard]] std::uint32_t pipeline_headers(const PipelineKind& kind);
/// Why packets with so many bytes of payload are impossible; empty if they are not.
[[nodiscard]] std::string pipeline_problem(const PipelineKind& kind, std::uint32_t bytes);

/// A folder of its own, which is gone with its owner.
class ScratchFolder {
public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
    std::string path_;
};

/// A `weir run` that takes the packets of one trial.
class PipelineReceiving {
public:
    /// Waits until it takes packets. Throws core::RunError with what it said.
    PipelineReceiving(const PipelineKind& kind, const ReceiverSpec& spec, const TrialSpec& trial);
    /// Waits until nothing can be on its way, ends the run and reads its report.
    [[nodiscard]] Receiving::Outcome end();

private:
    ScratchFolder folder_;
    ReceiverSpec spec_;
    TrialSpec trial_;
    std::optional<InterfaceCounters> before_;
    ChildProcess run_;
    double cpu_before_s_ = 0;
};

/// What `weir run` is told to do.
[[nodiscard]] std::string pipeline_config(const PipelineKind& kind, const ReceiverSpec& spec, const TrialSpec& trial,
                                          const std::string& out);
/// The counts of a report of `weir run`.
[[nodiscard]] ReceiverCounts counts_of_run(const nlohmann::json& report, const TrialSpec& trial);

/// A `weir send` for one trial; it has no ramp. `device`: as in `--to device:`.
[[nodiscard]] SenderCounts send_by_weir(const PipelineKind& kind, const PacketPlan& plan, const Load& load,
                                        const std::string& device, const Endpoint& to, const SenderFaults& faults,
                                        const StopSigns& stop);
/// The most packets/s that it sends.
[[nodiscard]] double ceiling_of_weir(const PipelineKind& kind, const PacketPlan& plan, double seconds,
                                     const std::string& device, const Endpoint& to, const StopSigns& stop);

}  // namespace weir::bench
