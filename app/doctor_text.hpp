// Findings of `weir doctor` for people.
#pragma once

#include <string>
#include <vector>

#include "doctor/finding.hpp"

namespace weir::app {

/// Errors first, each with what was found, what is wanted, why, and the commands that mend it; what is well in a line.
[[nodiscard]] std::string findings_text(const std::vector<doctor::Finding>& findings, std::size_t columns);
/// "2 errors, 3 warnings, 1 not known, 12 fine", and what that means.
[[nodiscard]] std::string summary_text(const std::vector<doctor::Finding>& findings);

}  // namespace weir::app
