#include "reduce/chain/jungfrau_counter.hpp"

namespace weir::reduce {

constinit const std::array<core::CounterInfo, core::count_of<JungfrauCounter>> jungfrau_counters =
    core::make_counter_table<JungfrauCounter>({
        {JungfrauCounter::events, "events", "Events whose pixels were converted."},
        {JungfrauCounter::pixels, "pixels",
         "Pixels of these events, those that did not come included: rows times 1024 for each source."},
        {JungfrauCounter::missing_pixels, "missing_pixels",
         "Pixels of these events that did not come; they have the marker of a bad pixel. "
         "The missing ranges of the events say which, `missing_packets` of the sources how many packets."},
        {JungfrauCounter::bad_pixels, "bad_pixels",
         "Pixels that came and have no energy: no valid calibration in the gain they were in, "
         "or the detector's word for an error. A part that does not change is dead pixels; "
         "one that jumps is a module with a fault."},
        {JungfrauCounter::saturated_pixels, "saturated_pixels",
         "Pixels that had more charge than can be measured (0xC000). They are +infinity, or the type's marker."},
        {JungfrauCounter::unknown_cell, "unknown_cell",
         "Frames of a module whose header has a storage cell that there is no calibration for; "
         "all their pixels are bad. "
         "Raise `storage_cells` and give files with as many arrays, or correct `storage_cell`."},
        {JungfrauCounter::refused_size, "refused_size",
         "Events that were dropped as `events.dropped.reduce_error` because a message did not have the size of the stream's rows of pixels. "
         "Correct `rows` or `message_bytes` of its stream."},
        {JungfrauCounter::bytes_in, "bytes_in", "Bytes of raw pixels that came."},
        {JungfrauCounter::bytes_out, "bytes_out", "Bytes of energies, in the type of `output`."},
        {JungfrauCounter::cycles, "cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."},
    });

}  // namespace weir::reduce
