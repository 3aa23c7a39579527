// The static context is what keeps zstd from allocating on the lcore; it is declared in zstd's static section.
#define ZSTD_STATIC_LINKING_ONLY
#include "reduce/zstd_reducer.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"

namespace weir::reduce {

namespace {

std::byte* aligned_memory(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == nullptr) throw core::RunError("no memory for the zstd reducer");
    return static_cast<std::byte*>(memory);
}

}  // namespace

void ZstdReducer::Freer::operator()(std::byte* memory) const noexcept {
    std::free(memory);
}

ZstdReducer::ZstdReducer(int level) : scratch_(aligned_memory(piece_bytes)) {
    // A shorter input can have parameters that want more memory: zstd has a table of them for each of these sizes.
    std::size_t bytes = 0;
    for (const std::size_t input : {std::size_t{16} << 10U, std::size_t{128} << 10U, piece_bytes})
        bytes = std::max(bytes, ::ZSTD_estimateCCtxSize_usingCParams(::ZSTD_getCParams(level, input, 0)));
    workspace_.reset(aligned_memory(bytes));
    ZSTD_CCtx* context = ::ZSTD_initStaticCCtx(workspace_.get(), bytes);
    // A context in given memory starts with everything off, also that a frame says its size, which HDF5's filter asks
    // for.
    if (context == nullptr || ZSTD_isError(::ZSTD_CCtx_reset(context, ZSTD_reset_parameters)) != 0 ||
        ZSTD_isError(::ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) != 0)
        throw core::RunError("zstd refuses the compression level " + std::to_string(level));
    context_ = context;
}

ZstdReducer::~ZstdReducer() = default;

std::size_t ZstdReducer::bound(std::size_t raw_bytes) noexcept {
    return ZSTD_COMPRESSBOUND(raw_bytes);
}

std::size_t ZstdReducer::compress(std::size_t raw_bytes, std::span<std::byte> out) noexcept {
    return compress(scratch().first(raw_bytes), out);
}

std::size_t ZstdReducer::compress(std::span<const std::byte> raw, std::span<std::byte> out) noexcept {
    const std::size_t bytes =
        ::ZSTD_compress2(static_cast<ZSTD_CCtx*>(context_), out.data(), out.size(), raw.data(), raw.size());
    // With bound() bytes of room only a workspace that is too small can fail, and that was measured at construction.
    return ZSTD_isError(bytes) != 0 || bytes >= raw.size() ? 0 : bytes;
}

}  // namespace weir::reduce
