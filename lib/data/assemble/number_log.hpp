// The event numbers that a builder has seen, on their way to the thread that keeps account of them: one writer (the
// builder's lcore), one reader. Numbers that rise evenly share an entry, so that a reader that comes late finds room.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/one_writer.hpp"
#include "core/units.hpp"

namespace weir::assemble {

class NumberLog {
public:
    /// The numbers first, first + step, ..., `count` of them.
    struct Run {
        std::uint64_t first = 0;
        std::uint64_t step = 0;
        std::uint32_t count = 0;
        std::uint32_t epoch = 0;
    };

    /// `capacity`: entries, rounded up to a power of two.
    explicit NumberLog(std::uint32_t capacity) {
        std::uint32_t size = 2;
        while (size < capacity) size *= 2;
        ring_.resize(size);
    }

    /// Writer. An event has left, or was refused as a whole.
    void add(std::uint32_t epoch, std::uint64_t number) noexcept {
        if (open_.count > 0 && epoch == open_.epoch) {
            const std::uint64_t step = number - (open_.first + open_.step * (open_.count - 1));
            if (step == (open_.count == 1 ? usual_step_ : open_.step)) {
                open_.step = step;
                ++open_.count;
                return;
            }
            usual_step_ = step;
        }
        if (open_.count > 0) push();
        open_ = {number, 0, 1, epoch};
    }
    /// Writer, once per poll: the reader gets the entry that is still growing, if it has read all others.
    void publish() noexcept {
        if (open_.count > 0 && read_.load(std::memory_order_relaxed) == written_.load(std::memory_order_relaxed))
            push();
    }
    /// Writer: nothing more comes.
    void finish() noexcept {
        if (open_.count > 0) push();
    }

    /// Reader: `take(const Run&)` for each entry.
    template <class Take>
    void read(Take take) {
        std::uint64_t at = read_.load(std::memory_order_relaxed);
        const std::uint64_t end = written_.load(std::memory_order_acquire);
        for (; at != end; ++at) take(ring_[at % ring_.size()]);
        read_.store(at, std::memory_order_release);
    }
    /// Numbers for which there was no room: the reader was away for too long.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

private:
    void push() noexcept {
        const std::uint64_t at = written_.load(std::memory_order_relaxed);
        if (at - read_.load(std::memory_order_acquire) == ring_.size()) {
            core::add(dropped_, open_.count);
        } else {
            ring_[at % ring_.size()] = open_;
            written_.store(at + 1, std::memory_order_release);
        }
        open_.count = 0;
    }

    std::vector<Run> ring_;
    Run open_;
    std::uint64_t usual_step_ = 1;
    std::atomic<std::uint64_t> dropped_{0};
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> written_{0};
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> read_{0};
};

}  // namespace weir::assemble
