// Packs pieces of payload on a worker lcore: one per worker, all memory taken at construction.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "reduce/pack/bits.hpp"
#include "reduce/pack/codec.hpp"

namespace weir::reduce::pack {

struct PackOptions {
    Codec codec = Codec::bitshuffle_zstd;
    int level = 1;                  ///< within levels(codec)
    std::size_t element_bytes = 2;  ///< 1, 2, 4 or 8; what is not a multiple of it is kept as it is
    bool is_signed = false;         ///< of the elements; makes a difference to the size that `bits` reaches
};

class Packer {
public:
    /// For pieces of up to `piece_bytes`. Throws core::RunError if there is no memory, or the library refuses the
    /// level.
    Packer(const PackOptions& options, std::size_t piece_bytes);
    ~Packer();
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    [[nodiscard]] const PackOptions& options() const noexcept { return options_; }
    /// Room that pack() needs for `raw_bytes`.
    [[nodiscard]] std::size_t bound(std::size_t raw_bytes) const noexcept;
    /// Packs `raw` into `out`, which has at least bound(raw.size()) and is elsewhere. Returns the bytes written, or 0
    /// if they would not be fewer than those of `raw` (store that as it is). The same piece always gives the same
    /// bytes.
    [[nodiscard]] std::size_t pack(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;

private:
    struct Freer {
        void operator()(std::byte* memory) const noexcept;
    };
    using Memory = std::unique_ptr<std::byte, Freer>;
    [[nodiscard]] static Memory aligned(std::size_t bytes);
    void start_zstd(std::size_t input_bytes);
    [[nodiscard]] std::size_t compress(std::span<const std::byte> in, std::span<std::byte> out) noexcept;
    [[nodiscard]] std::size_t pack_lz4(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;
    [[nodiscard]] std::size_t pack_bitshuffle(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;

    PackOptions options_;
    Memory state_;                       ///< of the compressor
    Memory shuffled_;                    ///< a block, transposed
    std::unique_ptr<BitsScratch> bits_;  ///< of `bits`
    void* zstd_ = nullptr;               ///< a ZSTD_CCtx that lives inside state_
};

}  // namespace weir::reduce::pack
