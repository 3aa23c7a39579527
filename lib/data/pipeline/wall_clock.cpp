#include "pipeline/wall_clock.hpp"

#include "core/clock_ns.hpp"

namespace weir::pipeline {

core::TimeNs wall_ns() noexcept {
    return core::clock_ns(CLOCK_REALTIME);
}

}  // namespace weir::pipeline
