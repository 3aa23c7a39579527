// The way back from packed pieces, for readers. It allocates, and is made for arbitrary bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reduce/pack/codec.hpp"

namespace weir::reduce::pack {

/// What a packed piece says of the size that it decodes to; nothing if it does not say. Bounded by nothing: check it
/// before memory is taken for it.
[[nodiscard]] std::optional<std::uint64_t> decoded_bytes(Codec codec, std::span<const std::byte> in);
/// The most that so many bytes can decode to, whatever they are: of LZ4 a byte of a length stands for 255 bytes, of
/// zstd a block of 4 bytes for 128 KiB (RFC 8878, section 3.1.1.2.4). Nothing: of this codec there is no such limit.
[[nodiscard]] std::optional<std::uint64_t> decoded_bytes_max(Codec codec, std::uint64_t packed_bytes) noexcept;

class Unpacker {
public:
    Unpacker();
    ~Unpacker();
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;

    /// Fills `out`, whose size is that of the decoded piece, from `in`. Empty if that was possible, else what is wrong
    /// with `in` in a few words; `out` may then hold anything. `element_bytes` (1, 2, 4, 8) matters where
    /// has_elements(codec).
    [[nodiscard]] std::string_view unpack(Codec codec, std::size_t element_bytes, std::span<const std::byte> in,
                                          std::span<std::byte> out);

private:
    enum class Library : bool { lz4, zstd };
    [[nodiscard]] bool decompress(Library library, std::span<const std::byte> in, std::span<std::byte> out);
    [[nodiscard]] std::string_view unpack_lz4(std::span<const std::byte> in, std::span<std::byte> out);
    [[nodiscard]] std::string_view unpack_bitshuffle(Library library, std::size_t element_bytes,
                                                     std::span<const std::byte> in, std::span<std::byte> out);

    struct Freer {
        void operator()(void* context) const noexcept;
    };
    std::unique_ptr<void, Freer> zstd_;  ///< a ZSTD_DCtx
    std::vector<std::byte> block_;
};

}  // namespace weir::reduce::pack
