// What a piece of payload can be packed with. docs/reference/reduce/pack.md says which codec is for what,
// docs/reference/EVENT_FILE.md has the layouts byte by byte.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::reduce::pack {

/// The numbers are those of the event file (the low four bits of a block's encoding).
enum class Codec : std::uint8_t {
    raw = 0,
    zstd = 1,             ///< one zstd frame; the chunk of HDF5 filter 32015
    lz4 = 2,              ///< the chunk of HDF5 filter 32004
    bitshuffle_lz4 = 3,   ///< the chunk of HDF5 filter 32008 with LZ4
    bitshuffle_zstd = 4,  ///< the same with zstd
    bits = 5,             ///< whole numbers in as many bits as they need (pack/bits.hpp)
};
inline constexpr std::array<std::string_view, 6> codec_names{"raw", "zstd", "lz4", "bitshuffle-lz4", "bitshuffle-zstd",
                                                             "bits"};

[[nodiscard]] constexpr std::string_view name(Codec codec) noexcept {
    return codec_names[static_cast<std::size_t>(codec)];
}

/// Does decoding need to know the size of an element? Then a block's encoding has it in two bits.
[[nodiscard]] constexpr bool has_elements(Codec codec) noexcept {
    return codec >= Codec::bitshuffle_lz4;
}

/// The levels that a codec takes: none for `raw` and `bits`.
struct Levels {
    int lowest;
    int highest;
    int usual;
};
[[nodiscard]] constexpr std::optional<Levels> levels(Codec codec) noexcept {
    switch (codec) {
        case Codec::zstd:
        case Codec::bitshuffle_zstd:
            return Levels{-7, 19, 1};
        case Codec::lz4:
        case Codec::bitshuffle_lz4:
            // Below 1: faster; from 3 on the slow, thorough compressor (LZ4 HC), which allocates from 10 on.
            return Levels{-99, 9, 1};
        case Codec::raw:
        case Codec::bits:
            break;
    }
    return {};
}

/// Elements of a block of bitshuffle: 8 KiB, a multiple of eight, at least 128. The rule of the published library, so
/// that its users find what they expect; the chunk says it all the same.
[[nodiscard]] constexpr std::size_t block_elements(std::size_t element_bytes) noexcept {
    return 8192 / element_bytes;
}
inline constexpr std::size_t block_bytes = 8192;

}  // namespace weir::reduce::pack
