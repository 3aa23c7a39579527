// Closes a run of HDF5 files whose program was killed, and gives it its name.
#pragma once

#include <filesystem>
#include <optional>

#include "store/read_pace.hpp"
#include "store/run_recovery.hpp"

namespace weir::store::hdf5 {

/// The run to `final_path` that lies in its hidden directory, and that nobody writes to any more: what the library has
/// marked as being written is marked as closed, /entry of the master gets the attribute `weir_interrupted`, all is
/// synced and the run renamed. What it holds is what was flushed. Nothing: somebody writes to it, or `pace` has stopped
/// it. Throws core::RunError where the library cannot open a file (after a power cut it may be torn); the run is then
/// left under its hidden name.
[[nodiscard]] std::optional<Recovered> recover_run(const std::filesystem::path& final_path, const ReadPace& pace);

}  // namespace weir::store::hdf5
