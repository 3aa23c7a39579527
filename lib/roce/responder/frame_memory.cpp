#include "roce/responder/frame_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/resident_memory.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::RangeResult;
using wire::PacketCounter;
using wire::RocePacket;

std::uint64_t FrameMemory::memory_bytes(const QueuePair& queue_pair) noexcept {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < queue_pair.region_count; ++i)
        if (queue_pair.regions[i].backed) bytes += queue_pair.regions[i].count * queue_pair.regions[i].bytes;
    return bytes;
}

FrameMemory::FrameMemory(std::vector<Responder::SourceConfig>& sources, TimeNs timeout_ns,
                         assemble::MessageTable& table, bool touch)
    : timeout_ns_(timeout_ns), table_(table) {
    for (Responder::SourceConfig& source : sources)
        for (std::uint32_t i = 0; i < source.queue_pair.region_count; ++i) {
            Region& region = source.queue_pair.regions[i];
            if (!region.backed) continue;
            auto* memory = static_cast<std::byte*>(std::calloc(region.count, region.bytes));
            if (memory == nullptr) throw std::bad_alloc();
            if (touch) core::touch(memory, region.count * region.bytes);
            memory_.emplace_back(memory);
            lent_.push_back(std::make_unique<std::uint8_t[]>(region.count));
            buffers_.push_back(std::make_unique<Buffer[]>(region.count));
            region.lent = lent_.back().get();
            for (std::uint32_t at = 0; at < region.count; ++at) {
                Buffer& buffer = buffers_.back()[at];
                buffer.memory = memory + at * region.bytes;
                buffer.lent = lent_.back().get() + at;
                buffer.bytes = static_cast<std::uint32_t>(region.bytes);
                buffer.source = source.source;
            }
            blocks_.push_back({region.lent, buffers_.back().get()});
        }
}

FrameMemory::Buffer* FrameMemory::buffer_of(const Region& region, std::uint64_t va) const noexcept {
    const auto at = std::ranges::find(blocks_, region.lent, &Block::lent);
    return at != blocks_.end() ? at->first + region.index_of(va) : nullptr;
}

bool FrameMemory::collects(const Region& region, std::uint64_t va) const noexcept {
    const Buffer* at = buffer_of(region, va);
    return at != nullptr && at->message != nullptr;
}

bool FrameMemory::begin(Buffer& at, TimeNs now) noexcept {
    at.message = table_.open_unbound(at.source, now);
    if (at.message == nullptr) return false;
    at.first_ns = now;
    at.previous = last_;
    at.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &at;
    last_ = &at;
    return true;
}

void FrameMemory::write(const Ruling& ruling, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    Buffer* at = buffer_of(*ruling.region, ruling.va);
    if (at == nullptr || !table_.has_room(1) || (at->message == nullptr && !begin(*at, now)))
        return table_.reject(buffer, PacketCounter::no_room);
    const auto offset = static_cast<std::uint32_t>(ruling.region->offset_of(ruling.va));
    RangeResult result = RangeResult::added;
    if (packet.bytes > 0) result = table_.add_range(*at->message, offset, offset + packet.bytes);
    if (result == RangeResult::added) {
        if (packet.bytes > 0) std::memcpy(at->memory + offset, packet.payload, packet.bytes);
        table_.append_kept(*at->message, buffer, at->memory + offset, offset, packet.bytes, now);
    } else {
        table_.reject(buffer, result == RangeResult::duplicate  ? PacketCounter::duplicate
                              : result == RangeResult::conflict ? PacketCounter::conflict
                                                                : PacketCounter::too_fragmented);
    }
    if (packet.has_immediate) deliver(*at, packet.immediate, now);
}

void FrameMemory::unlink(Buffer& at) noexcept {
    (at.previous != nullptr ? at.previous->next : first_) = at.next;
    (at.next != nullptr ? at.next->previous : last_) = at.previous;
    at.previous = at.next = nullptr;
    at.message = nullptr;
}

void FrameMemory::deliver(Buffer& at, std::uint32_t number, TimeNs now) noexcept {
    Message& message = *at.message;
    message.total = at.bytes;
    message.total_known = true;
    message.total_ns = now;
    message.complete = message.received_bytes == at.bytes;
    *at.lent = 1;
    message.lease = at.lent;
    unlink(at);
    table_.bind_and_deliver(message, number, now);
}

void FrameMemory::abandon(Buffer& at, PacketCounter counter) noexcept {
    Message& message = *at.message;
    unlink(at);
    table_.abandon(message, counter);
}

void FrameMemory::expire(TimeNs now) noexcept {
    while (first_ != nullptr && now - first_->first_ns >= timeout_ns_) abandon(*first_, PacketCounter::unbound);
}

void FrameMemory::evict_oldest() noexcept {
    abandon(*first_, PacketCounter::unbound);
}

void FrameMemory::forget(std::uint32_t source) noexcept {
    for (Buffer* at = first_; at != nullptr;) {
        Buffer* next = at->next;
        if (at->source == source) abandon(*at, PacketCounter::unbound);
        at = next;
    }
}

void FrameMemory::finish() noexcept {
    while (first_ != nullptr) abandon(*first_, PacketCounter::unbound);
}

}  // namespace weir::roce
