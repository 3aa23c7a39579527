// [[sink]] of kind "hdf5": its own keys.
#pragma once

#include <cstdint>
#include <optional>

#include "reduce/pack/codec.hpp"
#include "store/hdf5/nexus_fields.hpp"

namespace weir::config {

/// kind = "hdf5": store::hdf5::Writer.
struct Hdf5SinkConfig {
    std::uint64_t segment_bytes = std::uint64_t{4} << 30;  ///< a new data file begins after this many,
    std::uint64_t events_per_file = 0;                     ///< or so many events; 0: any
    std::uint64_t sync_bytes = std::uint64_t{64} << 20;    ///< data is flushed and synced to disk after this many,
    std::uint32_t sync_ms = 1000;                          ///< and at least this often
    std::optional<reduce::pack::Codec> codec;              ///< of chunks; else as the chain of reducers compresses
    store::hdf5::Nexus nexus;

    bool operator==(const Hdf5SinkConfig&) const = default;
};

}  // namespace weir::config
