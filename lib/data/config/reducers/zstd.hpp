// [[reduce]] kind = "zstd", as configured.
#pragma once

#include <cstdint>

namespace weir::config {

struct ZstdOptions {
    std::int32_t level = 1;  ///< 1..19, or -7..-1 (faster)

    bool operator==(const ZstdOptions&) const = default;
};

}  // namespace weir::config
