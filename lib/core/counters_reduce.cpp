#include "core/counters_reduce.hpp"

#include "core/counters_select.hpp"
#include "core/counters_text.hpp"

namespace weir::core {

constinit const std::array<CounterInfo, count_of<JungfrauCounter>> jungfrau_counters = {
    CounterInfo::summed("events", "Events whose pixels were converted."),
    CounterInfo::summed("pixels",
                        "Pixels of these events, those that did not come included: rows times 1024 for each source."),
    CounterInfo::summed(
        "missing_pixels",
        "Pixels of these events that did not come; they have the marker of a bad pixel. The missing ranges of the "
        "events "
        "say which, `missing_packets` of the sources how many packets."),
    CounterInfo::summed(
        "bad_pixels",
        "Pixels that came and have no energy: no valid calibration in the gain they were in, or the detector's word "
        "for an error. A part that does not change is dead pixels; one that jumps is a module with a fault."),
    CounterInfo::summed(
        "saturated_pixels",
        "Pixels that had more charge than can be measured (0xC000). They are +infinity, or the type's marker."),
    CounterInfo::summed(
        "unknown_cell",
        "Frames of a module whose header has a storage cell that there is no calibration for; all their pixels are "
        "bad. Raise `storage_cells` and give files with as many arrays, or correct `storage_cell`."),
    CounterInfo::summed(
        "refused_size",
        "Events that were dropped as `events.dropped.reduce_error` because a message did not have the size of the "
        "stream's rows of pixels. Correct `rows` or `message_bytes` of its stream."),
    CounterInfo::summed("bytes_in", "Bytes of raw pixels that came."),
    CounterInfo::summed("bytes_out", "Bytes of energies, in the type of `output`."),
    CounterInfo::summed("cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."),
};

constinit const std::array<CounterInfo, count_of<MfpCounter>> mfp_counters = {
    CounterInfo::summed("blocks", "Blocks of events (weir's events) that were looked at."),
    CounterInfo::summed("events", "Events in the blocks that were put together to multi-event packets."),
    CounterInfo::summed("fragments",
                        "Fragments of these events, one for each of them and each source, missing ones included."),
    CounterInfo::summed(
        "missing_fragments",
        "Fragments of which bytes did not arrive, or whose place nobody could know; in the packet they have no bytes "
        "and "
        "type 92. The missing ranges of the blocks say which packets it were."),
    CounterInfo::summed(
        "problems.head_missing",
        "Blocks of which no source's header and tables arrived whole. They stay as received. Look for lost packets."),
    CounterInfo::summed(
        "problems.truncated",
        "Blocks with a message that ends before its fragments do. They stay as received. The front end's sizes are "
        "wrong, "
        "or `layout` is not the front end's."),
    CounterInfo::summed("problems.magic",
                        "Blocks with a message that does not begin as `layout` says. They stay as received."),
    CounterInfo::summed(
        "problems.too_many",
        "Blocks with a message of no fragment, or of more than `fragments_max`. They stay as received. Raise "
        "`fragments_max`, or correct `layout`."),
    CounterInfo::summed(
        "problems.too_long",
        "Blocks with a fragment of more than 65535 bytes, for which a multi-event packet has no number. They stay as "
        "received."),
    CounterInfo::summed(
        "problems.length",
        "Blocks in which the header's length, the sizes and the message do not agree. They stay as received. The front "
        "end's sizes are wrong, or `layout` is not the front end's."),
    CounterInfo::summed(
        "problems.mismatch",
        "Blocks in which sources disagree on the first event or on the number of fragments. They stay as received. A "
        "front "
        "end has lost count: restart it, or look at when it began."),
    CounterInfo::summed("bytes_in", "Bytes of multi-fragment packets that came."),
    CounterInfo::summed("bytes_out", "Bytes of multi-event packets."),
    CounterInfo::summed("cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."),
};

constinit const std::array<CounterInfo, count_of<PedestalCounter>> pedestal_counters = {
    CounterInfo::summed(
        "events",
        "Events that were looked at: each is converted with the generation of pedestals that its number asks for."),
    CounterInfo::summed("dark_frames", "Of these, dark frames, by `every`, `flag` or `all`."),
    CounterInfo::summed("dark_taken", "Dark frames whose pixels were collected."),
    CounterInfo::summed(
        "dark_skipped",
        "Dark frames that were not collected because `queue` others were on their way. Live only, and no loss of data: "
        "the events are written. When it is many, raise `queue`, or take fewer dark frames."),
    CounterInfo::summed(
        "dark_late",
        "Dark frames that were not collected because their interval had ended, or because their number fits no "
        "interval "
        "that is open. Isolated ones follow wild numbers or restarts; when it is many, raise `interval`."),
    CounterInfo::summed("pixels_taken", "Pixels of dark frames that are in the pedestals."),
    CounterInfo::summed(
        "pixels_outlier",
        "Pixels of dark frames that were further than `outlier` RMS from their mean: light, or a particle. When it is "
        "more than a few in a million the frames are not dark, or pedestals have jumped since the start."),
    CounterInfo::summed(
        "pixels_other_gain",
        "Pixels of dark frames that were in another gain than `gain`, or a word that is no value (0x4000, 0xC000)."),
    CounterInfo::summed("pixels_missing",
                        "Pixels of dark frames that did not come, or were the detector's word for an error (0xFFFF)."),
    CounterInfo::summed("pixels_masked", "Pixels that became bad because their RMS was above `rms_max`, or 0."),
    CounterInfo::summed("generations", "Generations of pedestals that were made; `pedestal` in the report lists them."),
    CounterInfo::summed(
        "late_events",
        "Events that were converted with another generation than their number asks for, because it was not there yet, "
        "or no more. Live only but for events that are more than an interval out of order. Raise `interval`."),
    CounterInfo::summed(
        "disordered",
        "Intervals that took in dark frames which left the builder after the interval's end. Only then can the result "
        "depend on the number of lcores. Raise `interval`."),
    CounterInfo::summed("snapshots", "Snapshots that were saved."),
    CounterInfo::summed(
        "cycles", "Time spent on workers, most of it with copying dark frames, in cycles of the time stamp counter."),
};

constinit const std::array<CounterInfo, count_of<CodecCounter>> codec_counters = {
    CounterInfo::summed("pieces", "Pieces of at most 256 KiB that were to be compressed."),
    CounterInfo::summed(
        "kept_raw",
        "Of these, pieces that did not get shorter and are stored as they were. When that is most of them, the data "
        "cannot be compressed so: leave the reducer out, or choose another codec."),
    CounterInfo::summed("bytes_in", "Bytes of the pieces before compression."),
    CounterInfo::summed("bytes_out", "Bytes of the pieces as they are stored."),
    CounterInfo::summed("cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."),
};

std::vector<CounterSection> reduce_sections() {
    return {
        {"reduce.jungfrau", "What `[[reduce]] kind = \"jungfrau\"` has done, in the report's `reduce`.",
         jungfrau_counters.data(), jungfrau_counters.size()},
        {"reduce.mfp", "What `[[reduce]] kind = \"mfp\"` has done, in the report's `reduce`.", mfp_counters.data(),
         mfp_counters.size()},
        {"reduce.veto", "What `[[reduce]] kind = \"veto\"` has decided, in the report's `reduce`.",
         veto_counters.data(), veto_counters.size()},
        {"reduce.sparse", "What `[[reduce]] kind = \"sparse\"` has done, in the report's `reduce`.",
         sparse_counters.data(), sparse_counters.size()},
        {"reduce.pedestal", "What `[[reduce]] kind = \"pedestal\"` has done, in the report's `reduce`.",
         pedestal_counters.data(), pedestal_counters.size()},
        {"reduce.codec",
         "What the reducer that compresses (`zstd`, `pack`) has done, in the report's `reduce` under its own name.",
         codec_counters.data(), codec_counters.size()},
    };
}

}  // namespace weir::core
