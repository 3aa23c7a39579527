// `weir export --to hdf5 --virtual`: one file that shows the HDF5 files of a cluster's builders as one run.
#pragma once

#include <filesystem>

namespace weir::app {

/// `out`: empty for the usual name in the folder. Returns the exit status; throws core::RunError.
int export_virtual(const std::filesystem::path& folder, std::filesystem::path out, bool quiet);

}  // namespace weir::app
