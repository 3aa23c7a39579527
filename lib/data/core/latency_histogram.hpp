// How long things took: counts in buckets of 1/16 of a power of two, so that every quantile is known to about 6 %.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/one_writer.hpp"

namespace weir::core {

/// Written by one thread, read by any.
class LatencyHistogram {
public:
    static constexpr std::size_t steps = 16;  ///< buckets in a power of two
    static constexpr std::size_t buckets =
        steps * (40 - 4) + steps;  ///< up to 2^40 ns, 18 minutes; what is longer counts so

    void add(std::uint64_t ns) noexcept {
        core::add(counts_[bucket_of(ns)]);
        if (ns > longest_.load(std::memory_order_relaxed)) longest_.store(ns, std::memory_order_relaxed);
    }

    /// Below `steps` ns each has a bucket of its own.
    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
        if (ns < steps) return static_cast<std::size_t>(ns);
        const auto power = static_cast<std::size_t>(std::bit_width(ns)) - 1;  // at least 4
        const std::size_t step = (ns >> (power - 4)) - steps;
        return std::min(buckets - 1, (power - 3) * steps + step);
    }
    /// The longest time that falls into a bucket, ns.
    [[nodiscard]] static constexpr std::uint64_t end_of(std::size_t bucket) noexcept {
        if (bucket < steps) return bucket;
        const std::size_t power = bucket / steps + 3;
        return ((steps + bucket % steps + 1) << (power - 4)) - 1;
    }

    [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
        return counts_[bucket].load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_.load(std::memory_order_relaxed); }

private:
    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
    std::atomic<std::uint64_t> longest_{0};
};

/// Several histograms added up.
class Latencies {
public:
    void add(const LatencyHistogram& histogram) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += histogram.count(i);
        longest_ns_ = std::max(longest_ns_, histogram.longest_ns());
    }
    [[nodiscard]] std::uint64_t count() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : counts_) sum += count;
        return sum;
    }
    [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_; }
    /// So many ns, or less, took `fraction` of them; 0 if there are none.
    [[nodiscard]] std::uint64_t quantile_ns(double fraction) const noexcept {
        const std::uint64_t all = count();
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            sum += counts_[i];
            if (sum > 0 && static_cast<double>(sum) >= fraction * static_cast<double>(all))
                return std::min(LatencyHistogram::end_of(i), longest_ns_);
        }
        return 0;
    }

private:
    std::array<std::uint64_t, LatencyHistogram::buckets> counts_{};
    std::uint64_t longest_ns_ = 0;
};

}  // namespace weir::core
