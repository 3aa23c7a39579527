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
    /// The same for a packet right after the one range of its message, or on the grid of one whose packets are told by
    /// bits, new, and not past the known total. False: it is neither, and nothing has been done; add_place knows why.
    [[nodiscard]] static bool add_regular(Message& message, std::uint32_t begin, std::uint32_t bytes) noexcept {
        if (message.slot_bytes != 0) return add_slot(message, begin, bytes);
        const std::uint32_t odd =
            (message.range_count ^ 1U) | std::uint32_t{message.has_more_ranges} | (message.ranges[0].end ^ begin);
        // No bytes are odd, too. What is here ends within the total, so that `begin` does.
        if (odd != 0 || bytes - 1 >= message.total - begin) [[unlikely]]
            return false;
        message.ranges[0].end += bytes;
        return true;
    }
    /// Adds an interval, without trying whether bits would do.
    [[nodiscard]] RangeResult add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    /// Takes back the block, if the message has one.
    void release(Message& message) noexcept {
        if (message.has_more_ranges) free_.push(*message.more_ranges);
        message.has_more_ranges = false;
    }

private:
    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    [[nodiscard]] static bool add_slot(Message& message, std::uint32_t begin, std::uint32_t bytes) noexcept;
    [[nodiscard]] static bool use_slots(Message& message, std::uint32_t begin, std::uint32_t end) noexcept;
    static void use_ranges(Message& message) noexcept;
    [[nodiscard]] bool take_block(Message& message) noexcept;

    std::unique_ptr<RangeBlock, Freer> slab_;
    RangeBlock* fresh_ = nullptr;  ///< blocks from here on have never been used: `left_` of them
    std::uint32_t left_;
    FreeList<RangeBlock> free_;
};

/// The sets of bits that change nothing but the number of ranges, which has to stay exact: as many are allowed as could
/// be written down, should a packet come that does not lie on the grid.
inline bool ReceivedRanges::add_slot(Message& message, std::uint32_t begin, std::uint32_t bytes) noexcept {
    const std::uint32_t slot = begin / message.slot_bytes;
    if (bytes != message.slot_bytes || slot * bytes != begin || begin >= message.total ||
        bytes > message.total - begin || message.has_slot(slot))
        return false;
    const bool touches_left = slot > 0 && message.has_slot(slot - 1);
    const bool touches_right = slot + 1 < Message::slots_max && message.has_slot(slot + 1);
    // By arithmetic: of packets in any order no branch could be foretold.
    const int more = 1 - int{touches_left} - int{touches_right};
    if (message.range_count >= Message::inline_ranges && !message.has_more_ranges && more > 0) return false;
    message.range_count = static_cast<std::uint16_t>(message.range_count + more);
    message.slots[slot / 64] |= std::uint64_t{1} << (slot % 64);
    return true;
}

}  // namespace weir::assemble
