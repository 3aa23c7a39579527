#include "pipeline/lcores.hpp"

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
#include "pipeline/wall_clock.hpp"

namespace weir::pipeline {

namespace {

/// After `count` turns in a row without work.
void rest(config::IdleMode mode, std::uint32_t count, core::TimeNs nap_ns) noexcept {
    if (mode == config::IdleMode::spin) return;
    if (mode == config::IdleMode::pause) {
        // Give the core to whoever shares it, once it is clear that nothing is about to come.
        if (count < 64)
            ::rte_pause();
        else
            ::sched_yield();
    } else if (count < 16) {
        ::rte_pause();
    } else {
        const timespec nap{0, nap_ns};
        ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
}

}  // namespace

Lcores::Lcores(std::span<const std::uint32_t> ids, config::IdleMode idle, stages::RunSignals& signals,
               const port::LiveClock* clock)
    : signals_(signals) {
    for (const std::uint32_t id : ids)
        lcores_.push_back({id,
                           {},
                           idle,
                           &signals,
                           clock,
                           std::make_unique<stages::PollCounts>(),
                           port::LivePort::nap_ns_default,
                           std::make_unique<Pause>()});
}

void Lcores::set_nap(std::uint32_t id, core::TimeNs nap_ns) {
    std::ranges::find(lcores_, id, &Lcore::id)->nap_ns = nap_ns;
}

void Lcores::add(std::uint32_t id, stages::Stage& stage) {
    std::ranges::find(lcores_, id, &Lcore::id)->stages.push_back(&stage);
}

int Lcores::run(void* argument) {
    const Lcore& lcore = *static_cast<const Lcore*>(argument);
    core::tsan_acquire(argument);
    core::hot_thread(true);
    std::uint32_t idle = 0;
    constexpr core::TimeNs none = std::numeric_limits<core::TimeNs>::min();
    core::TimeNs now = none;  // never runs backwards
    core::TimeNs first_work_ns = none;
    core::TimeNs longest = 0;
    while (!lcore.signals->exit.load(std::memory_order_relaxed)) {
        const core::TimeNs before = now;
        now = std::max(now, lcore.clock != nullptr ? lcore.clock->now() : wall_ns());
        if (first_work_ns != none && now - before > longest) {
            longest = now - before;
            lcore.pause->longest_ns.store(longest, std::memory_order_relaxed);
            lcore.pause->after_ns.store(before - first_work_ns, std::memory_order_relaxed);
        }
        std::size_t work = 0;
        const std::uint64_t begin = ::rte_rdtsc();
        std::uint64_t tsc = begin;
        for (stages::Stage* stage : lcore.stages) work += stage->counted_poll(now, tsc);
        lcore.turns->add(work, stages::Blocked::none, begin, tsc);
        if (work > 0) {
            idle = 0;
            if (first_work_ns == none) first_work_ns = now;
        } else {
            rest(lcore.idle, ++idle, lcore.nap_ns);
        }
    }
    core::hot_thread(false);
    core::tsan_release(argument);
    return 0;
}

void Lcores::start() {
    for (Lcore& lcore : lcores_) {
        core::tsan_release(&lcore);
        const int rc = ::rte_eal_remote_launch(&Lcores::run, &lcore, lcore.id);
        if (rc == 0) continue;
        join();
        throw core::RunError(fmt::format("lcore {} could not be started: {}", lcore.id, rc));
    }
}

void Lcores::join() {
    signals_.exit.store(true, std::memory_order_relaxed);
    for (Lcore& lcore : lcores_) {
        ::rte_eal_wait_lcore(lcore.id);
        core::tsan_acquire(&lcore);
    }
}

std::vector<Usage::Lcore> Lcores::usage() const {
    std::vector<Usage::Lcore> usage;
    for (const Lcore& lcore : lcores_)
        usage.push_back({lcore.id, lcore.turns->values(), lcore.pause->longest_ns.load(std::memory_order_relaxed),
                         lcore.pause->after_ns.load(std::memory_order_relaxed)});
    return usage;
}

}  // namespace weir::pipeline
