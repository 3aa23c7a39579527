// How the two sides tell each other what a receiver takes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/receiver.hpp"

namespace weir::bench {

[[nodiscard]] nlohmann::json to_json(const FrameKind& frames);
/// Throws nlohmann::json::exception, or core::RunError for a kind that this version does not know.
[[nodiscard]] FrameKind frames_from_json(const nlohmann::json& json);

}  // namespace weir::bench
