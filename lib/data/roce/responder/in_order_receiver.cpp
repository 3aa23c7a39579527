#include "roce/responder/in_order_receiver.hpp"

#include <algorithm>

#include "core/one_writer.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using wire::PacketCounter;
using wire::RocePacket;
using wire::Verdict;

InOrderReceiver::InOrderReceiver(const Config& config, MessageTable& table)
    : timeout_ns_(config.timeout_ns), psn_window_(config.psn_window), table_(table) {
    streams_.reserve(config.sources.size());
    for (const MessageSource& from : config.sources) {
        MessageHeader::check(from);
        if (from.source >= slot_by_source_.size()) slot_by_source_.resize(from.source + 1, none);
        slot_by_source_[from.source] = static_cast<std::uint32_t>(streams_.size());
        streams_.emplace_back(from, config.psn_window);
    }
    psn_counts_.resize(streams_.size());
}

InOrderReceiver::Stream& InOrderReceiver::stream_of(std::uint32_t source, const RocePacket& packet) noexcept {
    Stream& stream = streams_[slot_by_source_[source]];
    if (!stream.known) [[unlikely]] {
        stream.known = true;
        counts_of(stream).note_sender(packet, 1);
    }
    return stream;
}

void InOrderReceiver::add(std::uint32_t source, const RocePacket& packet, void* buffer, TimeNs now) noexcept {
    expire(table_.due_by(now));
    Stream& stream = stream_of(source, packet);
    const Psn psn = take_turn(stream, packet, now);
    if (stream.taken.has(psn)) [[unlikely]] {
        // A message that reaches into what was taken before is of another sender than that: it has a hole from here on.
        if (stream.message != nullptr) close(stream, now);
        return table_.reject(buffer, PacketCounter::duplicate);
    }
    if (packet.starts() && stream.message != nullptr) [[unlikely]]
        close(stream, now);  // the Responder lets no message begin within another
    if (!packet.starts() && stream.message == nullptr) [[unlikely]]
        return table_.reject(buffer, stream.fate);
    if (packet.starts()) stream.begin = psn;
    if (!has_place(packet)) [[unlikely]] {
        if (evict_oldest(now) && !packet.starts() && stream.message == nullptr)
            return table_.reject(buffer, stream.fate);  // it was the oldest
        if (!has_place(packet)) return refuse(stream, buffer);
    }
    if (packet.starts()) open(stream, packet, now);
    Message& message = *stream.message;
    static_cast<void>(
        table_.append(message, buffer, packet.payload, message.received_bytes, packet.bytes, now));  // there is place
    if (packet.ends()) complete(stream, packet, now);
}

void InOrderReceiver::skip(std::uint32_t source, const RocePacket& packet, TimeNs now) noexcept {
    expire(table_.due_by(now));
    static_cast<void>(take_turn(stream_of(source, packet), packet, now));
}

void InOrderReceiver::note(std::uint32_t source, const RocePacket& packet) noexcept {
    Stream& stream = stream_of(source, packet);
    stream.account.add(packet.psn, counts_of(stream));
}

/// Returns the packet's PSN, extended.
Psn InOrderReceiver::take_turn(Stream& stream, const RocePacket& packet, TimeNs now) noexcept {
    if (!stream.begun) [[unlikely]] {
        stream.begun = true;
        // Room below, so that extended PSNs stay positive whatever the peer does.
        stream.next = stream.first = (Psn{1} << 40) + packet.psn;
        stream.counting = stream.first_psn.has_value();
        stream.origin = stream.next + psn_distance(stream.first_psn.value_or(packet.psn), packet.psn);
    }
    const Psn psn = stream.next + psn_distance(packet.psn, static_cast<std::uint32_t>(stream.next) & psn_mask);
    if (psn != stream.next) [[unlikely]] {
        // As the Listener has it: further back than is remembered is a sender that begins anew. So far that it looks
        // like ahead is further back still.
        if (psn > stream.next || stream.next - psn > Psn{psn_window_} || !begin_earlier(stream, psn))
            restart(stream, psn, now);
    }
    stream.next = psn + 1;
    stream.account.add(packet.psn, counts_of(stream));
    return psn;
}

/// The peer begins at `psn` after all. A message that it had not finished comes again as a whole. False, and nothing
/// has changed, if it has done so too often for what was taken to be remembered.
bool InOrderReceiver::begin_earlier(Stream& stream, Psn psn) noexcept {
    if (!stream.taken.add(stream.first, stream.message != nullptr ? stream.begin : stream.next)) return false;
    if (stream.message != nullptr) table_.abandon(release(stream), PacketCounter::duplicate);
    stream.first = psn;
    return true;
}

/// Another sender, or the same one from the start: nothing of before says anything about it.
void InOrderReceiver::restart(Stream& stream, Psn psn, TimeNs now) noexcept {
    if (stream.message != nullptr) close(stream, now);
    core::add(counts_of(stream).restarts);
    stream.account.begin_anew();
    stream.first = psn;
    stream.taken = {};
    stream.counting = stream.count_lost = false;
    stream.next_number = 0;
    stream.fate = PacketCounter::unbound;
}

void InOrderReceiver::open(Stream& stream, const RocePacket& packet, TimeNs now) noexcept {
    const auto slot = static_cast<std::uint32_t>(&stream - streams_.data());
    stream.message = table_.open_unbound(stream.config.source, now);
    stream.first_ns = now;
    stream.is_write = packet.is_write;
    stream.dma_length = packet.dma_length;
    stream.previous = last_;
    stream.following = none;
    (last_ != none ? streams_[last_].following : first_) = slot;
    last_ = slot;
    ++collecting_;
}

/// The message ends with it, and so does what still comes of it.
void InOrderReceiver::refuse(Stream& stream, void* buffer) noexcept {
    if (stream.message != nullptr) table_.abandon(release(stream), PacketCounter::no_room);
    stream.fate = PacketCounter::no_room;
    if (stream.counting && stream.begin >= stream.origin) lose_count(stream);
    table_.reject(buffer, PacketCounter::no_room);
}

Message& InOrderReceiver::release(Stream& stream) noexcept {
    (stream.previous != none ? streams_[stream.previous].following : first_) = stream.following;
    (stream.following != none ? streams_[stream.following].previous : last_) = stream.previous;
    --collecting_;
    Message& message = *stream.message;
    stream.message = nullptr;
    return message;
}

void InOrderReceiver::complete(Stream& stream, const RocePacket& last, TimeNs now) noexcept {
    Message& message = release(stream);
    const std::uint32_t total = message.received_bytes;
    const std::uint32_t expected = stream.config.message_bytes;
    const std::optional<std::uint64_t> number = number_of_whole(stream, last, message.packets);
    if (!number) return table_.abandon(message, PacketCounter::unbound);
    if ((stream.is_write && total != stream.dma_length) || (expected != 0 && total != expected))
        return table_.abandon(message, PacketCounter::conflict);
    message.complete = true;
    deliver(stream, message, total, *number, now);
}

void InOrderReceiver::close(Stream& stream, TimeNs now) noexcept {
    Message& message = release(stream);
    stream.fate = PacketCounter::late;
    const std::uint32_t expected = stream.config.message_bytes;
    const std::uint32_t declared = stream.is_write ? stream.dma_length : 0;
    const std::uint32_t total = expected != 0 ? expected : declared;
    if (total != 0 && (message.received_bytes >= total || (declared != 0 && declared != total)))
        return table_.abandon(message, PacketCounter::conflict);
    // Of a first packet without payload nothing can be told.
    const std::optional<std::uint64_t> number =
        message.received_bytes > 0 ? number_of_partial(stream, message, total) : std::nullopt;
    if (!number) return table_.abandon(message, PacketCounter::unbound);
    message.complete = false;
    deliver(stream, message, total, *number, now);
}

/// `total`: 0 where it is not known.
void InOrderReceiver::deliver(Stream& stream, Message& message, std::uint32_t total, std::uint64_t number,
                              TimeNs now) noexcept {
    const bool total_known = total != 0 || message.complete;
    std::uint32_t header_bytes = 0;
    if (stream.config.number_by == NumberBy::format) {
        const Verdict verdict =
            total_known ? header_.strip(stream.config, message, total, number, header_bytes) : PacketCounter::unbound;
        if (verdict != wire::ok) return table_.abandon(message, verdict);
    }
    message.total = total - header_bytes;
    message.total_known = total_known;
    if (message.received_bytes > 0) static_cast<void>(table_.add_range(message, 0, message.received_bytes));
    table_.bind_and_deliver(message, number, now);
}

std::optional<std::uint64_t> InOrderReceiver::number_of_whole(Stream& stream, const RocePacket& last,
                                                              std::uint32_t packets) noexcept {
    switch (stream.config.number_by) {
        case NumberBy::immediate:
            if (last.has_immediate) return last.immediate;
            core::add(counts_of(stream).unnumbered, packets);
            return std::nullopt;
        case NumberBy::format:
            return 0;  // the header says it
        case NumberBy::arrival:
            return stream.next_arrival++;
        case NumberBy::count:
            break;
    }
    return counted(stream, packets);
}

std::optional<std::uint64_t> InOrderReceiver::number_of_partial(Stream& stream, const Message& message,
                                                                std::uint32_t total) noexcept {
    switch (stream.config.number_by) {
        case NumberBy::immediate:
            return std::nullopt;  // it would have been in the last packet
        case NumberBy::format:
            return 0;
        case NumberBy::arrival:
            return stream.next_arrival++;
        case NumberBy::count:
            break;
    }
    if (total != 0) {
        const std::uint32_t bytes = message.received_bytes / message.packets;  // all that came are full
        return counted(stream, (total + bytes - 1) / bytes);
    }
    // Where it ends is not known, and so not how many messages lie before the next one.
    begin_counting(stream);
    if (stream.begin >= stream.origin) lose_count(stream);
    return std::nullopt;
}

void InOrderReceiver::begin_counting(Stream& stream) noexcept {
    if (!stream.counting) stream.origin = stream.begin;
    stream.counting = true;
}

/// NumberBy::count, for a message of so many packets.
std::optional<std::uint64_t> InOrderReceiver::counted(Stream& stream, std::uint32_t packets) noexcept {
    begin_counting(stream);
    if (stream.count_lost || stream.begin < stream.origin) return std::nullopt;
    std::uint64_t number = 0;
    if (stream.config.message_bytes != 0) {
        const auto distance = static_cast<std::uint64_t>(stream.begin - stream.origin);
        if (distance % packets != 0) return std::nullopt;
        number = distance / packets;
    } else {
        number = stream.next_number++;
    }
    stream.count_end = std::max(stream.count_end, stream.count_base + number + 1);
    return stream.count_base + number;
}

/// Where all messages have one size, each has its number whatever was before it.
void InOrderReceiver::lose_count(Stream& stream) noexcept {
    stream.count_lost = stream.count_lost || stream.config.message_bytes == 0;
}

void InOrderReceiver::expire(TimeNs now) noexcept {
    while (first_ != none && now - streams_[first_].first_ns >= timeout_ns_) close(streams_[first_], now);
}

void InOrderReceiver::finish(TimeNs now) noexcept {
    while (evict_oldest(now)) continue;
}

bool InOrderReceiver::evict_oldest(TimeNs now) noexcept {
    if (first_ == none) return false;
    close(streams_[first_], now);
    return true;
}

void InOrderReceiver::begin_pass(TimeNs now) noexcept {
    finish(now);
    for (Stream& stream : streams_) {
        begin_anew(stream, stream.first_psn);
        stream.next_arrival = stream.count_base = stream.count_end = 0;
    }
}

void InOrderReceiver::forget(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn) noexcept {
    Stream& stream = streams_[slot_by_source_[source]];
    if (stream.message != nullptr) close(stream, now);
    begin_anew(stream, first_psn);
}

/// Nothing is known of who sends next.
void InOrderReceiver::begin_anew(Stream& stream, std::optional<std::uint32_t> first_psn) noexcept {
    stream.first_psn = first_psn;
    stream.known = stream.begun = false;
    stream.taken = {};
    stream.fate = PacketCounter::unbound;
    stream.counting = stream.count_lost = false;
    stream.next_number = 0;
    stream.count_base = stream.count_end;
    stream.account.begin_anew();
}

}  // namespace weir::roce
