// What a node of a cluster says of itself to the others: a small part of its document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weir::serve {

/// "state", "mode", "since_s", "error", "next_run", "run", "rates", "lost" (packets, by cause), "cluster" (of "builder"
/// and "readout" what went to and from whom), "last_run", "command": docs/reference/WATCH_API.md. Takes anything for a
/// document; what is not there is left out.
[[nodiscard]] nlohmann::json node_summary(const nlohmann::json& document);

// Of JSON that somebody else has made: what is not there, or of another type, is empty or 0.
[[nodiscard]] std::string text_at(const nlohmann::json& value, const char* pointer);
[[nodiscard]] double number_at(const nlohmann::json& value, const char* pointer);
/// Null: there is none.
[[nodiscard]] const nlohmann::json& part_at(const nlohmann::json& value, const char* pointer);

}  // namespace weir::serve
