// Compresses chunks of a data file as HDF5's registered filters do, for what did not come compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reduce/pack/packer.hpp"
#include "store/hdf5/handle.hpp"
#include "store/hdf5/layout.hpp"

namespace weir::store::hdf5 {

/// A filter's registered number and parameters, as its plug-in leaves them in a dataset's description.
struct Filter {
    H5Z_filter_t number = 0;
    std::vector<unsigned> parameters;
};
/// Of a codec that HDF5 has a filter for.
Filter filter_of(Codec codec, std::uint32_t element_bytes);

class ChunkEncoder {
public:
    ChunkEncoder(Codec codec, std::optional<int> level, std::uint32_t element_bytes, std::size_t chunk_bytes);
    /// Valid until the next call; empty if it would not become shorter.
    std::span<const std::byte> encode(std::span<const std::byte> plain);

private:
    std::optional<reduce::pack::Packer> packer_;
    std::vector<std::byte> out_;
};

}  // namespace weir::store::hdf5
