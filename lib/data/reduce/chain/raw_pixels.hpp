// The raw pixels of one message in order, a packet's worth at a time: straight from the received buffers where they lie
// there as they should, gathered where not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "assemble/message.hpp"
#include "reduce/gather.hpp"
#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

class RawPixels {
public:
    /// Pixels of a packet; what is done with them stays in the first-level cache.
    static constexpr std::size_t chunk_pixels = 4096;

    /// Takes memory for messages of up to `refs_max` references.
    explicit RawPixels(std::uint32_t refs_max, std::uint16_t missing_word = raw_error)
        : refs_(refs_max), missing_word_(missing_word) {}

    /// `message` must stay until the next call.
    void begin(const assemble::Message& message) noexcept;
    /// The next `pixels` (1..chunk_pixels); a pixel of which a byte did not come is `missing_word`. Valid until the
    /// next call.
    [[nodiscard]] std::span<const std::uint16_t> next(std::size_t pixels) noexcept;
    /// Asks for what next() reads next, at most so many pixels, into the second-level cache.
    void fetch(std::size_t pixels) const noexcept;
    /// Pixels of the message that next() gave although they did not come.
    [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }

private:
    void find_piece(std::uint32_t begin) noexcept;
    [[nodiscard]] std::span<const std::uint16_t> gather(std::uint32_t begin, std::uint32_t end) noexcept;

    SortedRefs refs_;
    std::uint16_t missing_word_;
    std::size_t ref_ = 0;
    std::uint32_t at_ = 0;  ///< byte of the message
    /// References that lie one after the other in memory, too, as those of a frame that RDMA wrote do: one piece.
    struct Piece {
        const std::byte* data = nullptr;
        std::uint32_t begin = 0;  ///< in the message
        std::uint32_t end = 0;
        std::size_t next = 0;  ///< the first reference after it
    };
    Piece piece_;
    std::uint64_t missing_ = 0;
    alignas(64) std::array<std::uint16_t, chunk_pixels> scratch_;
};

}  // namespace weir::reduce
