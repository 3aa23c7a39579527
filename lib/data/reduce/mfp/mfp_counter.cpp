#include "reduce/mfp/mfp_counter.hpp"

namespace weir::reduce {

namespace {
constexpr core::CounterFamily mfp_problems{"reduce_mfp_problems", "problem",
                                           "Blocks that stay as received, by what is wrong."};
}  // namespace

constinit const std::array<core::CounterInfo, core::count_of<MfpCounter>> mfp_counters = core::make_counter_table<
    MfpCounter>({
    {MfpCounter::blocks, "blocks", "Blocks of events (weir's events) that were looked at."},
    {MfpCounter::events, "events", "Events in the blocks that were put together to multi-event packets."},
    {MfpCounter::fragments, "fragments",
     "Fragments of these events, one for each of them and each source, missing ones included."},
    {MfpCounter::missing_fragments, "missing_fragments",
     "Fragments of which bytes did not arrive, or whose place nobody could know; "
     "in the packet they have no bytes and type 92. The missing ranges of the blocks say which packets it were."},
    {MfpCounter::problem_head_missing, "problems.head_missing",
     "Blocks of which no source's header and tables arrived whole. They stay as received. Look for lost packets.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::problem_truncated, "problems.truncated",
     "Blocks with a message that ends before its fragments do. They stay as received. The front end's sizes are wrong, "
     "or `layout` is not the front end's.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::problem_magic, "problems.magic",
     "Blocks with a message that does not begin as `layout` says. They stay as received.", core::Fate::none,
     &mfp_problems},
    {MfpCounter::problem_too_many, "problems.too_many",
     "Blocks with a message of no fragment, or of more than `fragments_max`. They stay as received. "
     "Raise `fragments_max`, or correct `layout`.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::problem_too_long, "problems.too_long",
     "Blocks with a fragment of more than 65535 bytes, for which a multi-event packet has no number. "
     "They stay as received.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::problem_length, "problems.length",
     "Blocks in which the header's length, the sizes and the message do not agree. They stay as received. "
     "The front end's sizes are wrong, or `layout` is not the front end's.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::problem_mismatch, "problems.mismatch",
     "Blocks in which sources disagree on the first event or on the number of fragments. They stay as received. "
     "A front end has lost count: restart it, or look at when it began.",
     core::Fate::none, &mfp_problems},
    {MfpCounter::bytes_in, "bytes_in", "Bytes of multi-fragment packets that came."},
    {MfpCounter::bytes_out, "bytes_out", "Bytes of multi-event packets."},
    {MfpCounter::cycles, "cycles", "Time spent, in cycles of the time stamp counter, on all lcores together."},
});

}  // namespace weir::reduce
