// What a message holds: references to buffers, cells of copied payload, and the ranges that have arrived. The memory
// comes from pools that are taken at construction and touched when first used.
#include <algorithm>
#include <bit>
#include <cstring>

#include "assemble/message_table.hpp"

namespace weir::assemble {

using core::MessageCounter;
using core::PacketCounter;

RangeBlock* MessageTable::take_ranges() noexcept {
    RangeBlock* block = free_ranges_;
    if (block != nullptr) {
        free_ranges_ = block->next;
    } else if (ranges_left_ > 0) {
        --ranges_left_;
        block = fresh_range_++;
    }
    return block;
}

FragmentBlock* MessageTable::take_block() noexcept {
    --blocks_free_;
    FragmentBlock* block = free_blocks_;
    if (block != nullptr)
        free_blocks_ = block->next;
    else
        block = fresh_block_++;  // never used before: unless Config::touch, its page is touched now
    block->next = nullptr;
    block->count = block->continued = 0;
    return block;
}

/// The reference that was appended last is of the packet of the one before it.
void MessageTable::join_last(Message& message) noexcept {
    FragmentBlock& block = *message.last_block;
    block.continued |= std::uint32_t{1} << (block.count - 1);
    --message.packets;
    packets_.subtract(PacketCounter::in_flight, 1);
}

bool MessageTable::append(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                          std::uint32_t bytes, TimeNs now) noexcept {
    if (!has_room(1)) return false;
    FragmentBlock* block = message.last_block;
    if (block == nullptr || block->count == FragmentBlock::capacity) {
        FragmentBlock* fresh = take_block();
        (block != nullptr ? block->next : message.first_block) = fresh;
        message.last_block = block = fresh;
    }
    if (buffer != nullptr && bytes > 0 && bytes <= config_.copy_bytes_max && buffers_held_ >= config_.copy_above_held)
        if (const std::byte* copied = copies_.put(message.cells, data, bytes); copied != nullptr) {
            release_later(buffer);
            buffer = nullptr;
            data = copied;
        }
    if (buffer != nullptr) ++buffers_held_;
    block->refs[block->count++] = {buffer, data, offset, bytes, now};
    message.received_bytes += bytes;
    ++message.packets;
    message.last_ns = now;
    packets_.add(PacketCounter::in_flight);
    return true;
}

void MessageTable::append_kept(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                               std::uint32_t bytes, TimeNs now) noexcept {
    static_cast<void>(append(message, nullptr, data, offset, bytes, now));
    release_later(buffer);
}

RangeResult MessageTable::add_place(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
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
        if (message.range_count == Message::inline_ranges && message.more_ranges == nullptr &&
            (message.more_ranges = take_ranges()) == nullptr)
            return RangeResult::too_fragmented;
        ++message.range_count;
    }
    message.slots[slot / 64] |= std::uint64_t{1} << (slot % 64);
    return RangeResult::added;
}

/// Packets of one size in any order make many ranges, and a bit says as much as a range. Only where every packet lies
/// on the same grid; the first that does not brings the ranges back.
bool MessageTable::use_slots(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
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

void MessageTable::use_ranges(Message& message) noexcept {
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
                message.more_ranges != nullptr ? message.more_ranges->ranges.data() : message.ranges.data());
    message.slot_bytes = 0;
    message.slots_refused = true;
}

RangeResult MessageTable::add_range(Message& message, std::uint32_t begin, std::uint32_t end) noexcept {
    ByteRange* ranges = message.more_ranges != nullptr ? message.more_ranges->ranges.data() : message.ranges.data();
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
        if (message.more_ranges == nullptr && count == Message::inline_ranges) {
            RangeBlock* block = take_ranges();
            if (block == nullptr) return RangeResult::too_fragmented;
            std::copy_n(ranges, count, block->ranges.data());
            message.more_ranges = block;
            ranges = block->ranges.data();
        } else if (count == RangeBlock::capacity) {
            return RangeResult::too_fragmented;
        }
        std::move_backward(ranges + index, ranges + count, ranges + count + 1);
        ranges[index] = {begin, end};
        ++message.range_count;
    }
    return RangeResult::added;
}

void MessageTable::splice(Message& into, Message& from) noexcept {
    for (FragmentBlock* block = from.first_block; block != nullptr;) {
        FragmentBlock* next = block->next;
        block->next = nullptr;
        FragmentBlock* last = into.last_block;
        if (last != nullptr && last->count + block->count <= FragmentBlock::capacity) {
            // Copying a few references keeps runs of single packets from taking a block each.
            std::copy_n(block->refs.data(), block->count, last->refs.data() + last->count);
            last->continued |= block->continued << last->count;
            last->count += block->count;
            block->next = free_blocks_;
            free_blocks_ = block;
            ++blocks_free_;
        } else {
            (last != nullptr ? last->next : into.first_block) = block;
            into.last_block = block;
        }
        block = next;
    }
    into.received_bytes += from.received_bytes;
    into.packets += from.packets;
    into.first_ns = std::min(into.first_ns, from.first_ns);
    into.last_ns = std::max(into.last_ns, from.last_ns);
    if (into.meta_bytes == 0 && from.meta_bytes > 0) {
        into.meta_bytes = from.meta_bytes;
        into.meta = from.meta;
    }
    CopyStore::join(into.cells, from.cells);
    from.cells = nullptr;
    from.first_block = from.last_block = nullptr;
    from.packets = 0;
    messages_.subtract(MessageCounter::opened, 1);  // the two were one all along
    recycle(from);
}

void MessageTable::release_memory(Message& message) noexcept {
    for (FragmentBlock* block = message.first_block; block != nullptr;) {
        for (std::uint32_t i = 0; i < block->count; ++i) {
            if (block->refs[i].buffer == nullptr) continue;
            release_later(block->refs[i].buffer);
            --buffers_held_;
        }
        FragmentBlock* next = block->next;
        block->next = free_blocks_;
        free_blocks_ = block;
        ++blocks_free_;
        block = next;
    }
    if (message.more_ranges != nullptr) {
        message.more_ranges->next = free_ranges_;
        free_ranges_ = message.more_ranges;
    }
    copies_.give_back(message.cells);
    message.cells = nullptr;
    message.first_block = message.last_block = nullptr;
    message.more_ranges = nullptr;
}

void MessageTable::recycle(Message& message) noexcept {
    release_memory(message);
    if (message.lease != nullptr) *message.lease = 0;
    message.lease = nullptr;
    if (message.has_claim) config_.event_room->give_back();  // it never got to the builder
    message.has_claim = false;
    message.state = MessageState::free;
    message.next = free_messages_;
    free_messages_ = &message;
    ++messages_free_;
}

void MessageTable::reject(void* buffer, PacketCounter counter) noexcept {
    packets_.add(counter);
    release_later(buffer);
}

void MessageTable::release_later(void* buffer) noexcept {
    __builtin_prefetch(buffer, 1);  // whatever it is, giving it back will look at it
    if (to_release_.size() == to_release_.capacity()) end_burst();
    to_release_.push_back(buffer);
}

void MessageTable::end_burst() noexcept {
    if (to_release_.empty()) return;
    release_(to_release_.data(), static_cast<std::uint32_t>(to_release_.size()));
    to_release_.clear();
}

}  // namespace weir::assemble
