// Described formats from text, for those that have them in no file.
#pragma once

#include <string_view>
#include <vector>

#include "wire/format.hpp"

namespace weir::config {

/// As load_formats (run_config.hpp). `file_name` names the text in errors.
std::vector<wire::DeclaredSpec> parse_formats(std::string_view text, std::string_view file_name);

}  // namespace weir::config
