// What making pixels sparse counts.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

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

extern const std::array<core::CounterInfo, core::count_of<SparseCounter>> sparse_counters;

}  // namespace weir::reduce
