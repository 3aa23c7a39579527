// JSON that somebody else wrote: a peer, a file that is not ours.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

/// Brackets inside brackets, at the deepest place of a text. Those in strings are none.
[[nodiscard]] std::size_t json_levels(std::string_view text) noexcept;

/// Printing a document again takes stack for every level.
inline constexpr std::size_t json_levels_max = 64;

/// Nothing if it is no JSON, or nested deeper than `levels_max`.
[[nodiscard]] std::optional<nlohmann::json> read_json(std::string_view text, std::size_t levels_max = json_levels_max);

/// A member of an object, if it is there and a text; otherwise `otherwise`.
[[nodiscard]] std::string text_member(const nlohmann::json& object, const char* key, std::string_view otherwise);

}  // namespace weir::core
