#include "reduce/chain/codec_counter.hpp"

namespace weir::reduce {

constinit const std::array<core::CounterInfo, core::count_of<CodecCounter>> codec_counters =
    core::make_counter_table<CodecCounter>({
        {CodecCounter::pieces, "pieces", "Pieces of at most 256 KiB that were to be compressed."},
        {CodecCounter::kept_raw, "kept_raw",
         "Of these, pieces that did not get shorter and are stored as they were. When that is most of them, "
         "the data cannot be compressed so: leave the reducer out, or choose another codec."},
        {CodecCounter::bytes_in, "bytes_in", "Bytes of the pieces before compression."},
        {CodecCounter::bytes_out, "bytes_out", "Bytes of the pieces as they are stored."},
        {CodecCounter::cycles, "cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."},
    });

}  // namespace weir::reduce
