// The `veto` reducer: whether an event is kept, from its energies. On a worker lcore, chunk by chunk;
// docs/reference/reduce/veto.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reduce/veto/peak_finder.hpp"

namespace weir::reduce {

struct VetoOptions {
    /// What an event must have if it must have both `pixels_min` and `peaks_min`.
    enum class Keep : std::uint8_t { all, any };
    enum class Incomplete : std::uint8_t { keep, judge };

    double threshold = 0;  ///< pixels above it are counted, in the unit of the energies
    std::optional<std::uint32_t> pixels_min{};
    std::optional<std::uint32_t> pixels_max{};
    std::optional<std::uint32_t> peaks_min{};
    std::optional<std::uint32_t> peaks_max{};
    Keep keep = Keep::all;
    Incomplete incomplete = Incomplete::keep;
    std::uint32_t keep_every = 0;  ///< of vetoed events those are kept whose number this divides; 0: none
    PeakOptions peaks{};

    [[nodiscard]] bool wants_peaks() const noexcept { return peaks_min.has_value() || peaks_max.has_value(); }
    bool operator==(const VetoOptions&) const = default;
};

/// What speaks for or against an event. The first that applies, in this order.
enum class VetoReason : std::uint8_t { none, many_pixels, many_peaks, few_pixels, few_peaks };

/// What becomes of an event, with the values that the event file has for it (EventBody.veto) where it is kept.
enum class Verdict : std::uint8_t {
    not_asked = 0,  ///< incomplete, and such are kept unasked
    passed = 1,
    control = 2,  ///< would have been vetoed, and is kept to look at
    vetoed = 3,
};

/// A rule on the numbers of an event. `peaks_crowded`: `peaks` is a lower bound.
[[nodiscard]] VetoReason veto_reason(const VetoOptions& options, std::uint32_t pixels_above, std::uint32_t peaks,
                                     bool peaks_crowded) noexcept;

/// Judges events one after the other: begin_event; for each module begin_module, add…, end_module; end_event.
class Veto {
public:
    Veto(const VetoOptions& options, std::uint32_t columns);

    void begin_event() noexcept;
    void begin_module() noexcept;
    /// The next energies of the module, row by row; any number. NaN counts for nothing.
    void add(std::span<const float> energy) noexcept;
    void end_module() noexcept;
    /// The verdict depends on nothing but the event's number, completeness and energies.
    [[nodiscard]] Verdict end_event(std::uint64_t number, bool complete) noexcept;

    /// Of the event.
    [[nodiscard]] std::uint32_t pixels_above() const noexcept { return pixels_above_; }
    [[nodiscard]] std::uint32_t peaks() const noexcept { return finder_ ? finder_->found() : 0; }
    /// More local maxima than are looked at: peaks() is a lower bound.
    [[nodiscard]] bool crowded() const noexcept { return finder_ && finder_->crowded(); }
    /// Of the last event that ended.
    [[nodiscard]] VetoReason reason() const noexcept { return reason_; }

private:
    VetoOptions options_;
    std::optional<PeakFinder> finder_;
    std::uint32_t pixels_above_ = 0;
    VetoReason reason_ = VetoReason::none;
};

}  // namespace weir::reduce
