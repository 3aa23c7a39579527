// Compresses chunks of a data file. See chunk_encoder.hpp.
#include "store/hdf5/chunk_encoder.hpp"

namespace weir::store::hdf5 {

Filter filter_of(Codec codec, std::uint32_t element_bytes) {
    // Registered numbers: The HDF Group, "Registered Filter Plugins". Parameters of bitshuffle: its version (0.4),
    // bytes of an element, elements of a block (0: its default), the compression after it (2 LZ4, 3 zstd).
    switch (codec) {
        case Codec::zstd:
            return {32015, {1}};
        case Codec::lz4:
            return {32004, {0}};
        case Codec::bitshuffle_lz4:
            return {32008, {0, 4, element_bytes, 0, 2}};
        case Codec::bitshuffle_zstd:
            return {32008, {0, 4, element_bytes, 0, 3}};
        case Codec::raw:
        case Codec::bits:
            break;
    }
    return {};
}

ChunkEncoder::ChunkEncoder(Codec codec, std::optional<int> level, std::uint32_t element_bytes,
                           std::size_t chunk_bytes) {
    const auto levels = reduce::pack::levels(codec);
    if (!levels) return;
    packer_.emplace(reduce::pack::PackOptions{codec, level.value_or(levels->usual), element_bytes, false}, chunk_bytes);
    out_.resize(packer_->bound(chunk_bytes));
}

std::span<const std::byte> ChunkEncoder::encode(std::span<const std::byte> plain) {
    if (!packer_) return {};
    return std::span<const std::byte>(out_).first(packer_->pack(plain, out_));
}

}  // namespace weir::store::hdf5
