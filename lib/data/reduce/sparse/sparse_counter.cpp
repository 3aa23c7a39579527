#include "reduce/sparse/sparse_counter.hpp"

namespace weir::reduce {

constinit const std::array<core::CounterInfo, core::count_of<SparseCounter>> sparse_counters = core::make_counter_table<
    SparseCounter>({
    {SparseCounter::pieces, "pieces", "Pieces of at most 256 KiB of pixels that were to be made sparse."},
    {SparseCounter::kept_dense, "kept_dense",
     "Of these, pieces that would not have become shorter: they are stored dense, with 0 for pixels that are not kept. "
     "When that is most of them, raise the threshold or leave the reducer out."},
    {SparseCounter::pixels, "pixels", "Pixels of these pieces."},
    {SparseCounter::kept_pixels, "kept_pixels", "Of these, pixels above their threshold, saturated ones among them."},
    {SparseCounter::bytes_in, "bytes_in", "Bytes of these pixels, in the type of `output`."},
    {SparseCounter::bytes_out, "bytes_out", "Bytes of the pieces, before what compresses them."},
    {SparseCounter::cycles, "cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."},
});

}  // namespace weir::reduce
