// The pedestals that workers convert with while new ones are made: a few copies, each used by whoever began an event
// with it, and written again only when nobody does. No locks, and readers never wait.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reduce/pedestal/intervals.hpp"

namespace weir::reduce {

class Generations {
public:
    /// The two newest can be asked for while the third is written.
    static constexpr std::size_t copies = 3;
    static constexpr std::size_t pixel_bytes = copies * 2 * sizeof(float);

    struct View {
        const float* mean = nullptr;  ///< ADU by pixel; NaN: bad
        const float* rms = nullptr;   ///< ADU by pixel; NaN: not known
        std::uint32_t generation = 0;
        bool late = false;  ///< a newer one than was asked for: the right one is no more
    };
    struct Planes {
        std::span<float> mean;
        std::span<float> rms;
    };

    /// `readers`: lcores that acquire() calls come from, numbered from 0.
    Generations(std::size_t pixels, std::uint32_t readers);

    /// The newest generation that is made of intervals up to `needed` and no more; it stays as it is until the
    /// reader's release(). Wait-free but for a retry while one is replaced, which happens once per interval.
    [[nodiscard]] View acquire(std::uint32_t reader, IntervalPlace needed) noexcept;
    void release(std::uint32_t reader) noexcept;

    // The one thread that makes generations:
    /// The copy to write next: the oldest. `in_use()` says when it is free.
    void begin() noexcept;
    [[nodiscard]] bool in_use() const noexcept;
    [[nodiscard]] Planes planes() noexcept;
    /// What was written is generation `generation`, made of intervals up to `made_of` (later than all before).
    void publish(std::uint32_t generation, IntervalPlace made_of) noexcept;
    /// The newest generation is all there is, and is for everything: numbers have fallen back.
    void rebase() noexcept;
    /// As acquire(), for this thread.
    [[nodiscard]] View find(IntervalPlace needed) const noexcept;

private:
    static constexpr IntervalPlace being_written = std::numeric_limits<std::int64_t>::max();
    static constexpr std::uint32_t none = ~0U;

    struct Copy {
        std::vector<float> mean;
        std::vector<float> rms;
        std::atomic<IntervalPlace> made_of{being_written};
        std::atomic<std::uint32_t> generation{0};
    };
    struct alignas(64) Reader {
        std::atomic<std::uint32_t> copy{none};
    };
    struct Choice {
        std::uint32_t copy = 0;
        IntervalPlace made_of = interval_none;
        bool late = false;
    };
    [[nodiscard]] Choice choose(IntervalPlace needed) const noexcept;
    [[nodiscard]] View view(const Choice& choice) const noexcept;

    std::array<Copy, copies> copies_;
    std::vector<Reader> readers_;
    std::uint32_t writing_ = 0;
};

}  // namespace weir::reduce
