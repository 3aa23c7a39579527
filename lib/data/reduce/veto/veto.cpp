#include "reduce/veto/veto.hpp"

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

VetoReason veto_reason(const VetoOptions& options, std::uint32_t pixels_above, std::uint32_t peaks,
                       bool peaks_crowded) noexcept {
    if (options.pixels_max && pixels_above > *options.pixels_max) return VetoReason::many_pixels;
    if (options.peaks_max && (peaks > *options.peaks_max || peaks_crowded)) return VetoReason::many_peaks;
    const bool few_pixels = options.pixels_min && pixels_above < *options.pixels_min;
    const bool few_peaks = options.peaks_min && peaks < *options.peaks_min;
    const bool both_asked = options.pixels_min && options.peaks_min;
    if (both_asked && options.keep == VetoOptions::Keep::any && !(few_pixels && few_peaks)) return VetoReason::none;
    if (few_pixels) return VetoReason::few_pixels;
    return few_peaks ? VetoReason::few_peaks : VetoReason::none;
}

Veto::Veto(const VetoOptions& options, std::uint32_t columns) : options_(options) {
    if (options.wants_peaks()) finder_.emplace(options.peaks, columns);
}

void Veto::begin_event() noexcept {
    pixels_above_ = 0;
    if (finder_) finder_->begin_event();
}

void Veto::begin_module() noexcept {
    if (finder_) finder_->begin_module();
}

void Veto::add(std::span<const float> energy) noexcept {
    pixels_above_ += count_above(energy, static_cast<float>(options_.threshold));
    if (finder_) finder_->add(energy);
}

void Veto::end_module() noexcept {
    if (finder_) finder_->end_module();
}

Verdict Veto::end_event(std::uint64_t number, bool complete) noexcept {
    reason_ = VetoReason::none;
    if (!complete && options_.incomplete == VetoOptions::Incomplete::keep) return Verdict::not_asked;
    reason_ = veto_reason(options_, pixels_above_, peaks(), crowded());
    if (reason_ == VetoReason::none) return Verdict::passed;
    return options_.keep_every > 0 && number % options_.keep_every == 0 ? Verdict::control : Verdict::vetoed;
}

}  // namespace weir::reduce
