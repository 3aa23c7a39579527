#include "stages/rx/rx_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::stages {

using assemble::Message;
using fabric::BuiltBlock;
using wire::PacketCounter;

RxBlocks::RxBlocks(fabric::BlockQueue* queue, std::uint32_t blocks_max, Parts parts)
    : queue_(queue), parts_(parts), lent_(queue != nullptr ? blocks_max : 0), ended_(queue == nullptr) {}

RxBlocks::Taken RxBlocks::take(std::uint32_t messages) noexcept {
    Taken taken;
    if (ended_) return taken;
    give_back_free();
    // A message has no more pieces than there are ranges, so this is room for any.
    constexpr std::uint32_t room = assemble::RangeBlock::capacity / assemble::FragmentBlock::capacity + 2;
    while (taken.work < messages && parts_.table.has_room(room) && (block_ != nullptr || next_block())) {
        const std::span<const BuiltBlock::Event> events = block_->events();
        if (event_ == events.size()) {
            block_ = nullptr;  // it is in lent_ until its messages have been recycled
            continue;
        }
        const BuiltBlock::Event& event = events[event_];
        const std::span<const BuiltBlock::Message> all = block_->messages(event);
        deliver(all[message_], taken);
        ++taken.work;
        if (++message_ < all.size()) continue;
        parts_.table.end_event(event.number, event.cause, taken.newest_ns);
        message_ = 0;
        ++event_;
    }
    return taken;
}

/// Blocks of which nothing is lent any more.
void RxBlocks::give_back_free() noexcept {
    for (std::size_t i = 0; i < lent_count_;) {
        Lent& lent = lent_[i];
        const std::span<const std::uint8_t> leases = lent.block->leases();
        while (lent.free < leases.size() && leases[lent.free] == 0) ++lent.free;
        if (lent.free < leases.size() || lent.block == block_) {
            ++i;
            continue;
        }
        queue_->taken.push(lent.block);  // there are as many places as blocks
        lent = lent_[--lent_count_];
    }
}

bool RxBlocks::next_block() noexcept {
    const bool last = queue_->ended.load(std::memory_order_acquire);
    std::array<BuiltBlock*, 1> next;
    if (lent_count_ == lent_.size()) return false;
    if (queue_->built.pop(next) == 0) {
        ended_ = last && lent_count_ == 0;
        return false;
    }
    block_ = next[0];
    lent_[lent_count_++] = {block_, 0};
    event_ = 0;
    message_ = 0;
    return true;
}

/// As a message of a transport that learns numbers late: all of it at once.
void RxBlocks::deliver(const BuiltBlock::Message& from, Taken& taken) noexcept {
    assemble::MessageTable& table = parts_.table;
    const core::TimeNs now = from.last_ns;
    taken.newest_ns = taken.newest_ns == core::never ? now : std::max(taken.newest_ns, now);
    taken.packets += from.packets;
    parts_.sources.count(from.source, from.packets);
    Message& message = *table.open_unbound(from.source, from.first_ns);
    bool fits = true;
    for (const BuiltBlock::Piece& piece : block_->pieces(from)) {
        fits = table.append(message, nullptr, piece.data, piece.offset, piece.bytes, now);
        if (fits && piece.bytes > 0)
            fits = table.add_range(message, piece.offset, piece.offset + piece.bytes) == assemble::RangeResult::added;
        if (!fits) break;
        taken.bytes += piece.bytes;
    }
    message.lease = &block_->leases()[block_->place_of(from)];
    table.set_packets(message, from.packets);
    if (!fits) return table.abandon(message, PacketCounter::too_fragmented);
    message.total = from.total;
    message.total_known = from.total_known;
    message.total_ns = from.first_ns;
    message.complete = from.complete;
    message.last_ns = from.last_ns;
    message.meta_bytes = from.meta_bytes;
    std::memcpy(message.meta.data(), from.meta, from.meta_bytes);
    table.bind_and_deliver(message, from.number, now);
}

}  // namespace weir::stages
