// pedestal/collect.hpp in plain C++: what the SIMD must equal, and what benchmarks compare it with.
#pragma once

#include "reduce/pedestal/collect.hpp"

namespace weir::reduce::reference {

PedestalCounts collect(std::span<const std::uint16_t> raw, const PedestalJudge& judge, PedestalSums sums) noexcept;

}  // namespace weir::reduce::reference
