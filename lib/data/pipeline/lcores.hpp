// The lcores of a run. Each polls its stages, turn after turn, until the run is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/run_config.hpp"
#include "pipeline/bottleneck.hpp"
#include "port/live_clock.hpp"
#include "port/live_port.hpp"
#include "stages/stage.hpp"

namespace weir::pipeline {

class Lcores {
public:
    /// `clock`: of live input; null: stages get the system's time. Both outlive the lcores.
    Lcores(std::span<const std::uint32_t> ids, config::IdleMode idle, stages::RunSignals& signals,
           const port::LiveClock* clock);
    Lcores(const Lcores&) = delete;
    Lcores& operator=(const Lcores&) = delete;

    /// Polled after those that the lcore has already. Before start().
    void add(std::uint32_t id, stages::Stage& stage);
    /// How long it sleeps at a time with idle = "sleep". Before start().
    void set_nap(std::uint32_t id, core::TimeNs nap_ns);
    /// Throws core::RunError when an lcore cannot be started; then none runs.
    void start();
    /// Ends their turns and waits for them.
    void join();

    /// What each has done since the start; for any thread.
    [[nodiscard]] std::vector<Usage::Lcore> usage() const;

private:
    /// Written by the lcore.
    struct Pause {
        std::atomic<core::TimeNs> longest_ns{0};
        std::atomic<core::TimeNs> after_ns{0};
    };
    struct Lcore {
        std::uint32_t id = 0;
        std::vector<stages::Stage*> stages;
        config::IdleMode idle = config::IdleMode::pause;
        const stages::RunSignals* signals = nullptr;
        const port::LiveClock* clock = nullptr;
        std::unique_ptr<stages::PollCounts> turns;  ///< of all its stages together
        core::TimeNs nap_ns = 0;
        std::unique_ptr<Pause> pause;
    };
    static int run(void* argument);

    stages::RunSignals& signals_;
    std::vector<Lcore> lcores_;
};

}  // namespace weir::pipeline
