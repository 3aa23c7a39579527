#include "roce/responder/frame_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"
#include "core/units.hpp"
#include "roce/message_header.hpp"
#include "roce/psn.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::RangeResult;
using wire::PacketCounter;
using wire::RocePacket;

namespace {

constexpr std::uint64_t line_bytes = core::cache_line_bytes;

/// From one buffer to the next, with room to let what comes after a header begin with a cache line.
std::uint64_t step_of(const Region& region) noexcept {
    return (region.bytes + 2 * line_bytes - 1) / line_bytes * line_bytes;
}

MessageSource config_of(std::span<const MessageSource> messages, std::uint32_t source) {
    const auto at = std::ranges::find(messages, source, &MessageSource::source);
    MessageSource config = at != messages.end() ? *at : MessageSource{.source = source};
    MessageHeader::check(config);
    return config;
}

}  // namespace

std::uint64_t FrameMemory::memory_bytes(const Region& region) noexcept {
    return region.backed ? region.count * step_of(region) + line_bytes : 0;
}

std::uint64_t FrameMemory::memory_bytes(const QueuePair& queue_pair) noexcept {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < queue_pair.region_count; ++i) bytes += memory_bytes(queue_pair.regions[i]);
    return bytes;
}

FrameMemory::FrameMemory(std::vector<Responder::SourceConfig>& sources, std::span<const MessageSource> messages,
                         TimeNs timeout_ns, assemble::MessageTable& table, bool touch)
    : timeout_ns_(timeout_ns), table_(table) {
    for (Responder::SourceConfig& source : sources) {
        if (memory_bytes(source.queue_pair) == 0) continue;
        senders_.push_back(std::make_unique<Sender>());
        Sender& sender = *senders_.back();
        if (source.source >= sender_by_source_.size()) sender_by_source_.resize(source.source + 1);
        sender_by_source_[source.source] = &sender;
        sender.config = config_of(messages, source.source);
        sender.loses = source.queue_pair.service != Service::rc;
        for (std::uint32_t i = 0; i < source.queue_pair.region_count; ++i)
            if (source.queue_pair.regions[i].backed) add(source.queue_pair.regions[i], sender, touch);
    }
}

void FrameMemory::add(Region& region, Sender& sender, bool touch) {
    auto* memory = static_cast<std::byte*>(std::calloc(1, memory_bytes(region)));
    if (memory == nullptr) core::refuse_memory(memory_bytes(region));
    if (touch) core::touch(memory, memory_bytes(region));
    memory_.emplace_back(memory);
    lent_.push_back(std::make_unique<std::uint8_t[]>(region.count));
    buffers_.push_back(std::make_unique<Buffer[]>(region.count));
    region.lent = lent_.back().get();
    const std::uint32_t header_bytes =
        sender.config.number_by == NumberBy::format ? sender.config.context.header_bytes : 0;
    memory += line_bytes - (reinterpret_cast<std::uintptr_t>(memory) + header_bytes) % line_bytes;
    for (std::uint32_t at = 0; at < region.count; ++at) {
        Buffer& buffer = buffers_.back()[at];
        buffer.memory = memory + at * step_of(region);
        buffer.lent = lent_.back().get() + at;
        buffer.bytes = static_cast<std::uint32_t>(region.bytes);
        buffer.sender = &sender;
    }
    blocks_.push_back({region.lent, buffers_.back().get(), sender.config.source});
}

void FrameMemory::tell(std::uint32_t source, QueuePair& queue_pair) const noexcept {
    auto block = std::ranges::find(blocks_, source, &Block::source);  // its regions follow each other
    for (std::uint32_t i = 0; i < queue_pair.region_count; ++i) {
        if (!queue_pair.regions[i].backed) continue;
        if (block == blocks_.end() || block->source != source) return;
        queue_pair.regions[i].lent = block->lent;
        ++block;
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

bool FrameMemory::begin(Buffer& at, std::uint32_t psn, TimeNs now) noexcept {
    at.message = table_.open_unbound(at.sender->config.source, now);
    if (at.message == nullptr) return false;
    at.first_ns = now;
    at.first_psn = psn;
    at.first_written = at.sender->written;
    at.previous = last_;
    at.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &at;
    last_ = &at;
    return true;
}

void FrameMemory::write(const Ruling& ruling, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    Buffer* at = buffer_of(*ruling.region, ruling.va);
    if (at == nullptr) return table_.reject(buffer, PacketCounter::no_room);
    ++at->sender->written;
    if (!table_.has_room(1) || (at->message == nullptr && !begin(*at, packet.psn, now)))
        return refuse(*at, packet, buffer);
    const auto offset = static_cast<std::uint32_t>(ruling.region->offset_of(ruling.va));
    RangeResult result = RangeResult::added;
    if (packet.bytes > 0) result = table_.add_range(*at->message, offset, offset + packet.bytes);
    if ((result == RangeResult::duplicate || result == RangeResult::conflict) && has_lost(*at, packet.psn)) {
        abandon(*at, PacketCounter::unbound);
        if (!begin(*at, packet.psn, now)) return refuse(*at, packet, buffer);
        result = table_.add_range(*at->message, offset, offset + packet.bytes);
    }
    if (result == RangeResult::added) {
        if (packet.bytes > 0) std::memcpy(at->memory + offset, packet.payload, packet.bytes);
        table_.append_kept(*at->message, buffer, at->memory + offset, offset, packet.bytes, now);
    } else {
        table_.reject(buffer, result == RangeResult::duplicate  ? PacketCounter::duplicate
                              : result == RangeResult::conflict ? PacketCounter::conflict
                                                                : PacketCounter::too_fragmented);
    }
    if (packet.has_immediate) end(*at, packet, now);
}

/// There is no room for it: as if it had been lost on the way. A frame that loses its end like that is none.
void FrameMemory::refuse(Buffer& at, const RocePacket& packet, void* buffer) noexcept {
    --at.sender->written;
    if (packet.has_immediate && at.message != nullptr) abandon(at, PacketCounter::unbound);
    table_.reject(buffer, PacketCounter::no_room);
}

/// Whether packets of the queue pair are missing between the frame's first one and this one, the newest, and will not
/// come again.
bool FrameMemory::has_lost(const Buffer& at, std::uint32_t psn) noexcept {
    const auto came = static_cast<std::int64_t>(at.sender->written - at.first_written);
    return at.sender->loses && psn_distance(psn, at.first_psn) != came;
}

/// Whether all that is in the buffer is of the frame that this packet ends.
bool FrameMemory::is_one_frame(const Buffer& at, std::uint32_t psn) noexcept {
    Sender& sender = *at.sender;
    if (!sender.loses) return true;
    const std::int32_t psns = psn_distance(psn, at.first_psn) + 1;
    if (has_lost(at, psn)) return psns > 0 && psns <= sender.frame_psns;
    if (at.message->received_bytes == at.bytes)
        sender.frame_psns = sender.frame_psns > 0 ? std::min(sender.frame_psns, psns) : psns;
    return true;
}

wire::Verdict FrameMemory::take_header(Buffer& at, std::uint32_t immediate, std::uint64_t& number) noexcept {
    const MessageSource& from = at.sender->config;
    Message& message = *at.message;
    const std::uint32_t header_bytes = from.context.header_bytes;
    const bool came =
        message.range_count > 0 && message.range_data()->begin == 0 && message.range_data()->end >= header_bytes;
    if (!came) return PacketCounter::unbound;
    wire::Fragment fragment;
    if (const wire::Verdict verdict = MessageHeader::read(from, at.memory, at.bytes, fragment); verdict != wire::ok)
        return verdict;
    if (static_cast<std::uint32_t>(fragment.number) != immediate) return PacketCounter::conflict;
    number = fragment.number;
    MessageHeader::take_out(message, at.memory, header_bytes);
    MessageHeader::shift_ranges(message, header_bytes);
    return wire::ok;
}

void FrameMemory::unlink(Buffer& at) noexcept {
    (at.previous != nullptr ? at.previous->next : first_) = at.next;
    (at.next != nullptr ? at.next->previous : last_) = at.previous;
    at.previous = at.next = nullptr;
    at.message = nullptr;
}

void FrameMemory::end(Buffer& at, const RocePacket& packet, TimeNs now) noexcept {
    if (!is_one_frame(at, packet.psn)) return abandon(at, PacketCounter::unbound);
    std::uint64_t number = packet.immediate;
    std::uint32_t header_bytes = 0;
    if (at.sender->config.number_by == NumberBy::format) {
        const wire::Verdict verdict = take_header(at, packet.immediate, number);
        if (verdict != wire::ok) return abandon(at, verdict);
        header_bytes = at.sender->config.context.header_bytes;
    }
    Message& message = *at.message;
    message.total = at.bytes - header_bytes;
    message.total_known = true;
    message.total_ns = now;
    message.complete = message.received_bytes == message.total;
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
        if (at->sender->config.source == source) abandon(*at, PacketCounter::unbound);
        at = next;
    }
    // Another sender may cut its frames into fewer packets.
    if (Sender* sender = sender_of(source); sender != nullptr) sender->frame_psns = 0;
}

FrameMemory::Sender* FrameMemory::sender_of(std::uint32_t source) noexcept {
    return source < sender_by_source_.size() ? sender_by_source_[source] : nullptr;
}

void FrameMemory::pass_by(std::uint32_t source) noexcept {
    if (Sender* sender = sender_of(source); sender != nullptr) ++sender->written;
}

void FrameMemory::finish() noexcept {
    while (first_ != nullptr) abandon(*first_, PacketCounter::unbound);
}

}  // namespace weir::roce
