// Looks at a host for a run: reads, asks, measures, and judges. What `weir doctor` does, and, as far as it is quick,
// every run before it starts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/check.hpp"
#include "doctor/host_facts.hpp"
#include "stages/rx/stream_runtime.hpp"

namespace weir::doctor {

struct ExamineOptions {
    std::filesystem::path root = "/";  ///< of a recorded machine
    Load load{};
    bool passive = false;           ///< no device is opened, nothing is written
    double watch_s = 2;             ///< for packets that flow rules are for
    std::vector<std::string> only;  ///< checks by name; empty: all
};

class Examination {
public:
    /// `config`: null where there is none yet. It outlives this. Throws core::UsageError where the configuration cannot
    /// be planned.
    Examination(const config::RunConfig* config, ExamineOptions options);

    /// As the host is now. Can be repeated, after something was mended.
    [[nodiscard]] std::vector<Finding> look();
    /// What the last look found, before it was judged.
    [[nodiscard]] const HostFacts& host() const noexcept { return host_; }
    /// What it was judged for; without a configuration all null.
    [[nodiscard]] const PlannedRun& run() const noexcept { return run_; }

private:
    [[nodiscard]] bool wants(Needs needs) const;
    void make_plan();
    void ask_devices();
    [[nodiscard]] Load load() const;

    const config::RunConfig* config_;
    ExamineOptions options_;
    std::vector<stages::StreamRuntime> streams_;
    std::vector<stages::SourceGeometry> geometry_;
    std::vector<std::uint32_t> header_bytes_;
    plan::Plan plan_;
    PlannedRun run_;
    HostFacts host_;
};

/// Errors that a run must not start with, as far as they can be seen in a few milliseconds and are certain.
[[nodiscard]] std::vector<Finding> reasons_not_to_start(const config::RunConfig& config,
                                                        const std::vector<stages::StreamRuntime>& streams,
                                                        const std::vector<stages::SourceGeometry>& geometry,
                                                        const plan::Plan& plan);

}  // namespace weir::doctor
