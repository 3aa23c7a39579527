// What is decided before a run starts: from a checked configuration, the streams, the plan, and what is asked of the
// machine. Good for one run, or for all that follow each other with the same configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "port/eal.hpp"
#include "run/privileges.hpp"
#include "run/run.hpp"
#include "stages/pedestal_setup.hpp"
#include "stages/reduce_setup.hpp"

namespace weir::run {

class Preparation {
public:
    /// Makes the plan. Throws core::UsageError or core::RunError.
    explicit Preparation(RunOptions options);
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

    /// The effective configuration, and as comments what is planned with it.
    void print() const;
    /// Memory, and what the host does with packets. Throws core::RunError where data would surely be lost.
    void check_machine() const;
    /// Devices that DPDK would say nothing clear of. Throws core::RunError.
    void check_devices() const;
    /// Reads the files that reducers need. Again before each further run: they may be new ones. Throws
    /// core::UsageError or core::RunError.
    void load();
    [[nodiscard]] port::EalConfig eal() const;
    /// What is needed once devices are up, for a process that writes to `folders`. EAL runs.
    [[nodiscard]] std::vector<KeptPrivilege> kept_privileges(std::span<const std::filesystem::path> folders) const;

    [[nodiscard]] bool is_replay() const noexcept { return options_.capture.has_value(); }
    /// A builder of a cluster, whose input is what other nodes send.
    [[nodiscard]] bool is_builder() const noexcept {
        return options_.cluster && options_.cluster->self().role == config::NodeRole::builder;
    }
    /// Packets come from devices.
    [[nodiscard]] bool is_live() const noexcept { return !is_replay() && !is_builder(); }
    [[nodiscard]] const RunOptions& options() const noexcept { return options_; }
    /// When a run is to end may be different for the next one.
    [[nodiscard]] RunOptions& options() noexcept { return options_; }
    [[nodiscard]] const plan::Plan& plan() const noexcept { return plan_; }
    [[nodiscard]] const std::vector<stages::StreamRuntime>& streams() const noexcept { return streams_; }
    [[nodiscard]] const std::vector<stages::SourceGeometry>& geometry() const noexcept { return geometry_; }
    [[nodiscard]] const std::shared_ptr<stages::ReduceSetup>& reduce() const noexcept { return reduce_; }
    /// Null: none are followed. New with each load().
    [[nodiscard]] const std::shared_ptr<stages::PedestalSetup>& pedestals() const noexcept { return pedestals_; }

private:
    void add_reduce_memory();

    RunOptions options_;
    std::vector<stages::StreamRuntime> streams_;
    std::vector<stages::SourceGeometry> geometry_;
    std::shared_ptr<stages::ReduceSetup> reduce_;
    std::shared_ptr<stages::PedestalSetup> pedestals_;
    plan::PlanInput input_;
    plan::Plan plan_;
};

}  // namespace weir::run
