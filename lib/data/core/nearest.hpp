// Names that are close to what somebody typed, for "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core {

/// How many letters must be changed, added or left out to make `b` of `a`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Up to three names of `candidates` that are close to `word`, the closest first; for "did you mean". `distance_max` is
/// in edits.
[[nodiscard]] std::vector<std::string> closest(std::string_view word, const std::vector<std::string>& candidates,
                                               std::size_t distance_max);

/// The same for names of several words with dots and underscores between them: by the words that both have, misspelt or
/// not and in any order, then by edits. A beginning like "packets." may be missing from `name`. Empty if nothing is
/// similar.
[[nodiscard]] std::vector<std::string> similar_names(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace weir::core
