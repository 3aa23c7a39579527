// What became of a stage's polls, and of its time: it moved something, found nothing to do, or could not go on because
// what is in front of it was full. Written by its lcore once per poll, read by any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/one_writer.hpp"

namespace weir::stages {

/// What a stage waits for that has something to do and cannot.
enum class Blocked : std::uint8_t {
    none,
    memory,       ///< rx: buffers or messages, held by events
    descriptors,  ///< rx: the ring to a builder
    steer,        ///< rx: the ring to another rx lcore
    queue,        ///< build: closed events wait for workers and writer, as many as there may be
    output,       ///< work: all output buffers wait for the writer
    recorder,     ///< rx: what is copied for a capture (only an input that waits)
    answers,      ///< rx: acknowledgements on their way to the file of a replay
    count_
};
inline constexpr std::size_t blocked_kinds = static_cast<std::size_t>(Blocked::count_);
inline constexpr std::array<std::string_view, blocked_kinds> blocked_names{"none",  "memory", "descriptors", "steer",
                                                                           "queue", "output", "recorder",    "answers"};

class PollCounts {
public:
    struct Values {
        std::uint64_t busy = 0;                              ///< polls that moved something
        std::uint64_t idle = 0;                              ///< that found nothing to do
        std::array<std::uint64_t, blocked_kinds> blocked{};  ///< that could do nothing for want of this
        std::uint64_t busy_time = 0;                         ///< in cycles of the time stamp counter: in busy polls,
        std::uint64_t blocked_time = 0;                      ///< from a blocked poll to the next one,
        std::uint64_t time = 0;                              ///< and of all
        [[nodiscard]] std::uint64_t blocked_polls() const noexcept {
            std::uint64_t sum = 0;
            for (const std::uint64_t count : blocked) sum += count;
            return sum;
        }
        [[nodiscard]] std::uint64_t polls() const noexcept { return busy + idle + blocked_polls(); }
        Values& operator+=(const Values& other) noexcept { return combine(other, 1); }
        Values& operator-=(const Values& other) noexcept { return combine(other, ~std::uint64_t{0}); }

    private:
        Values& combine(const Values& other, std::uint64_t sign) noexcept {
            busy += sign * other.busy;
            idle += sign * other.idle;
            for (std::size_t i = 0; i < blocked_kinds; ++i) blocked[i] += sign * other.blocked[i];
            busy_time += sign * other.busy_time;
            blocked_time += sign * other.blocked_time;
            time += sign * other.time;
            return *this;
        }
    };

    /// A poll from `begin` to `end` that moved `work`.
    void add(std::size_t work, Blocked blocked, std::uint64_t begin, std::uint64_t end) noexcept {
        // What a poll found lasts until the next one.
        const std::uint64_t since = last_begin_ == 0 ? 0 : begin - last_begin_;
        core::add(time_, since);
        if (was_blocked_) core::add(blocked_time_, since);
        was_blocked_ = work == 0 && blocked != Blocked::none;
        last_begin_ = begin;
        if (work > 0) {
            core::add(busy_, 1);
            core::add(busy_time_, end - begin);
        } else {
            core::add(was_blocked_ ? blocked_[static_cast<std::size_t>(blocked)] : idle_, 1);
        }
    }
    [[nodiscard]] Values values() const noexcept {
        Values values;
        values.busy = busy_.load(std::memory_order_relaxed);
        values.idle = idle_.load(std::memory_order_relaxed);
        for (std::size_t i = 0; i < blocked_kinds; ++i) values.blocked[i] = blocked_[i].load(std::memory_order_relaxed);
        values.busy_time = busy_time_.load(std::memory_order_relaxed);
        values.blocked_time = blocked_time_.load(std::memory_order_relaxed);
        values.time = time_.load(std::memory_order_relaxed);
        return values;
    }

private:
    using Count = std::atomic<std::uint64_t>;
    Count busy_{0};
    Count idle_{0};
    std::array<Count, blocked_kinds> blocked_{};
    Count busy_time_{0};
    Count blocked_time_{0};
    Count time_{0};
    std::uint64_t last_begin_ = 0;
    bool was_blocked_ = false;
};

}  // namespace weir::stages
