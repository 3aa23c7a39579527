// Tables of the documentation that follow from the program: the checks, and the sizing guide.
#pragma once

#include <string>
#include <string_view>

namespace weir::doctor {

/// `page`, with what is between `<!-- doctor NAME -->` and `<!-- end -->` replaced: `checks`, `sizing` or `basis`.
/// Throws core::UsageError for another name, a marker without an end, and a page without any.
[[nodiscard]] std::string filled_page(std::string_view page);

}  // namespace weir::doctor
