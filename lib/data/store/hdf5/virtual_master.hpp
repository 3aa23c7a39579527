// One file that shows the HDF5 runs of a cluster's builders as one run, without a copy of their data: virtual datasets
// over their data files, laid out as the master of a run (docs/reference/HDF5.md).
#pragma once

#include <filesystem>

#include "store/hdf5/builder_files.hpp"
#include "store/hdf5/merged_events.hpp"

namespace weir::store::hdf5 {

/// Writes it to `path`, which must not exist; it refers to the data files from where `final_path` lies. Throws
/// core::RunError. What is there is then half a file.
void write_virtual_master(const std::filesystem::path& path, const std::filesystem::path& final_path,
                          const BuilderFiles& found, const MergedEvents& events);

}  // namespace weir::store::hdf5
