// Closes a pcapng file whose program was killed or whose machine lost power, and gives it its name.
#pragma once

#include <filesystem>
#include <optional>

#include "store/read_pace.hpp"
#include "store/run_recovery.hpp"

namespace weir::store {

/// The capture to `final_path` that lies under its hidden name, and that nobody writes to any more: cut after its last
/// whole block, of a compressed one after its last whole frame, synced and renamed. One without a packet's block is
/// removed; `path` is then empty. Nothing: somebody writes to it, or `pace` has stopped it. Throws core::RunError if it
/// cannot be closed; it is then left under its hidden name.
[[nodiscard]] std::optional<Recovered> recover_capture(const std::filesystem::path& final_path, const ReadPace& pace);

}  // namespace weir::store
