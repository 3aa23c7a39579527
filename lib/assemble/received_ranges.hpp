// Which bytes of a message have arrived: a few ranges in the message, or a bit per packet where all are of one size, or
// many ranges in a block from a small pool. Duplicates and overlaps are found here. One lcore uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "assemble/free_list.hpp"
#include "assemble/message.hpp"

namespace weir::assemble {

/// What adding an interval to the received ranges of a message did.
enum class RangeResult : std::uint8_t { added, duplicate, conflict, too_fragmented };

class ReceivedRanges {
public:
    /// `blocks`: messages at once with more separate ranges than fit inline. `touch`: as in MessageConfig.
    ReceivedRanges(std::uint32_t blocks, bool touch);
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t blocks) noexcept {
        return (std::uint64_t{blocks} + 1) * sizeof(RangeBlock);
    }

    /// Adds what one packet brings: not empty, and not past `total` where that is known.
    [[nodiscard]] RangeResult add_place(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    /// Adds an interval, without trying whether bits would do.
    [[nodiscard]] RangeResult add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    /// Takes back the block, if the message has one.
    void release(Message& message) noexcept {
        if (message.more_ranges != nullptr) free_.push(*message.more_ranges);
        message.more_ranges = nullptr;
    }

private:
    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    [[nodiscard]] static bool use_slots(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    static void use_ranges(Message& message) noexcept;
    [[nodiscard]] RangeBlock* take_block() noexcept;

    std::unique_ptr<RangeBlock, Freer> slab_;
    RangeBlock* fresh_ = nullptr;  ///< blocks from here on have never been used: `left_` of them
    std::uint32_t left_;
    FreeList<RangeBlock> free_;
};

}  // namespace weir::assemble
