// Counts the buffers of output that workers begin and that sinks have done with, so that somebody outside of the
// pipeline can tell when what has left it is written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/one_writer.hpp"
#include "core/units.hpp"
#include "fabric/write_fence.hpp"

namespace weir::stages {

class OutputFence final : public fabric::WriteFence {
public:
    explicit OutputFence(std::size_t workers) : counts_(workers) {}

    /// By the worker: it goes on in another buffer.
    void begin_buffer(std::size_t worker) noexcept { core::add(counts_[worker].begun); }
    /// By the thread of the last sink: the oldest buffer of the worker is free again.
    void end_buffer(std::size_t worker) noexcept {
        counts_[worker].ended.store(counts_[worker].ended.load(std::memory_order_relaxed) + 1,
                                    std::memory_order_release);
    }

    void mark(std::vector<std::uint64_t>& place) const override {
        place.clear();
        for (const Counts& counts : counts_) place.push_back(counts.begun.load(std::memory_order_relaxed));
    }
    [[nodiscard]] bool has_passed(const std::vector<std::uint64_t>& place) const override {
        return std::ranges::equal(place, counts_, [](std::uint64_t begun, const Counts& counts) {
            return counts.ended.load(std::memory_order_acquire) >= begun;
        });
    }

private:
    struct alignas(core::cache_line_bytes) Counts {
        std::atomic<std::uint64_t> begun{0};
        std::atomic<std::uint64_t> ended{0};
    };
    std::deque<Counts> counts_;  ///< by worker
};

}  // namespace weir::stages
