// The master file of a run: everything of the data files as if it were one, by links and virtual datasets.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/hdf5/data_file.hpp"

namespace weir::store::hdf5 {

inline constexpr std::string_view master_name = "master.h5";
/// "data-000007.h5"
std::string data_name(std::uint64_t number);

/// What a data file holds of the run.
struct DataSpan {
    std::string name;
    RunPosition begin;
    RunPosition end;
    std::uint64_t stream_bytes = 0;
};

struct MasterContent {
    std::optional<Layout> layout;  ///< nothing as long as there was no event
    RunText text;
    std::vector<DataSpan> files;
    bool growing = false;  ///< the last file is still written to: the master then shows all that is in it
    /// When the run is closed: ISO 8601, and what is known now, each member as text of JSON in /entry/weir.
    std::string end_time;
    nlohmann::json closing = nlohmann::json::object();
};

/// Writes it to `path`, which must not exist. Throws core::RunError.
void write_master(const std::filesystem::path& path, const MasterContent& content);

}  // namespace weir::store::hdf5
