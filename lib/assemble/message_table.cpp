#include "assemble/message_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>

namespace weir::assemble {

using wire::PacketCounter;

MessageTable::MessageTable(const Config& config, wire::PacketTally& packets, MessageTally& messages,
                           BufferRelease release)
    : config_(config),
      packets_(packets),
      messages_(messages),
      memory_(config, packets, release),
      ranges_(config.range_blocks, config.touch),
      open_(config, packets, messages, memory_, ranges_) {}

MessageTable::~MessageTable() = default;

std::uint64_t MessageTable::memory_bytes(const Config& config) noexcept {
    return OpenMessages::memory_bytes(config) + MessageMemory::memory_bytes(config) +
           ReceivedRanges::memory_bytes(config.range_blocks);
}

void MessageTable::look_ahead(std::span<const std::uint32_t> sources, const wire::Fragment* fragments,
                              Message** expected) noexcept {
    std::fill_n(expected, sources.size(), nullptr);
    if (open_.index().size() < look_ahead_open) return;
    std::array<core::NumberKey, look_ahead_max> keys;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& from = open_.source(sources[i]);
        keys[i] = MessageIndex::key_of(sources[i], from.numbers.number_of(fragments[i].number), from.epoch);
        open_.index().prefetch(keys[i]);
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (Message* found = open_.index().find(keys[i]); found != nullptr) __builtin_prefetch(expected[i] = found, 1);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (expected[i] == nullptr || expected[i]->last_block == nullptr) continue;
        const FragmentBlock& block = *expected[i]->last_block;
        __builtin_prefetch(&block, 1);
        __builtin_prefetch(&block.refs[expected[i]->packets % FragmentBlock::capacity], 1);
    }
}

/// The open message of this number, or nullptr. `expected` may have been delivered since it was foreseen, and its slot
/// may be another's.
Message* MessageTable::find_open(const Source& from, std::uint32_t source, std::uint64_t number,
                                 Message* expected) noexcept {
    if (from.current != nullptr && from.current->number == number) return from.current;
    if (expected != nullptr && expected->number == number && expected->source == source &&
        expected->epoch == from.epoch && expected->state == MessageState::open)
        return expected;
    return open_.index().find(source, number, from.epoch);
}

/// Whether the packet lies right after the one range of a message that agrees with it.
bool MessageTable::continues(const Message& message, const wire::Fragment& fragment) noexcept {
    return message.range_count == 1 && message.slot_bytes == 0 && message.more_ranges == nullptr &&
           message.ranges[0].end == fragment.offset && message.total_known && fragment.total_known &&
           fragment.total == message.total && fragment.bytes > 0 && fragment.bytes <= message.total - fragment.offset;
}

void MessageTable::add(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now,
                       Message* expected) noexcept {
    Source& from = open_.source(source);
    if (now >= from.due_ns) open_.expire(from, now);
    if (!from.probation.is_going_on()) {
        const std::uint64_t number = from.numbers.number_of(fragment.number);
        expected = find_open(from, source, number, expected);
        if (expected != nullptr && continues(*expected, fragment) && has_room(1)) {
            // Most packets come right after the one before; all that follows below would say yes.
            from.current = expected;
            expected->ranges[0].end += fragment.bytes;
            return commit(*expected, fragment, buffer, now);
        }
    }
    Message* message = nullptr;
    const PacketCounter verdict = admit(source, fragment, 1, now, expected, message);
    if (verdict != PacketCounter::in_flight) return reject(buffer, verdict);
    commit(*message, fragment, buffer, now);
}

void MessageTable::add_pieces(std::uint32_t source, const wire::Fragment& fragment, std::span<const Piece> pieces,
                              TimeNs now, PiecesAre are) noexcept {
    const bool together = are == PiecesAre::one_packet;
    if (Source& from = open_.source(source); now >= from.due_ns) open_.expire(from, now);
    Message* message = nullptr;
    const PacketCounter verdict =
        admit(source, fragment, static_cast<std::uint32_t>(pieces.size()), now, nullptr, message);
    if (verdict != PacketCounter::in_flight) {
        for (const Piece& piece : pieces) {
            if (together && &piece != pieces.data())
                give_back(piece.buffer);
            else
                reject(piece.buffer, verdict);
        }
        return;
    }
    describe(*message, fragment, now);
    std::uint32_t offset = fragment.offset;
    for (const Piece& piece : pieces) {
        if (!append(*message, piece.buffer, piece.data, offset, piece.bytes, now)) {
            assert(false);  // admit has asked for room for all of them
            reject(piece.buffer, PacketCounter::no_room);
        } else if (together && &piece != pieces.data()) {
            memory_.join_last(*message);
        }
        offset += piece.bytes;
    }
    deliver_if_whole(*message, now);
}

/// Finds or opens the message that a payload in `buffers` buffers joins, and takes its range: in_flight, or the counter
/// in which it ends.
PacketCounter MessageTable::admit(std::uint32_t source, const wire::Fragment& fragment, std::uint32_t buffers,
                                  TimeNs now, Message* expected, Message*& message) noexcept {
    Source& from = open_.source(source);
    // Everything that can refuse the packet comes first.
    const std::uint64_t end = std::uint64_t{fragment.offset} + fragment.bytes;
    if (fragment.total_known ? (end > fragment.total || fragment.total > config_.message_bytes_max)
                             : end > config_.message_bytes_max)
        return fragment.total_known && end > fragment.total ? PacketCounter::malformed_range
                                                            : PacketCounter::malformed_message_size;
    if (fragment.bytes == 0 && !(fragment.total_known && fragment.total == 0))
        return PacketCounter::malformed_payload_length;
    PacketCounter verdict = PacketCounter::no_room;
    message = find_or_open(source, fragment, now, expected, verdict);
    if (message == nullptr) return verdict;
    const bool probation = message->state == MessageState::probation;
    if (!has_room(buffers)) {
        verdict = probation ? message->fallback : PacketCounter::no_room;
        probation ? open_.cancel(*message) : open_.refuse_open(*message, now);
        return verdict;
    }
    verdict = check(*message, fragment);
    // What is late stays late, whatever else is wrong with it.
    if (verdict != PacketCounter::in_flight) return probation ? *contradicts(message->fallback, fragment) : verdict;
    if (!probation && from.probation.is_going_on()) from.probation.something_new();
    return PacketCounter::in_flight;
}

Message* MessageTable::find_or_open(std::uint32_t source, const wire::Fragment& fragment, TimeNs now, Message* expected,
                                    PacketCounter& verdict) noexcept {
    Source& from = open_.source(source);
    const std::uint64_t number = from.numbers.number_of(fragment.number);
    const bool restarting = from.probation.is_restarting(number);
    Message* message = find_open(from, source, number, expected);
    if (message != nullptr && !restarting) {
        from.current = message;
        return message;
    }
    std::optional<PacketCounter> fate =
        message != nullptr ? PacketCounter::late : OpenMessages::fate_of(from, number, restarting);
    fate = contradicts(fate, fragment);
    if (fate.has_value() && is_refusal(*fate) && now < from.refused_until_ns) {
        verdict = *fate;
        return nullptr;
    }
    const bool room = has_room(1);
    if (fate.has_value()) {
        verdict = *fate;
        message = open_.index().find(source, number, from.epoch + 1);
        return message != nullptr || !room ? message : open_.open_probation(source, number, *fate, now);
    }
    message = room ? open_.open(source, number, fragment, now) : nullptr;
    if (message == nullptr) {
        open_.refuse(source, number, now);
        verdict = PacketCounter::no_room;
        return nullptr;
    }
    from.current = message;
    return message;
}

/// A packet that has not been here before is no duplicate: the sender uses the number of a whole message twice.
std::optional<PacketCounter> MessageTable::contradicts(std::optional<PacketCounter> fate,
                                                       const wire::Fragment& fragment) noexcept {
    return fate == PacketCounter::duplicate && fragment.fresh ? PacketCounter::conflict : fate;
}

/// Whether the packet fits its message: in_flight, or where it is counted. Takes its range if it does.
PacketCounter MessageTable::check(Message& message, const wire::Fragment& fragment) noexcept {
    const std::uint32_t end = fragment.offset + fragment.bytes;
    if (message.complete) return PacketCounter::duplicate;  // on probation; nothing is open and complete
    if (fragment.total_known && !message.total_known && message.range_count > 0 &&
        message.range_data()[message.range_count - 1].end > fragment.total)
        return PacketCounter::conflict;  // declared for the first time, after packets that do not fit
    if (message.total_known && ((fragment.total_known && fragment.total != message.total) || end > message.total))
        return PacketCounter::conflict;  // the first declared total wins
    if (fragment.bytes == 0) return PacketCounter::in_flight;
    switch (ranges_.add_place(message, fragment.offset, end)) {
        case RangeResult::added:
            break;
        case RangeResult::duplicate:
            return PacketCounter::duplicate;
        case RangeResult::conflict:
            return PacketCounter::conflict;
        case RangeResult::too_fragmented:
            return PacketCounter::too_fragmented;
    }
    return PacketCounter::in_flight;
}

/// What the payload's header says of the message.
void MessageTable::describe(Message& message, const wire::Fragment& fragment, TimeNs now) noexcept {
    if (fragment.total_known && !message.total_known) {
        message.total_known = true;
        message.total = fragment.total;
        message.total_ns = now;
    }
    if (message.packets == 0 && fragment.header_bytes > 0) {
        message.meta_bytes =
            static_cast<std::uint8_t>(std::min<std::uint32_t>(fragment.header_bytes, Message::meta_bytes_max));
        std::memcpy(message.meta.data(), fragment.header, message.meta_bytes);
    }
}

void MessageTable::commit(Message& message, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept {
    describe(message, fragment, now);
    if (!append(message, buffer, fragment.payload, fragment.offset, fragment.bytes, now)) {
        assert(false);  // there is a block for every buffer, and there was a buffer
        return reject(buffer, PacketCounter::no_room);
    }
    deliver_if_whole(message, now);
}

void MessageTable::deliver_if_whole(Message& message, TimeNs now) noexcept {
    if (message.total_known && message.received_bytes == message.total) open_.whole(message, now);
}

void MessageTable::reject(void* buffer, PacketCounter counter) noexcept {
    packets_.add(counter);
    memory_.give_back(buffer);
}

void MessageTable::append_kept(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                               std::uint32_t bytes, TimeNs now) noexcept {
    static_cast<void>(append(message, nullptr, data, offset, bytes, now));
    memory_.give_back(buffer);
}

void MessageTable::splice(Message& into, Message& from) noexcept {
    memory_.splice(into, from);
    messages_.subtract(MessageCounter::opened, 1);  // the two were one all along
    open_.recycle(from);
}

}  // namespace weir::assemble
