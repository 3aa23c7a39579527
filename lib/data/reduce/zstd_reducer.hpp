// The `zstd` reducer: lossless compression of an event's payload, piece by piece, on a worker lcore. All memory is
// taken at construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weir::reduce {

class ZstdReducer {
public:
    /// Bytes compressed at a time. Half of a typical second-level cache, so that the piece is still there when it is
    /// compressed; each piece is a zstd frame of its own.
    static constexpr std::size_t piece_bytes = std::size_t{256} << 10U;

    /// `level` as in zstd: 1..19, or -7..-1 for speed. Throws core::RunError if there is no memory.
    explicit ZstdReducer(int level);
    ~ZstdReducer();
    ZstdReducer(const ZstdReducer&) = delete;
    ZstdReducer& operator=(const ZstdReducer&) = delete;

    /// Where a piece is collected before compress(): `piece_bytes` long, 64-byte aligned.
    [[nodiscard]] std::span<std::byte> scratch() noexcept { return {scratch_.get(), piece_bytes}; }
    /// Room that compress() may need for `raw_bytes`.
    [[nodiscard]] static std::size_t bound(std::size_t raw_bytes) noexcept;
    /// Compresses the first `raw_bytes` of scratch(). Returns the frame's length, or 0 if it would not be shorter than
    /// the input (store that raw). `out` has at least bound(raw_bytes).
    [[nodiscard]] std::size_t compress(std::size_t raw_bytes, std::span<std::byte> out) noexcept;

    /// The same for bytes that lie elsewhere, at most `piece_bytes` of them.
    [[nodiscard]] std::size_t compress(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;

private:
    struct Freer {
        void operator()(std::byte* memory) const noexcept;
    };
    std::unique_ptr<std::byte, Freer> scratch_;
    std::unique_ptr<std::byte, Freer> workspace_;
    void* context_ = nullptr;  ///< a ZSTD_CCtx that lives inside workspace_
};

}  // namespace weir::reduce
