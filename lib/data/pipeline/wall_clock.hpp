// The system's time, for threads that read a clock.
#pragma once

#include "core/units.hpp"

namespace weir::pipeline {

/// UNIX time.
[[nodiscard]] core::TimeNs wall_ns() noexcept;

}  // namespace weir::pipeline
