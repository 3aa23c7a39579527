// [[reduce]] kind = "mfp", as configured.
#pragma once

#include <cstdint>
#include <vector>

#include "reduce/mfp/multi_event.hpp"

namespace weir::config {

/// docs/reference/reduce/mfp.md.
struct MfpOptions {
    reduce::MfpLayout layout;
    reduce::MepOrder order = reduce::MepOrder::sources;
    std::vector<std::uint32_t> source_ids;  ///< in the packets; empty: 0, 1, 2, ...
    std::uint16_t version = 0;              ///< of the packets' content
    std::vector<std::uint32_t> versions;    ///< the same source by source; empty: `version` for all
    std::uint32_t fragments_max = 16384;    ///< the largest packing factor

    bool operator==(const MfpOptions&) const = default;
};

}  // namespace weir::config
