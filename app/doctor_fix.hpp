// `weir doctor --fix`: what is safe is done, after asking.
#pragma once

#include <filesystem>
#include <vector>

#include "doctor/finding.hpp"

namespace weir::app {

/// Says each command before it is done, on standard output. `ask`: nothing is done without a "y" from standard input.
/// Returns how many findings were seen to.
std::size_t fix_findings(const std::vector<doctor::Finding>& findings, const std::filesystem::path& root, bool ask);

}  // namespace weir::app
