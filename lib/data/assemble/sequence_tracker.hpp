// Which packets of a source have come, by the sequence number that each of them carries: how many are missing, and
// whether one has been here before. For formats whose messages do not say how many packets they have. One per source,
// one lcore.
//
// Exact within a window: the numbers between the lowest and the highest that came and that did not come are missing,
// whatever the order, the repetitions and the width of the counter, as long as no packet comes more than a window of
// numbers after the highest: 2048, or half a turn of a counter narrower than 12 bits. What comes later stays missing.
//
// A number far from the others (a window or more ahead, or behind the window) decides nothing: it is kept on the side,
// one such place at a time, and believed when eight packets have risen from there while nothing new came where the
// counter was. Then, if it lies up to loss_max ahead, everything in between is missing; otherwise the sender has begun
// to count anew, which is no loss.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::assemble {

class SequenceTracker {
public:
    static constexpr std::uint32_t window_max = 2048;  ///< numbers; half of those of a 12-bit counter
    /// Packets that a gap may have: at a million packets per second, a quarter of a minute. A larger step is a restart.
    static constexpr std::uint64_t loss_max = 1ULL << 24U;
    static constexpr std::uint32_t proof_packets = 8;

    enum class Seen : std::uint8_t {
        fresh,     ///< the first packet with this number
        repeated,  ///< it has been here
        unknown,   ///< too far from the others to tell
    };

    /// `bits`: width of the counter on the wire, 4..64.
    explicit SequenceTracker(std::uint32_t bits) noexcept
        : shift_(64 - bits), window_(bits > 12 ? std::int32_t{window_max} : std::int32_t{1} << (bits - 1)) {}

    Seen add(std::uint64_t sequence) noexcept {
        if (near_.numbers == 0) {
            near_.begin(sequence);
            return Seen::fresh;
        }
        const std::int64_t step = distance(sequence, near_.highest);
        if (!in_reach(step)) return add_far(sequence);
        const Seen seen = near_.add(step);
        if (far_.numbers != 0 && seen == Seen::fresh) [[unlikely]]
            approach();
        return seen;
    }

    /// What comes now has nothing to do with what came: a capture is read again. What was missing stays counted.
    void begin_anew() noexcept {
        missing_before_ += near_.missing();
        near_.numbers = near_.came = 0;
        far_.numbers = 0;
    }

    /// Numbers that did not come, up to the highest that did.
    [[nodiscard]] std::uint64_t missing() const noexcept { return missing_before_ + near_.missing(); }

private:
    /// A stretch of the counter: the numbers lowest..highest, extended to 64 bits, and which of the last ones came.
    struct Stretch {
        std::uint64_t highest = 0;
        std::uint64_t numbers = 0;  ///< from the lowest to the highest; 0: no stretch
        std::uint64_t came = 0;
        std::array<std::uint64_t, window_max / 64> bits{};  ///< by number modulo window_max

        void begin(std::uint64_t number) noexcept {
            bits.fill(0);
            highest = number;
            numbers = came = 1;
            set(number);
        }
        [[nodiscard]] std::uint64_t lowest() const noexcept { return highest - numbers + 1; }
        [[nodiscard]] std::uint64_t missing() const noexcept { return numbers - came; }
        [[nodiscard]] bool has(std::uint64_t number) const noexcept {
            return (bits[number % window_max / 64] >> (number % 64) & 1U) != 0;
        }
        void set(std::uint64_t number) noexcept { bits[number % window_max / 64] |= std::uint64_t{1} << (number % 64); }
        void clear(std::uint64_t number) noexcept {
            bits[number % window_max / 64] &= ~(std::uint64_t{1} << (number % 64));
        }
        /// The number `step` from the highest, which is less than a window.
        Seen add(std::int64_t step) noexcept {
            const std::uint64_t number = highest + static_cast<std::uint64_t>(step);
            if (step > 0) {
                while (++highest != number) clear(highest);
                numbers += static_cast<std::uint64_t>(step);
            } else {
                if (has(number)) return Seen::repeated;
                // Before the first that came: then that is where the stretch begins.
                numbers = std::max(numbers, static_cast<std::uint64_t>(-step) + 1);
            }
            set(number);
            ++came;
            return Seen::fresh;
        }
    };

    /// How far `sequence` is ahead of `number`, the shorter way around the counter.
    [[nodiscard]] std::int64_t distance(std::uint64_t sequence, std::uint64_t number) const noexcept {
        return static_cast<std::int64_t>((sequence - number) << shift_) >> shift_;
    }
    [[nodiscard]] bool in_reach(std::int64_t step) const noexcept { return step < window_ && step > -window_; }

    Seen add_far(std::uint64_t sequence) noexcept {
        const std::int64_t step = distance(sequence, far_.highest);
        if (far_.numbers == 0 || !in_reach(step)) {
            far_.begin(sequence);
            far_rising_ = 1;
            return Seen::unknown;
        }
        const Seen seen = far_.add(step);
        if (seen == Seen::fresh && step > 0 && ++far_rising_ >= proof_packets) believe();
        return Seen::unknown;
    }

    /// Something new came where the counter was: that speaks against the place on the side, unless the two meet.
    void approach() noexcept {
        far_rising_ = 0;
        const std::int64_t gap = distance(far_.lowest(), near_.highest);
        if (gap > 0 && in_reach(gap)) join(static_cast<std::uint64_t>(gap));
    }

    /// The counter is where the numbers on the side are.
    void believe() noexcept {
        const std::int64_t gap = distance(far_.lowest(), near_.highest);
        if (gap > 0 && static_cast<std::uint64_t>(gap) <= loss_max) return join(static_cast<std::uint64_t>(gap));
        missing_before_ += near_.missing();
        near_ = far_;
        far_.numbers = 0;
    }

    /// One stretch of two; the one on the side begins `gap` after the end of the other.
    void join(std::uint64_t gap) noexcept {
        const std::uint64_t ends_apart = far_.numbers + gap - 1;
        for (std::uint64_t back = ends_apart; back < window_max && back - ends_apart < near_.numbers; ++back)
            if (near_.has(near_.highest - (back - ends_apart))) far_.set(far_.highest - back);
        far_.numbers += gap - 1 + near_.numbers;
        far_.came += near_.came;
        near_ = far_;
        far_.numbers = 0;
    }

    std::uint32_t shift_;  ///< what a counter of this width leaves of 64 bits
    std::int32_t window_;
    std::uint32_t far_rising_ = 0;
    std::uint64_t missing_before_ = 0;  ///< of stretches before a restart
    Stretch near_;
    Stretch far_;
};

}  // namespace weir::assemble
