// Pedestals on disk: what a run has learnt, for the next one to begin with, or for `jungfrau` to be given as files.
// docs/reference/reduce/pedestal.md has the format. For ordinary threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/units.hpp"
#include "reduce/pedestal/tracker.hpp"

namespace weir::store {

/// What a snapshot says about itself.
struct PedestalSnapshot {
    std::uint32_t gain = 0;
    std::uint32_t modules = 1;
    std::uint32_t storage_cells = 1;  ///< arrays for each module
    std::uint32_t window = 0;         ///< frames
    std::uint32_t generation = 0;
    std::uint64_t dark_frames = 0;  ///< that this run has taken in, in all
    std::uint32_t first_epoch = 0;  ///< the first and the last of them; 0 where there were none
    std::uint64_t first_event = 0;
    std::uint32_t last_epoch = 0;
    std::uint64_t last_event = 0;
    core::TimeNs created_ns = 0;  ///< UNIX time
    std::string run;              ///< its name

    [[nodiscard]] std::size_t pixels() const noexcept;
    bool operator==(const PedestalSnapshot&) const = default;
};

/// Writes a snapshot under the next free number of the folder, which is made if it is not there, and returns the path
/// of its JSON file. `mean` and `rms` are what pixels are converted with (NaN: bad, not known). Whatever happens in
/// between, a JSON file stands for files that are whole and on the device. Throws core::RunError.
std::filesystem::path write_pedestal_snapshot(const std::filesystem::path& folder, const PedestalSnapshot& about,
                                              const reduce::PedestalState& state, std::span<const float> mean,
                                              std::span<const float> rms);

/// The snapshot of a JSON file, or of any file beside it of the same number. `wanted` says which gain, modules and
/// storage cells it must have; the rest of it becomes what the file says. Throws core::UsageError, also if a file is
/// damaged.
reduce::PedestalState read_pedestal_snapshot(const std::filesystem::path& path, PedestalSnapshot& wanted);

/// The JSON file of the newest snapshot in a folder for this gain, if there is one.
std::optional<std::filesystem::path> last_pedestal_snapshot(const std::filesystem::path& folder, std::uint32_t gain);

}  // namespace weir::store
