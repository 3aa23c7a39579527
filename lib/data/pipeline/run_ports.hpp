// The devices of live input with the buffers that they fill: a run's own, or kept between runs, so that the next one
// finds them up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_config.hpp"
#include "pipeline/run_pools.hpp"
#include "plan/plan.hpp"
#include "port/live_port.hpp"
#include "stages/built_in_device.hpp"

namespace weir::pipeline {

class RunPorts {
public:
    using Ports = std::vector<std::unique_ptr<port::LivePort>>;
    using BuiltInDevices = std::vector<std::unique_ptr<stages::BuiltInDevice>>;

    /// Makes the buffers. EAL runs. `make_built_in`: for ports whose device weir makes itself. Throws core::RunError
    /// when there is not enough memory.
    RunPorts(const config::RunConfig& config, const plan::Plan& plan, stages::MakeBuiltInDevice make_built_in);

    /// Starts the devices, unless that has been done. Throws core::RunError or core::UsageError.
    void open();
    /// Before the lcores start: what ports have taken so far is of no run.
    void begin();
    /// Between runs, many times a second: answers who asks for the ports, and forgets what comes.
    void idle() noexcept;

    [[nodiscard]] RunPools& pools() noexcept { return pools_; }
    [[nodiscard]] const RunPools& pools() const noexcept { return pools_; }
    [[nodiscard]] const Ports& ports() const noexcept { return ports_; }
    [[nodiscard]] const BuiltInDevices& built_in() const noexcept { return built_in_; }

private:
    void open_port(std::uint32_t index);
    void make_built_in(std::uint32_t index, port::LivePortConfig& live);

    config::RunConfig config_;  ///< of its own: it may outlive the run
    plan::Plan plan_;
    std::vector<std::uint16_t> owners_;
    RunPools pools_;
    stages::MakeBuiltInDevice make_;
    BuiltInDevices built_in_;
    Ports ports_;
    bool open_ = false;
};

}  // namespace weir::pipeline
