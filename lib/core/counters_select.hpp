// What the reducers that choose count: `veto` events, `sparse` pixels. See counters_reduce.hpp.
#pragma once

#include "core/counters_reduce.hpp"

namespace weir::core {

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

/// [[reduce]] kind = "sparse".
enum class SparseCounter : std::uint8_t {
    pieces,
    kept_dense,
    pixels,
    kept_pixels,
    bytes_in,
    bytes_out,
    cycles,
    count_
};

extern const std::array<CounterInfo, count_of<VetoCounter>> veto_counters;
extern const std::array<CounterInfo, count_of<SparseCounter>> sparse_counters;

}  // namespace weir::core
