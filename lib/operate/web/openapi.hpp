// What the API says of itself to programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace weir::web {

/// What /api/0.1/weir/openapi.json is: OpenAPI 3.0.3.
[[nodiscard]] const nlohmann::json& openapi_document();

}  // namespace weir::web
