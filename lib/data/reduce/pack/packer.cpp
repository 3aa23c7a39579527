// The static context is what keeps zstd from allocating on the lcore; it is declared in zstd's static section.
#define ZSTD_STATIC_LINKING_ONLY
#include "reduce/pack/packer.hpp"

#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "reduce/pack/bit_transpose.hpp"
#include "reduce/pack/filter_header.hpp"
#include "wire/bytes.hpp"

namespace weir::reduce::pack {

using wire::store_be;

namespace {

bool uses_lz4(Codec codec) noexcept {
    return codec == Codec::lz4 || codec == Codec::bitshuffle_lz4;
}

bool uses_zstd(Codec codec) noexcept {
    return codec == Codec::zstd || codec == Codec::bitshuffle_zstd;
}

/// From this level on LZ4 means its thorough compressor.
constexpr int lz4_thorough = 3;

}  // namespace

void Packer::Freer::operator()(std::byte* memory) const noexcept {
    std::free(memory);
}

Packer::Memory Packer::aligned(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == nullptr) throw core::RunError("no memory for the pack reducer");
    return Memory(static_cast<std::byte*>(memory));
}

Packer::Packer(const PackOptions& options, std::size_t piece_bytes) : options_(options) {
    const bool shuffles = options.codec == Codec::bitshuffle_lz4 || options.codec == Codec::bitshuffle_zstd;
    if (shuffles) shuffled_ = aligned(block_bytes);
    if (options.codec == Codec::bits) bits_ = std::make_unique<BitsScratch>();
    if (uses_lz4(options.codec)) {
        const int bytes = options.level >= lz4_thorough ? ::LZ4_sizeofStateHC() : ::LZ4_sizeofState();
        state_ = aligned(static_cast<std::size_t>(bytes));
    }
    if (uses_zstd(options.codec)) start_zstd(shuffles ? block_bytes : piece_bytes);
}

Packer::~Packer() = default;

void Packer::start_zstd(std::size_t input_bytes) {
    // A shorter input can have parameters that want more memory: zstd has a table of them for each of these sizes.
    std::size_t bytes = 0;
    for (const std::size_t size :
         {std::size_t{16} << 10U, std::size_t{128} << 10U, std::size_t{256} << 10U, input_bytes}) {
        const ZSTD_compressionParameters parameters = ::ZSTD_getCParams(options_.level, std::min(size, input_bytes), 0);
        bytes = std::max(bytes, ::ZSTD_estimateCCtxSize_usingCParams(parameters));
    }
    state_ = aligned(bytes);
    ZSTD_CCtx* context = ::ZSTD_initStaticCCtx(state_.get(), bytes);
    // A context in given memory starts with everything off, also that a frame says its size, which HDF5's filter asks
    // for.
    if (context == nullptr || ZSTD_isError(::ZSTD_CCtx_reset(context, ZSTD_reset_parameters)) != 0 ||
        ZSTD_isError(::ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, options_.level)) != 0)
        throw core::RunError("zstd refuses the compression level " + std::to_string(options_.level));
    zstd_ = context;
}

std::size_t Packer::bound(std::size_t raw_bytes) const noexcept {
    const std::size_t blocks = raw_bytes / block_bytes + 1;
    switch (options_.codec) {
        case Codec::zstd:
            return ZSTD_COMPRESSBOUND(raw_bytes);
        case Codec::lz4:
            return lz4_header_bytes + static_cast<std::size_t>(LZ4_COMPRESSBOUND(raw_bytes));
        case Codec::bitshuffle_lz4:
            return bitshuffle_header_bytes + raw_bytes +
                   blocks * (4 + static_cast<std::size_t>(LZ4_COMPRESSBOUND(block_bytes)) - block_bytes);
        case Codec::bitshuffle_zstd:
            return bitshuffle_header_bytes + raw_bytes + blocks * (4 + ZSTD_COMPRESSBOUND(block_bytes) - block_bytes);
        case Codec::bits:
            return bits_bound(raw_bytes, options_.element_bytes);
        case Codec::raw:
            break;
    }
    return raw_bytes;
}

/// The compressor behind the codec; 0 if it fails, which with enough room it never does.
std::size_t Packer::compress(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
    if (zstd_ != nullptr) {
        const std::size_t bytes =
            ::ZSTD_compress2(static_cast<ZSTD_CCtx*>(zstd_), out.data(), out.size(), in.data(), in.size());
        return ZSTD_isError(bytes) != 0 ? 0 : bytes;
    }
    const auto* from = reinterpret_cast<const char*>(in.data());
    auto* to = reinterpret_cast<char*>(out.data());
    const int length = static_cast<int>(in.size());
    const int room = static_cast<int>(std::min<std::size_t>(out.size(), LZ4_MAX_INPUT_SIZE));
    const int level = options_.level;
    const int bytes = level >= lz4_thorough
                          ? ::LZ4_compress_HC_extStateHC(state_.get(), from, to, length, room, level)
                          : ::LZ4_compress_fast_extState(state_.get(), from, to, length, room, std::max(1, 1 - level));
    return static_cast<std::size_t>(std::max(0, bytes));
}

std::size_t Packer::pack_lz4(std::span<const std::byte> raw, std::span<std::byte> out) noexcept {
    const std::size_t bytes = compress(raw, out.subspan(lz4_header_bytes));
    if (bytes == 0) return 0;
    store_be(out.data(), std::uint64_t{raw.size()});
    store_be(out.data() + 8, static_cast<std::uint32_t>(raw.size()));  // one block
    store_be(out.data() + 12, static_cast<std::uint32_t>(bytes));
    return lz4_header_bytes + bytes;
}

std::size_t Packer::pack_bitshuffle(std::span<const std::byte> raw, std::span<std::byte> out) noexcept {
    store_be(out.data(), std::uint64_t{raw.size()});
    store_be(out.data() + 8, static_cast<std::uint32_t>(block_bytes));
    std::size_t used = bitshuffle_header_bytes;
    const std::size_t eight = 8 * options_.element_bytes;
    const std::size_t whole = raw.size() / eight * eight;
    for (std::size_t done = 0; done < whole; done += block_bytes) {
        const std::size_t length = std::min(block_bytes, whole - done);
        const std::span<std::byte> block(shuffled_.get(), length);
        transpose_bits(raw.subspan(done, length), options_.element_bytes, block);
        const std::size_t bytes = compress(block, out.subspan(used + 4));
        if (bytes == 0 || used + 4 + bytes >= raw.size()) return 0;
        store_be(out.data() + used, static_cast<std::uint32_t>(bytes));
        used += 4 + bytes;
    }
    std::copy(raw.begin() + static_cast<std::ptrdiff_t>(whole), raw.end(),
              out.begin() + static_cast<std::ptrdiff_t>(used));
    return used + raw.size() - whole;
}

std::size_t Packer::pack(std::span<const std::byte> raw, std::span<std::byte> out) noexcept {
    std::size_t bytes = 0;
    switch (options_.codec) {
        case Codec::zstd:
            bytes = compress(raw, out);
            break;
        case Codec::lz4:
            bytes = pack_lz4(raw, out);
            break;
        case Codec::bitshuffle_lz4:
        case Codec::bitshuffle_zstd:
            bytes = pack_bitshuffle(raw, out);
            break;
        case Codec::bits:
            bytes = pack_bits(raw, options_.element_bytes, options_.is_signed, *bits_, out);
            break;
        case Codec::raw:
            break;
    }
    return bytes >= raw.size() ? 0 : bytes;
}

}  // namespace weir::reduce::pack
