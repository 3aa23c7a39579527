// The runs as HDF5 files that the builders of a cluster have written into a folder, found and checked: whether they are
// whole, of one cluster, and alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/hdf5/data_file.hpp"
#include "store/hdf5/layout.hpp"

namespace weir::store::hdf5 {

struct BuilderDataFile {
    std::filesystem::path path;
    RunPosition begin;                ///< in its run
    std::uint64_t events = 0;         ///< rows of its tables
    std::uint64_t missing = 0;        ///< rows of its missing ranges
    std::uint64_t payload_bytes = 0;  ///< of its stream; 0 where the data is an image
};

struct BuilderRun {
    std::string name;  ///< of its directory, from the folder on
    std::filesystem::path path;
    std::string node;          ///< empty: it does not say
    bool interrupted = false;  ///< its builder was ended by force, and a later start closed it
    std::string start_json;
    std::vector<BuilderDataFile> files;
};

struct BuilderFiles {
    std::filesystem::path folder;
    std::vector<BuilderRun> runs;          ///< in the order of their names
    std::optional<Layout> layout;          ///< of all files; nothing if none has an event
    std::vector<std::string> without_run;  ///< builders of which there is no run
    std::vector<std::string> notes;        ///< what is doubtful: a sentence each
};

/// Throws core::RunError, which names the file, if there is no such run, and if one is unfinished, incomplete, damaged,
/// of no cluster, of another one, or has other images than the first.
[[nodiscard]] BuilderFiles find_builder_files(const std::filesystem::path& folder);

}  // namespace weir::store::hdf5
