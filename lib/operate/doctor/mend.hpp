// Does what a finding says mends it: writes to a file of the kernel's, or runs a program.
#pragma once

#include <filesystem>
#include <string>

#include "doctor/finding.hpp"

namespace weir::doctor {

/// Empty, or why it failed. Below a root that is not "/" only files are written: nothing there can be run.
[[nodiscard]] std::string carry_out(const Step& step, const std::filesystem::path& root);

}  // namespace weir::doctor
