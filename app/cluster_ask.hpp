// What `weir ctl --cluster` and `weir top --cluster` ask a node: /cluster of docs/reference/WATCH_API.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "web/client.hpp"

namespace weir::app {

/// How all nodes are, as this one has heard last; waits until it has heard at all. Throws core::RunError if it does not
/// answer or is of no cluster; `command` begins the message.
[[nodiscard]] nlohmann::json ask_cluster(web::Client& client, const std::string& command);
/// The same, of answers that were given after this was called.
[[nodiscard]] nlohmann::json ask_cluster_anew(web::Client& client, const std::string& command);

}  // namespace weir::app
