#include "reduce/veto/veto_counter.hpp"

namespace weir::reduce {

constinit const std::array<core::CounterInfo, core::count_of<VetoCounter>> veto_counters =
    core::make_counter_table<VetoCounter>({
        {VetoCounter::events, "events", "Events that came to the veto. Each is one of the six below."},
        {VetoCounter::not_asked, "not_asked",
         "Incomplete events, which are kept unjudged with `incomplete = \"keep\"`: "
         "what is missing may be what was looked for."},
        {VetoCounter::passed, "passed", "Events that have what was asked for. They are kept."},
        {VetoCounter::many_pixels, "many_pixels",
         "Events with more pixels above the threshold than `max_pixels`. When that is many, the beam or a shutter, "
         "a wrong pedestal, or a threshold in the wrong unit floods the frames."},
        {VetoCounter::many_peaks, "many_peaks",
         "Events with more peaks than `max_peaks`, or more local maxima than are looked at."},
        {VetoCounter::few_pixels, "few_pixels",
         "Events with fewer pixels above the threshold than `min_pixels`. When that is all of them, "
         "the threshold is in the wrong unit (that of `unit`), or no beam hits the sample."},
        {VetoCounter::few_peaks, "few_peaks",
         "Events with fewer peaks than `min_peaks`, where their pixels had not vetoed them already."},
        {VetoCounter::control, "control",
         "Of the events that the four above count, those that were kept all the same, by `keep_every`. "
         "The others are `events.vetoed`."},
        {VetoCounter::crowded, "crowded",
         "Events, of whatever verdict, with more local maxima than the 16384 that are looked at: "
         "more peaks may be in them than were found. `max_peaks` vetoes them. When that is many, "
         "the peak threshold is down in the noise, or the frames are flooded."},
        {VetoCounter::pixels_above, "pixels_above", "Pixels above the threshold, over all events."},
        {VetoCounter::peaks, "peaks", "Peaks found, over all events."},
        {VetoCounter::cycles, "cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."},
    });

}  // namespace weir::reduce
