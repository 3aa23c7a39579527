// [[sink]] of kind "pcapng": what is recorded, and how much of it (docs/guides/RECORDER.md).
#pragma once

#include <cstdint>

namespace weir::config {

enum class RecordMode : std::uint8_t {
    all,         ///< every packet goes into the file
    incomplete,  ///< the last seconds are kept in memory, and saved when something is wrong
};

struct RecorderConfig {
    RecordMode packets = RecordMode::all;
    std::uint32_t snap_bytes = 0;                           ///< packets are cut after so many bytes; 0: not at all
    std::uint64_t memory_bytes = std::uint64_t{64} << 20U;  ///< copies of packets on their way to the file, or kept
    double seconds = 10;                                    ///< incomplete: that are kept, as far as memory goes
    double before = 1;                                      ///< incomplete: seconds in front of what happened
    double after = 1;                                       ///< and after it
    std::uint64_t drops = 1000;                             ///< incomplete: lost within a second to save; 0: never
    std::uint64_t files_max = 100;                          ///< incomplete; then no more is saved
    std::uint64_t bytes_max = 0;                            ///< of all files; then no more is written; 0: no limit
    std::uint64_t segment_bytes = 0;                        ///< a new file begins after so many; 0: never
    std::uint64_t keep_free = std::uint64_t{1} << 30U;      ///< of the disk, that are never written to

    static constexpr std::uint64_t ring_memory_default = std::uint64_t{256} << 20U;
    static constexpr std::uint64_t ring_bytes_default = std::uint64_t{10} << 30U;
    static constexpr std::uint64_t ring_segment_default = std::uint64_t{1} << 30U;

    bool operator==(const RecorderConfig&) const = default;
};

}  // namespace weir::config
