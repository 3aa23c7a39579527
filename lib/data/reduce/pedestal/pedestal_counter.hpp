// What pedestals that follow a run count.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

/// [[reduce]] kind = "pedestal".
enum class PedestalCounter : std::uint8_t {
    events,
    dark_frames,
    dark_taken,
    dark_skipped,
    dark_late,
    pixels_taken,
    pixels_outlier,
    pixels_other_gain,
    pixels_missing,
    pixels_masked,
    generations,
    late_events,
    disordered,
    snapshots,
    cycles,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<PedestalCounter>> pedestal_counters;

}  // namespace weir::reduce
