// What the conversion of pixels counts, whole events and fragments alike.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

/// [[reduce]] kind = "jungfrau".
enum class JungfrauCounter : std::uint8_t {
    events,
    pixels,
    missing_pixels,
    bad_pixels,
    saturated_pixels,
    unknown_cell,
    refused_size,
    bytes_in,
    bytes_out,
    cycles,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<JungfrauCounter>> jungfrau_counters;

}  // namespace weir::reduce
