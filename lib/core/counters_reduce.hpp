// What reducers count, one enumeration and one table per kind: the report's `reduce`, docs/reference/COUNTERS.md and
// `weir explain reduce.KIND.NAME`.
#pragma once

#include <span>

#include "core/counters.hpp"

namespace weir::core {

/// [[reduce]] kind = "jungfrau".
enum class JungfrauCounter : std::uint8_t {
    events,
    pixels,
    missing_pixels,
    bad_pixels,
    saturated_pixels,
    unknown_cell,
    refused_size,
    bytes_in,
    bytes_out,
    cycles,
    count_
};

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

/// [[reduce]] kind = "pedestal".
enum class PedestalCounter : std::uint8_t {
    events,
    dark_frames,
    dark_taken,
    dark_skipped,
    dark_late,
    pixels_taken,
    pixels_outlier,
    pixels_other_gain,
    pixels_missing,
    pixels_masked,
    generations,
    late_events,
    disordered,
    snapshots,
    cycles,
    count_
};

/// What compresses pieces: kind = "zstd" or "pack".
enum class CodecCounter : std::uint8_t { pieces, kept_raw, bytes_in, bytes_out, cycles, count_ };

extern const std::array<CounterInfo, count_of<JungfrauCounter>> jungfrau_counters;
extern const std::array<CounterInfo, count_of<MfpCounter>> mfp_counters;
extern const std::array<CounterInfo, count_of<PedestalCounter>> pedestal_counters;
extern const std::array<CounterInfo, count_of<CodecCounter>> codec_counters;

/// The counters of one reducer on one lcore; any thread may read them.
struct ReducerCounters {
    std::string_view kind;  ///< as in the configuration
    std::span<const CounterInfo> infos;
    const void* tally = nullptr;
    std::uint64_t (*read)(const void* tally, std::size_t index) = nullptr;

    [[nodiscard]] std::uint64_t get(std::size_t index) const { return read(tally, index); }
};

/// `tally` and `infos` must outlive the result.
template <class E>
[[nodiscard]] ReducerCounters counters_of(std::string_view kind, const std::array<CounterInfo, count_of<E>>& infos,
                                          const Tally<E>& tally) noexcept {
    return {kind, infos, &tally, [](const void* from, std::size_t index) {
                return static_cast<const Tally<E>*>(from)->get(static_cast<E>(index));
            }};
}

}  // namespace weir::core
