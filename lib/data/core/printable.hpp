// Other people's text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

/// In one line: line ends and tabs become spaces, what else would steer a terminal (C0, DEL and, as UTF-8, C1) question
/// marks.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace weir::core
