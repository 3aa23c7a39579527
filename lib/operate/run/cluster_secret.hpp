// What is in the file `secret_file` of [cluster].
#pragma once

#include <string>

namespace weir::run {

/// Without spaces and line ends around it; empty if there is no file's name. Throws core::RunError if the file cannot
/// be read, is empty, or others than its owner and group may read or write it.
[[nodiscard]] std::string read_cluster_secret(const std::string& file);

}  // namespace weir::run
