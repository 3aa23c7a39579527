// All nodes of a cluster as lines of text, made of /cluster: for `weir top --cluster` and `weir ctl --cluster status`.
#pragma once

#include <nlohmann/json.hpp>

#include "top_screen.hpp"

namespace weir::app {

/// The view's `first_source` and `order` are of nodes; those in trouble come first unless it says number.
[[nodiscard]] TopScreen cluster_screen(const nlohmann::json& document, const TopView& view);

}  // namespace weir::app
