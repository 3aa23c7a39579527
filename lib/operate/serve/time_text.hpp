// Times for programs.
#pragma once

#include <string>

#include "core/units.hpp"

namespace weir::serve {

/// UNIX time as "2026-10-03T12:00:00.123Z" (RFC 3339).
[[nodiscard]] std::string time_text(core::TimeNs ns);

}  // namespace weir::serve
