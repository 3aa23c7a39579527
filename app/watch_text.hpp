// What a running weir shows, in a few lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weir::app {

/// Of the whole document (docs/reference/WATCH_API.md). What is not in it is left out.
[[nodiscard]] std::string watch_text(const nlohmann::json& document);

}  // namespace weir::app
