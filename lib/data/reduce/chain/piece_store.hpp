// How a piece is stored: as it is, or through the one reducer that compresses. A piece is the part of an event's
// payload that becomes one payload block of the event file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/counters.hpp"
#include "reduce/chain/codec_counter.hpp"
#include "reduce/reducer_counters.hpp"

namespace weir::reduce {

/// Decoded bytes of a piece, at most. Half of a typical second-level cache, so that it is still there when it is
/// compressed.
inline constexpr std::size_t piece_bytes = std::size_t{256} << 10U;

/// Values of the event file's encoding byte (store/format.hpp), as far as this layer needs them.
inline constexpr std::uint8_t encoding_raw = 0;
inline constexpr std::uint8_t encoding_zstd = 1;
inline constexpr std::uint8_t encoding_sparse = 0x10;  ///< beside a codec: the piece was made sparse before

/// Compresses pieces, each for itself, on one worker lcore; all memory is taken at construction.
class PieceCodec {
public:
    virtual ~PieceCodec() = default;
    /// As in the configuration.
    [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
    /// The low nibble of the encoding byte.
    [[nodiscard]] virtual std::uint8_t encoding() const noexcept = 0;
    /// Of the elements that it works on; 0 where that makes no difference.
    [[nodiscard]] virtual std::uint8_t element_bytes() const noexcept { return 0; }
    /// Room that encode() may need for `raw_bytes`.
    [[nodiscard]] virtual std::size_t bound(std::size_t raw_bytes) const noexcept = 0;
    /// Returns the length of what it wrote, or 0 if that would not be shorter than `piece`, which is at most
    /// `piece_bytes` long. `out` has bound(piece.size()) bytes, elsewhere.
    [[nodiscard]] virtual std::size_t encode(std::span<const std::byte> piece, std::span<std::byte> out) noexcept = 0;
};

/// The `zstd` reducer.
[[nodiscard]] std::unique_ptr<PieceCodec> make_zstd_codec(int level);

struct StoredPiece {
    std::uint32_t bytes = 0;
    std::uint8_t encoding = encoding_raw;
    std::uint8_t element_bytes = 0;
};

class PieceStore {
public:
    /// Without a codec pieces are stored as they are.
    explicit PieceStore(std::unique_ptr<PieceCodec> codec = {}) : codec_(std::move(codec)) {}

    [[nodiscard]] bool packs() const noexcept { return codec_ != nullptr; }
    /// Room that put() needs.
    [[nodiscard]] std::size_t bound(std::size_t raw_bytes) const noexcept {
        return codec_ == nullptr ? raw_bytes : std::max(raw_bytes, codec_->bound(raw_bytes));
    }
    /// Writes the piece to `room`, shorter or as it is.
    [[nodiscard]] StoredPiece put(std::span<const std::byte> piece, std::span<std::byte> room) noexcept;

    /// Of the codec, if there is one.
    [[nodiscard]] std::vector<ReducerCounters> counters() const {
        if (codec_ == nullptr) return {};
        return {counters_of(codec_->kind(), codec_counters, tally_)};
    }

private:
    std::unique_ptr<PieceCodec> codec_;
    core::Tally<CodecCounter> tally_;
};

}  // namespace weir::reduce
