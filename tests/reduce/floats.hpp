// The floats that are no numbers, by their names.
#pragma once

#include <limits>

namespace weir::reduce {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace weir::reduce
