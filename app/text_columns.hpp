// Text in columns of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::app {

/// Bytes that go on a character take none.
[[nodiscard]] std::size_t columns_in(std::string_view text);
/// With ".." at its end where it does not fit.
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t columns);
/// Exactly so wide.
[[nodiscard]] std::string padded(std::string_view text, std::size_t columns, bool right = false);

}  // namespace weir::app
