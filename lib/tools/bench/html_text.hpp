// Text and tables as HTML.
#pragma once

#include <string>
#include <string_view>

#include "bench/table.hpp"

namespace weir::bench {

/// For text and for attributes in quotes.
[[nodiscard]] std::string escaped(std::string_view text);

/// In a box of its own that scrolls; headings are rows above theirs, and notes below.
[[nodiscard]] std::string html_table(const Table& table);

}  // namespace weir::bench
