// What the handle of a payload says. Nobody looks into the bytes of a part.
#pragma once

#include <cstdint>

namespace weir::cluster::bench {

enum Handle : std::uint64_t {
    own = 1,       ///< a part that this node offered
    received = 2,  ///< one that came
};

}  // namespace weir::cluster::bench
