// The configuration that findings make: TOML with comments that say why, which runs as it is.
#pragma once

#include <string>

#include "probe/findings.hpp"

namespace weir::probe {

/// `device`: of the port; empty where a capture was looked at, and then a device that replay ignores. Only for findings
/// that are recognised(). The text has been read back: throws std::logic_error if it is no configuration, or another
/// one.
[[nodiscard]] std::string propose(const Findings& findings, const std::string& device);

}  // namespace weir::probe
