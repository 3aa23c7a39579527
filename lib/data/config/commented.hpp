// A configuration as a person would have written it: only what is not as it would be anyhow, with comments.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "config/run_config.hpp"

namespace weir::config {

/// What there is to say of a key ("" of the table itself): `table` is "top", "port", "stream", "format" or "events";
/// `index` which of several. Lines of text, or nothing.
using Remarks = std::function<std::string(std::string_view table, std::size_t index, std::string_view key)>;

/// TOML that parse_config reads. `run` needs no more than what is not default; sources need not be numbered.
[[nodiscard]] std::string print_commented(const RunConfig& run, const Remarks& remarks);

}  // namespace weir::config
