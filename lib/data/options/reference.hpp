// The reference of all configuration tables, from their descriptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option.hpp"

namespace weir::options {

struct ReferenceTable {
    std::string name;   ///< "port", "sink.events": what `weir explain` and the markers in the documentation call it
    std::string title;  ///< of the first column
    std::vector<Explained> keys;
};
using Reference = std::vector<ReferenceTable>;

/// A Markdown table.
[[nodiscard]] std::string markdown(const ReferenceTable& table);

/// `page`, with what is between `<!-- keys NAME -->` and `<!-- end -->` replaced by the table of that name. Throws
/// core::UsageError for a name that is none, a marker without an end, and a table that the page does not have.
[[nodiscard]] std::string filled_in(std::string_view page, const Reference& reference);

}  // namespace weir::options
