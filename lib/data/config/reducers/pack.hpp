// [[reduce]] kind = "pack", as configured.
#pragma once

#include <cstdint>

#include "reduce/pack/codec.hpp"

namespace weir::config {

/// docs/reference/reduce/pack.md.
struct PackOptions {
    reduce::pack::Codec codec = reduce::pack::Codec::bitshuffle_lz4;
    std::int32_t level = 1;           ///< within levels(codec); 0 where there are none
    std::uint32_t element_bytes = 0;  ///< 1, 2, 4 or 8; 0 where the codec does not ask. Set after reading
    bool is_signed = false;           ///< of the elements; follows from the chain

    bool operator==(const PackOptions&) const = default;
};

}  // namespace weir::config
