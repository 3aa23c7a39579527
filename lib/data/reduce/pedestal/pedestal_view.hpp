// What a worker converts the event in hand with, instead of a pedestal file.
#pragma once

#include <cstdint>

namespace weir::reduce {

/// Arrays of all pixels of all storage cells of all modules, as those of the calibration lie.
struct PedestalView {
    std::uint32_t gain = 0;       ///< that they are for: 0, 1 or 2
    const float* mean = nullptr;  ///< ADU; NaN: bad
    const float* rms = nullptr;   ///< ADU; NaN: not known
    std::uint32_t generation = 0;
};

}  // namespace weir::reduce
