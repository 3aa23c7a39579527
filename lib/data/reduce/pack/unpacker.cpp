#include "reduce/pack/unpacker.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "reduce/pack/bit_transpose.hpp"
#include "reduce/pack/bits.hpp"
#include "reduce/pack/filter_header.hpp"
#include "wire/bytes.hpp"

namespace weir::reduce::pack {

using wire::load_be;

std::optional<std::uint64_t> decoded_bytes(Codec codec, std::span<const std::byte> in) {
    switch (codec) {
        case Codec::raw:
            return in.size();
        case Codec::zstd: {
            const auto bytes = ::ZSTD_getFrameContentSize(in.data(), in.size());
            if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR) return {};
            return bytes;
        }
        case Codec::lz4:
        case Codec::bitshuffle_lz4:
        case Codec::bitshuffle_zstd:
            if (in.size() < bitshuffle_header_bytes) return {};
            return load_be<std::uint64_t>(in.data());
        case Codec::bits: {
            std::uint64_t bytes = 0;
            if (in.size() < 16) return {};
            std::memcpy(&bytes, in.data() + 8, sizeof bytes);
            return bytes;
        }
    }
    return {};
}

std::optional<std::uint64_t> decoded_bytes_max(Codec codec, std::uint64_t packed_bytes) noexcept {
    constexpr std::uint64_t lz4_factor = 255;
    constexpr std::uint64_t zstd_block_bytes = 128U << 10U;
    constexpr std::uint64_t zstd_packed_bytes = 4;  // a header of three, and the byte that is repeated
    switch (codec) {
        case Codec::raw:
            return packed_bytes;
        case Codec::zstd:
        case Codec::bitshuffle_zstd:
            return packed_bytes / zstd_packed_bytes * zstd_block_bytes;
        case Codec::lz4:
        case Codec::bitshuffle_lz4:
            return lz4_factor * packed_bytes;
        case Codec::bits:
            break;
    }
    return {};
}

void Unpacker::Freer::operator()(void* context) const noexcept {
    ::ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(context));
}

Unpacker::Unpacker() : zstd_(::ZSTD_createDCtx()) {
    if (zstd_ == nullptr) throw core::RunError("no memory for decompression");
}

Unpacker::~Unpacker() = default;

/// True if `in` decompresses to exactly out.size() bytes.
bool Unpacker::decompress(Library library, std::span<const std::byte> in, std::span<std::byte> out) {
    if (library == Library::zstd) {
        const std::size_t bytes =
            ::ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(zstd_.get()), out.data(), out.size(), in.data(), in.size());
        return ZSTD_isError(bytes) == 0 && bytes == out.size();
    }
    if (in.size() > LZ4_MAX_INPUT_SIZE || out.size() > LZ4_MAX_INPUT_SIZE) return false;
    const int bytes =
        ::LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                              static_cast<int>(in.size()), static_cast<int>(out.size()));
    return bytes >= 0 && static_cast<std::size_t>(bytes) == out.size();
}

std::string_view Unpacker::unpack_lz4(std::span<const std::byte> in, std::span<std::byte> out) {
    if (in.size() < bitshuffle_header_bytes) return "it ends inside its header";
    if (load_be<std::uint64_t>(in.data()) != out.size()) return "its header has another decoded size";
    const std::size_t block_size = load_be<std::uint32_t>(in.data() + 8);
    if (block_size == 0) return "its block size is not valid";
    in = in.subspan(bitshuffle_header_bytes);
    while (!out.empty()) {
        const std::size_t length = std::min(block_size, out.size());
        if (in.size() < 4 || load_be<std::uint32_t>(in.data()) > in.size() - 4) return "it ends inside a block";
        const std::span<const std::byte> block = in.subspan(4, load_be<std::uint32_t>(in.data()));
        if (block.size() == length) {
            std::copy(block.begin(), block.end(), out.begin());  // a block that did not get shorter is stored as it is
        } else if (!decompress(Library::lz4, block, out.first(length))) {
            return "LZ4 does not decode a block to its size";
        }
        in = in.subspan(4 + block.size());
        out = out.subspan(length);
    }
    return in.empty() ? std::string_view() : "bytes are left over";
}

std::string_view Unpacker::unpack_bitshuffle(Library library, std::size_t element_bytes, std::span<const std::byte> in,
                                             std::span<std::byte> out) {
    if (in.size() < bitshuffle_header_bytes) return "it ends inside its header";
    if (load_be<std::uint64_t>(in.data()) != out.size()) return "its header has another decoded size";
    const std::size_t block_size = load_be<std::uint32_t>(in.data() + 8);
    const std::size_t eight = 8 * element_bytes;
    if (block_size == 0 || block_size % eight != 0) return "its block size is not valid";
    in = in.subspan(bitshuffle_header_bytes);
    block_.resize(std::min(block_size, out.size() / eight * eight));
    while (out.size() >= eight) {
        const std::size_t length = std::min(block_size, out.size() / eight * eight);
        if (in.size() < 4 || load_be<std::uint32_t>(in.data()) > in.size() - 4) return "it ends inside a block";
        const std::span<const std::byte> packed = in.subspan(4, load_be<std::uint32_t>(in.data()));
        const std::span<std::byte> block = std::span(block_).first(length);
        if (!decompress(library, packed, block))
            return library == Library::lz4 ? "LZ4 does not decode a block to its size"
                                           : "zstd does not decode a block to its size";
        untranspose_bits(block, element_bytes, out.first(length));
        in = in.subspan(4 + packed.size());
        out = out.subspan(length);
    }
    if (in.size() != out.size()) return "its length does not fit";
    std::copy(in.begin(), in.end(), out.begin());
    return {};
}

std::string_view Unpacker::unpack(Codec codec, std::size_t element_bytes, std::span<const std::byte> in,
                                  std::span<std::byte> out) {
    if (has_elements(codec) && !is_element(element_bytes)) return "its element size is not valid";
    switch (codec) {
        case Codec::zstd:
            return decompress(Library::zstd, in, out) ? "" : "zstd does not decode it to its size";
        case Codec::lz4:
            return unpack_lz4(in, out);
        case Codec::bitshuffle_lz4:
            return unpack_bitshuffle(Library::lz4, element_bytes, in, out);
        case Codec::bitshuffle_zstd:
            return unpack_bitshuffle(Library::zstd, element_bytes, in, out);
        case Codec::bits:
            return unpack_bits(in, element_bytes, out);
        case Codec::raw:
            if (in.size() != out.size()) return "its length does not fit";
            std::copy(in.begin(), in.end(), out.begin());
            return {};
    }
    return "its codec is not known";
}

}  // namespace weir::reduce::pack
