// What a pipeline that was put together does: its lcores turn, until they are stopped. See pipeline.hpp.
#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/hot_thread.hpp"
#include "core/tsan.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

TimeNs wall_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * core::ns_per_s + now.tv_nsec;
}

int Pipeline::run_lcore(void* argument) {
    const Lcore& lcore = *static_cast<const Lcore*>(argument);
    core::ordered_after(argument);
    core::hot_thread(true);
    std::uint32_t idle = 0;
    TimeNs now = std::numeric_limits<TimeNs>::min();  // never runs backwards
    while (!lcore.signals->exit.load(std::memory_order_relaxed)) {
        now = std::max(now, lcore.clock != nullptr ? lcore.clock->now() : wall_ns());
        std::size_t work = 0;
        const std::uint64_t begin = ::rte_rdtsc();
        std::uint64_t tsc = begin;
        for (Stage* stage : lcore.stages) work += stage->counted_poll(now, tsc);
        lcore.turns->add(work, Blocked::none, begin, tsc);
        if (work > 0) {
            idle = 0;
            continue;
        }
        if (lcore.idle == IdleMode::spin) continue;
        ++idle;
        if (lcore.idle == IdleMode::pause) {
            // Give the core to whoever shares it, once it is clear that nothing is about to come.
            if (idle < 64)
                ::rte_pause();
            else
                ::sched_yield();
        } else if (idle < 16) {
            ::rte_pause();
        } else {
            const timespec nap{0, 50'000};
            ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
        }
    }
    core::hot_thread(false);
    core::ordered_before(argument);
    return 0;
}

void Pipeline::start() {
    for (Lcore& lcore : lcores_) {
        core::ordered_before(&lcore);
        const int rc = ::rte_eal_remote_launch(&Pipeline::run_lcore, &lcore, lcore.id);
        if (rc == 0) continue;
        // The sinks are not there yet: they end only when all workers have, and one of them may never begin.
        signals_.exit.store(true, std::memory_order_relaxed);
        for (const Lcore& started : lcores_) ::rte_eal_wait_lcore(started.id);
        throw core::RunError(fmt::format("lcore {} could not be started: {}", lcore.id, rc));
    }
    running_ = true;
    try {
        for (const auto& sink : sinks_) sink->start();
        if (pedestals_ != nullptr)
            pedestals_->start(options_.snapshots, [this](std::uint32_t worker) { return work_[worker]->finished(); });
        if (capture_ != nullptr) capture_->start(signals_);
        for (const auto& simulator : simulators_) simulator->start(signals_);
    } catch (...) {
        // There is no room for a thread. What runs ends as always, once it knows that nothing comes: see join.
        if (capture_ != nullptr) capture_->end_unstarted();
        throw;
    }
}

void Pipeline::look() {
    numbers_.look();
    if (clock_ != nullptr) clock_->look();
    for (const auto& port : ports_) port->look();
    std::uint32_t in_use = 0;
    for (const auto& pool : pools_) in_use += pool->in_use();
    pool_highest_ = std::max(pool_highest_, in_use);
}

bool Pipeline::finished() const noexcept {
    for (const auto& worker : work_)
        if (!worker->finished()) return false;
    if (pedestals_ != nullptr && !pedestals_->finished()) return false;
    return std::ranges::all_of(sinks_, [](const auto& sink) { return sink->finished(); });
}

bool Pipeline::input_exhausted() const noexcept {
    if (simulators_.empty() || simulators_.size() != ports_.size()) return false;
    return std::ranges::all_of(simulators_, [](const auto& simulator) { return simulator->drained(); });
}

void Pipeline::join() {
    if (!running_) return;
    running_ = false;
    stop_input();
    for (const auto& sink : sinks_) sink->join();
    if (pedestals_ != nullptr) pedestals_->join();
    signals_.exit.store(true, std::memory_order_relaxed);
    for (Lcore& lcore : lcores_) {
        ::rte_eal_wait_lcore(lcore.id);
        core::ordered_after(&lcore);
    }
    if (capture_ != nullptr) capture_->join();
    for (const auto& simulator : simulators_) simulator->join();
    numbers_.look();
}

}  // namespace weir::pipeline
