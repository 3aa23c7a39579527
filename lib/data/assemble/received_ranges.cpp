#include "assemble/received_ranges.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"

namespace weir::assemble {

ReceivedRanges::ReceivedRanges(std::uint32_t blocks, bool touch)
    : slab_(static_cast<RangeBlock*>(std::malloc(memory_bytes(blocks)))), fresh_(slab_.get()), left_(blocks) {
    if (slab_ == nullptr) core::refuse_memory(memory_bytes(blocks));
    if (touch) core::touch(slab_.get(), memory_bytes(blocks));
}

/// False: there is none left.
bool ReceivedRanges::take_block(Message& message) noexcept {
    RangeBlock* block = free_.pop();
    if (block == nullptr && left_ > 0) {
        --left_;
        block = fresh_++;
    }
    if (block == nullptr) return false;
    message.more_ranges = block;
    message.has_more_ranges = true;
    return true;
}

RangeResult ReceivedRanges::add_place(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
    if (message.slot_bytes == 0) {
        const std::uint32_t count = message.range_count;
        if (count == 0 || message.range_data()[count - 1].end == begin || !use_slots(message, begin, end))
            return add_range(message, begin, end);
    }
    const std::uint32_t slot = begin / message.slot_bytes;
    if (slot * message.slot_bytes != begin || end != std::min(begin + message.slot_bytes, message.total)) {
        use_ranges(message);
        return add_range(message, begin, end);
    }
    if (message.has_slot(slot)) return RangeResult::duplicate;
    const bool touches_left = slot > 0 && message.has_slot(slot - 1);
    const bool touches_right = slot + 1 < Message::slots_max && message.has_slot(slot + 1);
    if (touches_left && touches_right) {
        --message.range_count;
    } else if (!touches_left && !touches_right) {
        // As many ranges are allowed as could be written down, should a packet come that does not lie on the grid.
        if (message.range_count == Message::inline_ranges && !message.has_more_ranges && !take_block(message))
            return RangeResult::too_fragmented;
        ++message.range_count;
    }
    message.slots[slot / 64] |= std::uint64_t{1} << (slot % 64);
    return RangeResult::added;
}

/// Packets of one size in any order make many ranges, and a bit says as much as a range. Only where every packet lies
/// on the same grid; the first that does not brings the ranges back.
bool ReceivedRanges::use_slots(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
    const std::uint32_t bytes = end - begin;
    if (!message.total_known || message.slots_refused || begin % bytes != 0) return false;
    if ((message.total - 1) / bytes >= Message::slots_max) return false;
    std::array<std::uint64_t, Message::slots_max / 64> slots{};
    for (std::uint32_t i = 0; i < message.range_count; ++i) {
        const ByteRange& range = message.range_data()[i];
        if (range.begin % bytes != 0 || (range.end % bytes != 0 && range.end != message.total)) return false;
        for (std::uint32_t slot = range.begin / bytes; slot * bytes < range.end; ++slot)
            slots[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
    message.slots = slots;
    message.slot_bytes = bytes;
    return true;
}

void ReceivedRanges::use_ranges(Message& message) noexcept {
    std::array<ByteRange, Message::slots_max / 2> ranges;
    std::uint16_t count = 0;
    for (std::uint32_t slot = 0; slot < Message::slots_max; ++slot) {
        if (!message.has_slot(slot)) continue;
        const std::uint32_t begin = slot * message.slot_bytes;
        const std::uint32_t end = std::min(begin + message.slot_bytes, message.total);
        if (count > 0 && ranges[count - 1].end == begin)
            ranges[count - 1].end = end;
        else
            ranges[count++] = {begin, end};
    }
    assert(count == message.range_count);
    message.ranges = {};
    std::copy_n(ranges.data(), count,
                message.has_more_ranges ? message.more_ranges->ranges.data() : message.ranges.data());
    message.slot_bytes = 0;
    message.slots_refused = true;
}

RangeResult ReceivedRanges::add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
    ByteRange* ranges = message.has_more_ranges ? message.more_ranges->ranges.data() : message.ranges.data();
    const std::uint32_t count = message.range_count;
    if (count > 0 && ranges[count - 1].end == begin) {  // in order: the common case
        ranges[count - 1].end = end;
        return RangeResult::added;
    }
    // First range that ends at or after `begin`: the only one that can touch or hold us from the left.
    ByteRange* at = std::lower_bound(ranges, ranges + count, begin,
                                     [](const ByteRange& range, std::uint32_t value) { return range.end < value; });
    const std::uint32_t index = static_cast<std::uint32_t>(at - ranges);
    const bool touches_left = index < count && at->end == begin;
    const ByteRange* following = touches_left ? at + 1 : at;
    if (following < ranges + count && following->begin < end)
        return following->begin <= begin && following->end >= end ? RangeResult::duplicate : RangeResult::conflict;
    const bool touches_right = following < ranges + count && following->begin == end;
    if (touches_left && touches_right) {
        at->end = following->end;
        std::move(at + 2, ranges + count, at + 1);
        --message.range_count;
    } else if (touches_left) {
        at->end = end;
    } else if (touches_right) {
        at->begin = begin;
    } else {
        if (!message.has_more_ranges && count == Message::inline_ranges) {
            if (!take_block(message)) return RangeResult::too_fragmented;
            std::copy_n(ranges, count, message.more_ranges->ranges.data());
            ranges = message.more_ranges->ranges.data();
        } else if (count == RangeBlock::capacity) {
            return RangeResult::too_fragmented;
        }
        std::move_backward(ranges + index, ranges + count, ranges + count + 1);
        ranges[index] = {begin, end};
        ++message.range_count;
    }
    return RangeResult::added;
}

}  // namespace weir::assemble
