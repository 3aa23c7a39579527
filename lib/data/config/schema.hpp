// What a configuration may be, for programs.
#pragma once

#include <nlohmann/json.hpp>

namespace weir::config {

/// A JSON schema (draft 7) of a configuration file, read as JSON, made of the descriptions of the tables. A file that
/// it refuses is refused by weir; weir checks more than it, such as which keys go with which.
[[nodiscard]] nlohmann::json config_schema();

}  // namespace weir::config
