// How far the event numbers of one pass over a capture reach, so that the next pass can go on after them. Constant
// memory, one call per message; only filled while a capture is looped.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::assemble {

/// What a wild number (a flipped bit) must not do is make the range absurd: what lies further from the median than
/// `reach` times the median distance from it, and further than 64, is left out. With numbers that are evenly spread,
/// even with wide gaps, everything is within two of those distances.
class NumberRange {
public:
    static constexpr std::uint64_t reach = 16;

    NumberRange() { sample_.reserve(sample_max); }

    /// The number that others are counted from: the first one, or 0.
    [[nodiscard]] std::uint64_t origin() const noexcept { return origin_; }
    [[nodiscard]] bool empty() const noexcept { return !any_; }

    void add(std::uint64_t number) noexcept {
        if (!any_) origin_ = number;
        any_ = true;
        const auto distance = static_cast<std::int64_t>(number - origin_);
        lowest_.add(-static_cast<__int128>(distance));
        highest_.add(distance);
        if (seen_++ % step_ != 0) return;
        if (sample_.size() == sample_max) {
            // Every other one of them stays, and half as many come from now on.
            for (std::size_t i = 0; 2 * i < sample_.size(); ++i) sample_[i] = sample_[2 * i];
            sample_.resize(sample_max / 2);
            step_ *= 2;
        }
        sample_.push_back(distance);
    }

    /// What another rx lcore has seen of the same pass.
    void merge(const NumberRange& other) noexcept {
        if (!other.any_) return;
        for (const std::int64_t distance : other.sample_) add(other.origin_ + static_cast<std::uint64_t>(distance));
        for (std::size_t i = 0; i < other.lowest_.count; ++i)
            add(other.origin_ - static_cast<std::uint64_t>(other.lowest_.values[i]));
        for (std::size_t i = 0; i < other.highest_.count; ++i)
            add(other.origin_ + static_cast<std::uint64_t>(other.highest_.values[i]));
    }

    /// Numbers from the lowest to the highest that is not wild, at least 1. So small that `passes` of it cannot come
    /// near the end of 64 bits.
    [[nodiscard]] std::uint64_t span(std::uint64_t passes) const {
        if (!any_) return 1;
        std::vector<__int128> sorted(sample_.begin(), sample_.end());
        std::ranges::sort(sorted);
        const __int128 median = sorted[(sorted.size() - 1) / 2];
        for (__int128& distance : sorted) distance = distance < median ? median - distance : distance - median;
        std::ranges::sort(sorted);
        const __int128 most = (static_cast<__int128>(1) << 61U) / static_cast<__int128>(passes);
        const __int128 fence =
            std::min(most, std::max<__int128>(64, static_cast<__int128>(reach) * sorted[sorted.size() / 2]));
        const __int128 high = highest_.within(median + fence);
        const __int128 low = -lowest_.within(fence - median);
        return static_cast<std::uint64_t>(std::max<__int128>(high - low, 0)) + 1;
    }

private:
    static constexpr std::size_t sample_max = 4096;

    /// The largest values, each once, in rising order.
    struct Largest {
        void add(__int128 value) noexcept {
            if (count == values.size() && value <= values[0]) return;
            auto* end = values.data() + count;
            auto* at = std::lower_bound(values.data(), end, value);
            if (at != end && *at == value) return;
            if (count < values.size()) {
                std::move_backward(at, end, end + 1);
                *at = value;
                ++count;
            } else {
                std::move(values.data() + 1, at, values.data());
                *(at - 1) = value;
            }
        }
        /// The largest that is not above `limit`; the limit, if there are more above it than are kept.
        [[nodiscard]] __int128 within(__int128 limit) const noexcept {
            for (std::size_t i = count; i-- > 0;)
                if (values[i] <= limit) return values[i];
            return limit;
        }
        std::array<__int128, 64> values{};
        std::size_t count = 0;
    };

    bool any_ = false;
    std::uint64_t origin_ = 0;
    std::uint64_t seen_ = 0;
    std::uint64_t step_ = 1;
    std::vector<std::int64_t> sample_;  ///< every step_-th, as distances from the origin
    Largest highest_;
    Largest lowest_;  ///< with the sign turned
};

}  // namespace weir::assemble
