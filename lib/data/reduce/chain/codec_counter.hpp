// What compressing pieces counts, whatever the codec.
#pragma once

#include "core/counters.hpp"

namespace weir::reduce {

/// What compresses pieces: kind = "zstd" or "pack".
enum class CodecCounter : std::uint8_t { pieces, kept_raw, bytes_in, bytes_out, cycles, count_ };

extern const std::array<core::CounterInfo, core::count_of<CodecCounter>> codec_counters;

}  // namespace weir::reduce
