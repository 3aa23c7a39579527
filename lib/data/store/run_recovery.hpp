// Closes a run whose program was killed or whose machine lost power, and gives it its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "store/read_pace.hpp"

namespace weir::store {

/// The member of a manifest that says that its run was closed by somebody else than its writer.
inline constexpr std::string_view interrupted_key = "interrupted";

struct Recovered {
    std::filesystem::path path;  ///< its name now
    std::string holds;           ///< "1204 events, 3.2 GB; 81920 bytes of what was not whole are cut off"
};

/// The run to `final_path` that lies in its hidden directory, and that nobody writes to any more: every event that is
/// whole and verifies is kept, what is not whole is cut off or becomes padding, the index is made anew, and the
/// manifest says that the run was interrupted. All is synced before the run gets its name, so this can itself be
/// interrupted, and be done again. A directory without any block is removed; `path` is then empty.
///
/// Nothing: somebody writes to it, the file system has no locks to tell, or `pace` has stopped it. Throws
/// core::RunError if the run cannot be closed: its name is taken, the disk is full, it is damaged in a way that a crash
/// does not leave behind, or that version 1 has no padding for. It is then left under its hidden name, without a loss.
[[nodiscard]] std::optional<Recovered> recover_run(const std::filesystem::path& final_path, const ReadPace& pace);

}  // namespace weir::store
