// Which weir this is: for `weir --version`, the run report and the manifest.
#pragma once

#include <string>

namespace weir::app {

/// "0.1.0"
[[nodiscard]] const char* version() noexcept;

/// The git commit it was built from, with "-dirty" if the sources differed from it; "unknown" outside a checkout.
[[nodiscard]] const char* commit() noexcept;

/// What `weir --version` prints: version, commit, DPDK version and compiler, ending in a new line.
[[nodiscard]] std::string version_text();

}  // namespace weir::app
