// How fast a run was.
#pragma once

#include "observe/ledger.hpp"

namespace weir::observe {

/// Of a run, over the time in which packets came, and over all of it.
struct Rates {
    double packets_per_s = 0;
    double gbps = 0;
    double events_per_s = 0;
    double sink_mb_per_s = 0;
    double seconds = 0;  ///< that they are over
};
[[nodiscard]] Rates rates_over(const Ledger& ledger, double seconds);

}  // namespace weir::observe
