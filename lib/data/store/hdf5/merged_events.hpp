// The events of several builders in one order.
#pragma once

#include <cstdint>
#include <vector>

#include "store/hdf5/builder_files.hpp"
#include "store/hdf5/row_map.hpp"

namespace weir::store::hdf5 {

struct MergedEvents {
    std::vector<RowPlace> places;  ///< by epoch and number; files are counted over all runs
    std::uint64_t copies = 0;      ///< left out
};

/// Each event once. Of several the complete one counts, then the one with the most bytes, then that of a run that was
/// closed, then the first: as RunReader has it for event files. 40 bytes of memory for an event. Throws core::RunError.
[[nodiscard]] MergedEvents merge_events(const BuilderFiles& found);

}  // namespace weir::store::hdf5
