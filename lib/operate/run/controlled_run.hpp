// A run as whoever starts and ends it sees it: that of a pipeline (Session), or of a node that only manages a cluster
// (ManagerSession).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/bottleneck.hpp"

namespace weir::observe {
class RunObserver;
}  // namespace weir::observe

namespace weir::pipeline {
class RunPorts;
}  // namespace weir::pipeline

namespace weir::run {

/// On the control thread.
class ControlledRun {
public:
    struct Result {
        int status = 0;       ///< as that of the program: 0, 1 or 3
        std::string failure;  ///< why the run failed; empty if it did not
        nlohmann::json report;
        std::uint64_t lost_packets = 0;     ///< that weir had and that are in no event
        std::uint64_t missing_packets = 0;  ///< that events miss; what came too late is in both
    };

    ControlledRun() = default;
    virtual ~ControlledRun() = default;
    ControlledRun(const ControlledRun&) = delete;
    ControlledRun& operator=(const ControlledRun&) = delete;

    // In this order:

    /// What users err in most, so before anything takes time. Throws core::UsageError or core::RunError. Waits for
    /// those whom sinks send events to, as long as the configuration says and `is_given_up` does not.
    virtual void open(const std::function<bool()>& is_given_up) = 0;
    /// `ports`: devices that are up already; null: the run starts its own. `observers` are told in their order; those
    /// that are null are left out. Ports and observers outlive the run. Throws core::UsageError or core::RunError.
    virtual void make(pipeline::RunPorts* ports, const std::vector<observe::RunObserver*>& observers) = 0;
    /// Packets count from here on. Throws core::RunError.
    virtual void start() = 0;
    /// One turn, every few milliseconds; false: everything has ended.
    [[nodiscard]] virtual bool turn() = 0;
    /// Takes no more input; what is under way is finished, in further turns. The first reason counts.
    virtual void stop(const std::string& reason) = 0;
    /// The same without waiting for anybody.
    virtual void abort() = 0;
    /// Draws up the account and closes what was opened.
    [[nodiscard]] virtual Result finish() = 0;

    [[nodiscard]] virtual bool is_stopping() const noexcept = 0;
    [[nodiscard]] virtual const std::string& stop_reason() const noexcept = 0;
    /// Nothing: it was given none, and no path has {run}.
    [[nodiscard]] virtual std::optional<std::uint32_t> number() const noexcept = 0;
    /// What it writes now, and what that is called once the run is over.
    [[nodiscard]] virtual std::vector<std::filesystem::path> paths() const = 0;
    [[nodiscard]] virtual std::vector<std::filesystem::path> final_paths() const = 0;
    /// What the flight recorder has is saved: what will be done, or why nothing.
    [[nodiscard]] virtual std::string save_recording() = 0;
    /// The account so far, as `--progress json` has it.
    [[nodiscard]] virtual nlohmann::json account() = 0;
    /// A sentence for people, which is in the report, too.
    virtual void warn(const std::string& text) = 0;
    /// How it goes, on one line; rates are since the last call.
    [[nodiscard]] virtual std::string line() = 0;
    [[nodiscard]] virtual std::vector<pipeline::Usage::Lcore> lcores() = 0;
};

}  // namespace weir::run
