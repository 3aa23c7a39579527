#include "reduce/pedestal/pedestal_counter.hpp"

namespace weir::reduce {

constinit const std::array<core::CounterInfo, core::count_of<PedestalCounter>> pedestal_counters =
    core::make_counter_table<PedestalCounter>({
        {PedestalCounter::events, "events",
         "Events that were looked at: each is converted with the generation of pedestals that its number asks for."},
        {PedestalCounter::dark_frames, "dark_frames", "Of these, dark frames, by `every`, `flag` or `all`."},
        {PedestalCounter::dark_taken, "dark_taken", "Dark frames whose pixels were collected."},
        {PedestalCounter::dark_skipped, "dark_skipped",
         "Dark frames that were not collected because `queue` others were on their way. Live only, "
         "and no loss of data: the events are written. When it is many, raise `queue`, or take fewer dark frames."},
        {PedestalCounter::dark_late, "dark_late",
         "Dark frames that were not collected because their interval had ended, "
         "or because their number fits no interval that is open. Isolated ones follow wild numbers or restarts; "
         "when it is many, raise `interval`."},
        {PedestalCounter::pixels_taken, "pixels_taken", "Pixels of dark frames that are in the pedestals."},
        {PedestalCounter::pixels_outlier, "pixels_outlier",
         "Pixels of dark frames that were further than `outlier` RMS from their mean: light, or a particle. "
         "When it is more than a few in a million the frames are not dark, or pedestals have jumped since the start."},
        {PedestalCounter::pixels_other_gain, "pixels_other_gain",
         "Pixels of dark frames that were in another gain than `gain`, or a word that is no value (0x4000, 0xC000)."},
        {PedestalCounter::pixels_missing, "pixels_missing",
         "Pixels of dark frames that did not come, or were the detector's word for an error (0xFFFF)."},
        {PedestalCounter::pixels_masked, "pixels_masked",
         "Pixels that became bad because their RMS was above `rms_max`, or 0."},
        {PedestalCounter::generations, "generations",
         "Generations of pedestals that were made; `pedestal` in the report lists them."},
        {PedestalCounter::late_events, "late_events",
         "Events that were converted with another generation than their number asks for, "
         "because it was not there yet, "
         "or no more. Live only but for events that are more than an interval out of order. Raise `interval`."},
        {PedestalCounter::disordered, "disordered",
         "Intervals that took in dark frames which left the builder after the interval's end. "
         "Only then can the result depend on the number of lcores. Raise `interval`."},
        {PedestalCounter::snapshots, "snapshots", "Snapshots that were saved."},
        {PedestalCounter::cycles, "cycles",
         "Time spent on workers, most of it with copying dark frames, in cycles of the time stamp counter."},
    });

}  // namespace weir::reduce
