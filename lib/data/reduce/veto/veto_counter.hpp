// What the veto counts.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

/// [[reduce]] kind = "veto".
enum class VetoCounter : std::uint8_t {
    events,
    not_asked,
    passed,
    many_pixels,
    many_peaks,
    few_pixels,
    few_peaks,
    control,
    crowded,
    pixels_above,
    peaks,
    cycles,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<VetoCounter>> veto_counters;

}  // namespace weir::reduce
