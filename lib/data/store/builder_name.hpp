// Whose run it is, by the name of its directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/cluster_run_account.hpp"

namespace weir::store {

/// ".bu1.part" → "bu1"; the same of the last part of a path
[[nodiscard]] std::string final_name_of(const std::filesystem::path& path);

/// The builder whose name is a word of `path`, where {node} was part of the sink's path, or a folder of the node's: of
/// several the longest. Empty if there is none.
[[nodiscard]] std::string builder_in_name(const std::vector<ClusterNodeName>& nodes, const std::filesystem::path& path);

}  // namespace weir::store
