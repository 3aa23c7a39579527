// [[reduce]] kind = "pedestal", as configured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "wire/format.hpp"

namespace weir::config {

/// docs/reference/reduce/pedestal.md.
struct PedestalOptions {
    enum class Dark : std::uint8_t { every, flag, all };
    enum class Start : std::uint8_t { files, last, snapshot };

    Dark dark = Dark::all;       ///< which events are dark frames
    std::uint64_t every = 0;     ///< Dark::every: those whose number is a multiple of it
    wire::DeclaredField flag{};  ///< Dark::flag: those in whose header this field, in every source that came,
    std::optional<std::uint64_t> flag_value;  ///< has this value; nothing: any but 0
    std::uint32_t gain = 0;                   ///< the gain whose pedestal is followed
    std::uint32_t frames = 1000;              ///< the window
    double outlier = 5;                      ///< a pixel further than this many RMS from its mean is not taken; 0: none
    std::uint32_t outlier_after = 50;        ///< frames of a pixel from which on its RMS is believed
    double rms_max = 0;                      ///< ADU; a pixel with more, or 0, becomes bad. 0: not asked
    std::uint64_t interval = 1000;           ///< event numbers from one generation to the next
    Start start = Start::files;              ///< the files of `jungfrau`, or a snapshot
    std::string start_path;                  ///< Start::snapshot
    std::vector<std::filesystem::path> rms;  ///< RMS of the files of `jungfrau`; empty: not known
    std::string snapshots;                   ///< folder; empty: the run's own, if it has one
    std::uint32_t snapshot_seconds = 0;      ///< 0: only at the end
    bool keep = true;                        ///< dark frames are events like others; else they are vetoed
    std::uint32_t queue = 4;                 ///< dark frames on their way from the workers, for all of them
    std::uint32_t threads = 1;               ///< that add dark frames up

    bool operator==(const PedestalOptions&) const = default;
};

}  // namespace weir::config
