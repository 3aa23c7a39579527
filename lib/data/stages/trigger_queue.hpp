// From a shard of the event builder to the recorder: what happened, and up to when everything has been told.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "core/one_writer.hpp"
#include "stages/record_trigger.hpp"

namespace weir::stages {

/// One producer (the build lcore), one consumer (the recorder's thread). A trigger that finds no room is left out:
/// those that fill the queue keep the same packets.
class TriggerQueue {
public:
    static constexpr std::uint64_t capacity = 256;

    // For the build lcore.
    void push(const RecordTrigger& trigger) noexcept {
        const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
        if (at - popped_.load(std::memory_order_acquire) == capacity) {
            core::add(left_out_);
            return;
        }
        triggers_[at % capacity] = trigger;
        pushed_.store(at + 1, std::memory_order_release);
    }
    /// Everything that ended before this has been pushed.
    void complete_until(TimeNs time_ns) noexcept {
        if (time_ns > complete_until_.load(std::memory_order_relaxed))
            complete_until_.store(time_ns, std::memory_order_release);
    }

    // For the recorder. What complete_until() says holds for what pop() finds afterwards.
    [[nodiscard]] TimeNs complete_until() const noexcept { return complete_until_.load(std::memory_order_acquire); }
    [[nodiscard]] bool pop(RecordTrigger& trigger) noexcept {
        const std::uint64_t at = popped_.load(std::memory_order_relaxed);
        if (at == pushed_.load(std::memory_order_acquire)) return false;
        trigger = triggers_[at % capacity];
        popped_.store(at + 1, std::memory_order_release);
        return true;
    }
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_.load(std::memory_order_relaxed); }

private:
    std::array<RecordTrigger, capacity> triggers_;
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> pushed_{0};
    std::atomic<TimeNs> complete_until_{std::numeric_limits<TimeNs>::min()};
    std::atomic<std::uint64_t> left_out_{0};
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> popped_{0};
};

}  // namespace weir::stages
