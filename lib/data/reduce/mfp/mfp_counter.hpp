// What putting multi-event packets together counts.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

/// [[reduce]] kind = "mfp".
enum class MfpCounter : std::uint8_t {
    blocks,
    events,
    fragments,
    missing_fragments,
    problem_head_missing,
    problem_truncated,
    problem_magic,
    problem_too_many,
    problem_too_long,
    problem_length,
    problem_mismatch,
    bytes_in,
    bytes_out,
    cycles,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<MfpCounter>> mfp_counters;

}  // namespace weir::reduce
