#include "core/counters_select.hpp"

namespace weir::core {

namespace {

constexpr CounterInfo sum(std::string_view name, std::string_view help) {
    return {name, Merge::sum, help};
}

}  // namespace

constinit const std::array<CounterInfo, count_of<VetoCounter>> veto_counters = {
    sum("events", "Events that came to the veto. Each is one of the six below."),
    sum("not_asked",
        "Incomplete events, which are kept unjudged with `incomplete = \"keep\"`: what is missing may be what was "
        "looked for."),
    sum("passed", "Events that have what was asked for. They are kept."),
    sum("many_pixels",
        "Events with more pixels above the threshold than `max_pixels`. When that is many, the beam or a shutter, a "
        "wrong pedestal, or a threshold in the wrong unit floods the frames."),
    sum("many_peaks", "Events with more peaks than `max_peaks`, or more local maxima than are looked at."),
    sum("few_pixels",
        "Events with fewer pixels above the threshold than `min_pixels`. When that is all of them, the threshold is in "
        "the wrong unit (that of `unit`), or no beam hits the sample."),
    sum("few_peaks", "Events with fewer peaks than `min_peaks`, where their pixels had not vetoed them already."),
    sum("control",
        "Of the events that the four above count, those that were kept all the same, by `keep_every`. The others are "
        "`events.vetoed`."),
    sum("crowded",
        "Events, of whatever verdict, with more local maxima than the 16384 that are looked at: more peaks may be in "
        "them than were found. `max_peaks` vetoes them. When that is many, the peak threshold is down in the noise, or "
        "the frames are flooded."),
    sum("pixels_above", "Pixels above the threshold, over all events."),
    sum("peaks", "Peaks found, over all events."),
    sum("cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."),
};

constinit const std::array<CounterInfo, count_of<SparseCounter>> sparse_counters = {
    sum("pieces", "Pieces of at most 256 KiB of pixels that were to be made sparse."),
    sum("kept_dense",
        "Of these, pieces that would not have become shorter: they are stored dense, with 0 for pixels that are not "
        "kept. When that is most of them, raise the threshold or leave the reducer out."),
    sum("pixels", "Pixels of these pieces."),
    sum("kept_pixels", "Of these, pixels above their threshold, saturated ones among them."),
    sum("bytes_in", "Bytes of these pixels, in the type of `output`."),
    sum("bytes_out", "Bytes of the pieces, before what compresses them."),
    sum("cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."),
};

}  // namespace weir::core
