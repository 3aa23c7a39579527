// The tree of parameters that a JSON document is to odin-control's clients.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::web {

/// A name of the document as it is in the tree: odin-control's and EPICS' clients make names of their own of those in
/// it, and take letters, digits and `_`. The counter `malformed.header` is `malformed_header`.
[[nodiscard]] std::string tree_name(std::string_view name);

/// What is at the path, elements of arrays by their index; null if there is nothing. Names are the tree's or the
/// document's own.
[[nodiscard]] const nlohmann::json* find_in(const nlohmann::json& document, std::span<const std::string_view> path);

/// What GET answers: of a table itself, of everything else {"value": v}. With metadata, each single value, of the
/// tables below it too, is {"value", "type", "writeable"}; lists of values and nulls have no type in that convention,
/// and stay as they are.
[[nodiscard]] nlohmann::json tree_answer(const nlohmann::json& found, std::span<const std::string_view> path,
                                         bool with_metadata);

/// `text`, with no more than 16 levels of tables and lists. Throws core::UsageError.
[[nodiscard]] nlohmann::json parse_bounded(std::string_view text);

/// What a PUT of `body` to `path` changes: each single value with its path. {"value": v} stands for v.
using Changes = std::vector<std::pair<std::string, nlohmann::json>>;
[[nodiscard]] Changes changes_of(const std::string& path, const nlohmann::json& body);

}  // namespace weir::web
