// Where the packets of a run come from: live ports, some of devices that weir makes itself, or a capture.
// What they are made of is in RunPorts, which may outlive the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/run_ports.hpp"
#include "pipeline/run_rings.hpp"
#include "plan/plan.hpp"
#include "stages/capture_feeder.hpp"
#include "stages/rx/rx_stage.hpp"

namespace weir::pipeline {

class RunInputs {
public:
    using Ports = RunPorts::Ports;
    using BuiltInDevices = RunPorts::BuiltInDevices;

    /// `capture`: replay instead of live ports. `blocks`: a builder of a cluster, which has no ports; else null. All
    /// but `capture` outlive this object. Throws core::RunError or core::UsageError.
    RunInputs(const plan::Plan& plan, const std::optional<stages::CaptureFeeder::Config>& capture,
              fabric::BlockQueue* blocks, RunPorts& ports, RunRings& rings);

    /// Tells each rx lcore of the queues that it polls, or the first one of the capture.
    void connect(std::vector<stages::RxStage::Config>& rx) const;
    /// How long an rx lcore may sleep at a time.
    [[nodiscard]] core::TimeNs nap_ns(std::size_t rx) const noexcept;
    /// Before the lcores start: what ports have taken so far is of no run.
    void begin();
    void start(const stages::RunSignals& signals);
    /// A thread of the run could not be had: a capture that has not begun never will.
    void end_unstarted() noexcept;
    /// Keeps the devices' clocks in step; for the control thread, many times a second.
    void look();
    /// Waits for the threads, which RunSignals::stop_input and ::exit end.
    void join();

    /// All ports are of devices that weir makes itself, which have sent everything, and it has been taken.
    [[nodiscard]] bool exhausted() const noexcept;
    [[nodiscard]] const stages::CaptureFeeder* capture() const noexcept { return capture_.get(); }
    /// Null where no capture is looped.
    [[nodiscard]] stages::PassSignals* passes() const noexcept { return passes_.get(); }
    [[nodiscard]] const BuiltInDevices& built_in() const noexcept { return ports_.built_in(); }
    [[nodiscard]] const Ports& ports() const noexcept { return ports_.ports(); }

private:
    void make_capture(const stages::CaptureFeeder::Config& config);

    const plan::Plan& plan_;
    fabric::BlockQueue* blocks_;
    RunPorts& ports_;
    RunRings& rings_;
    std::unique_ptr<stages::PassSignals> passes_;
    std::unique_ptr<stages::CaptureFeeder> capture_;
};

}  // namespace weir::pipeline
