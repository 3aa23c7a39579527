#include "assemble/message_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

namespace weir::assemble {

using wire::PacketCounter;

namespace {

/// With fewer messages open, their references are in the second-level cache anyway.
constexpr std::size_t look_far_open = 64;

/// All of it; the header's last line is there already.
void fetch_payload(const wire::Fragment& fragment) noexcept {
    constexpr std::uint32_t line = core::cache_line_bytes;
    for (std::uint32_t at = 0; at < fragment.bytes; at += line)
        __builtin_prefetch(fragment.payload + std::min(at + line, fragment.bytes) - 1);
}

}  // namespace

MessageTable::MessageTable(const Config& config, wire::PacketTally& packets, MessageTally& messages,
                           BufferRelease release)
    : config_(config),
      fetched_bytes_max_(std::min(config.copies.at_once_bytes, CopyConfig::small_bytes)),
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

/// For each packet the message that it probably joins, which may be any, so that nothing but the guess is looked at
/// here.
void MessageTable::look_ahead(const Arrivals& burst, Guesses& guesses) noexcept {
    const std::size_t count = burst.sources.size();
    for (std::size_t i = 0; i < count; ++i) {
        Source& from = open_.source(burst.sources[i]);
        const std::uint64_t number = from.numbers.guess_of(burst.fragments[i].number);
        Message* message = open_.index().guess(MessageIndex::key_of(burst.sources[i], number, from.epoch));
        __builtin_prefetch(message, 1);
        if (burst.fragments[i].bytes <= fetched_bytes_max_) fetch_payload(burst.fragments[i]);
        guesses[i] = {message, &from, number};
    }
    if (open_.index().size() < look_far_open) return;
    for (std::size_t i = 0; i < count; ++i)
        if (guesses[i].message != nullptr) prefetch_place(*guesses[i].message);
}

void MessageTable::add_burst(const Arrivals& burst) noexcept {
    const auto count = static_cast<std::uint32_t>(burst.sources.size());
    const auto [sources, fragments, buffers, times] = burst;
    Guesses guesses;
    look_ahead(burst, guesses);
    // None takes more than one place.
    const bool roomy = has_room(count);
    std::uint32_t placed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (roomy && place_regular(guesses[i], sources[i], fragments[i], buffers[i], times[i])) [[likely]] {
            ++placed;
            continue;
        }
        // Counted before anything can become of them.
        packets_.add(PacketCounter::in_flight, std::exchange(placed, 0));
        add_any(sources[i], fragments[i], buffers[i], times[i]);
        // What opens moves its source on, and narrow numbers may mean others then.
        const Source& moved = *guesses[i].from;
        if (!moved.numbers.are_narrow()) continue;
        for (std::uint32_t later = i + 1; later < count; ++later)
            if (guesses[later].from == &moved)
                guesses[later].number = guesses[later].from->numbers.guess_of(fragments[later].number);
    }
    packets_.add(PacketCounter::in_flight, placed);
}

/// The way of nearly every packet, for which there is room. False: it is odd, or the guess is wrong, and nothing has
/// been done.
inline bool MessageTable::place_regular(const Guess& guess, std::uint32_t source, const wire::Fragment& fragment,
                                        void* buffer, TimeNs now) noexcept {
    if (guess.message == nullptr) return false;
    Message& message = *guess.message;
    const Source& from = *guess.from;
    // Compared at once. What is open is of its source's epoch.
    const std::uint64_t odd = (message.number ^ guess.number) | (message.standing() ^ Message::open_standing(source)) |
                              (message.total ^ fragment.total) | std::uint64_t{!fragment.total_known} | fragment.sender;
    if (odd != 0 || now >= from.due_ns || from.probation.is_going_on()) [[unlikely]]
        return false;
    if (!ReceivedRanges::add_regular(message, fragment.offset, fragment.bytes)) return false;
    memory_.put(message, buffer, fragment.payload, fragment.offset, fragment.bytes, now);
    if (message.received_bytes == message.total) open_.whole(message, now);
    return true;
}

void MessageTable::add_any(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept {
    if (Source& from = open_.source(source); now >= from.due_ns) open_.expire(from, now);
    Message* message = nullptr;
    const PacketCounter verdict = admit(source, fragment, origin_of(fragment, fragment.bytes), 1, now, message);
    if (verdict != PacketCounter::in_flight) return reject(buffer, verdict);
    commit(*message, fragment, buffer, now);
}

void MessageTable::add_pieces(std::uint32_t source, const wire::Fragment& fragment, std::span<const Piece> pieces,
                              TimeNs now, PiecesAre are) noexcept {
    const bool together = are == PiecesAre::one_packet;
    if (Source& from = open_.source(source); now >= from.due_ns) open_.expire(from, now);
    Message* message = nullptr;
    // What fragment.payload points to may be a copy of the headers, with little after them.
    wire::Fragment first = fragment;
    first.payload = pieces.front().data;
    const Origin origin = origin_of(first, pieces.front().bytes);
    first.payload = nullptr;  // there is no one place with all of it
    const PacketCounter verdict = admit(source, first, origin, static_cast<std::uint32_t>(pieces.size()), now, message);
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
PacketCounter MessageTable::admit(std::uint32_t source, const wire::Fragment& fragment, Origin origin,
                                  std::uint32_t buffers, TimeNs now, Message*& message) noexcept {
    Source& from = open_.source(source);
    // Everything that can refuse the packet comes first.
    const std::uint64_t end = std::uint64_t{fragment.offset} + fragment.bytes;
    if (fragment.total_known ? (end > fragment.total || fragment.total > config_.message_bytes_max)
                             : end > config_.message_bytes_max)
        return fragment.total_known && end > fragment.total ? PacketCounter::malformed_range
                                                            : PacketCounter::malformed_message_size;
    if (fragment.bytes == 0 && !(fragment.total_known && fragment.total == 0))
        return PacketCounter::malformed_payload_length;
    PacketCounter fate = PacketCounter::no_room;
    message = find_or_open(source, fragment, origin, now, fate);
    if (message == nullptr) return fate;
    const bool probation = message->state == MessageState::probation;
    if (!has_room(buffers)) {
        const PacketCounter end = probation ? message->fallback : PacketCounter::no_room;
        probation ? open_.cancel(*message) : open_.refuse_open(*message, now);
        return end;
    }
    const PacketCounter verdict = check(*message, fragment, origin);
    if (probation) return admit_on_probation(*message, verdict, fate);
    if (verdict == PacketCounter::in_flight && from.probation.is_going_on()) from.probation.something_new();
    return verdict;
}

/// What is late stays late, whatever else is wrong with it. With one packet that is no copy, the message is none.
PacketCounter MessageTable::admit_on_probation(Message& message, PacketCounter verdict, PacketCounter fate) noexcept {
    const bool contradicts = fate == PacketCounter::conflict || verdict == PacketCounter::conflict;
    const PacketCounter end =
        contradicts && message.fallback == PacketCounter::duplicate ? PacketCounter::conflict : message.fallback;
    if (verdict != PacketCounter::in_flight) return end;
    message.fallback = end;
    return verdict;
}

Message* MessageTable::find_or_open(std::uint32_t source, const wire::Fragment& fragment, Origin origin, TimeNs now,
                                    PacketCounter& verdict) noexcept {
    Source& from = open_.source(source);
    const std::uint64_t number = from.numbers.number_of(fragment.number);
    const bool restarting = from.probation.is_restarting(number);
    Message* message = open_.index().find(source, number, from.epoch);
    if (message != nullptr && !restarting) return message;
    std::optional<PacketCounter> fate =
        message != nullptr ? PacketCounter::late : OpenMessages::fate_of(from, number, restarting);
    if (fate) fate = OpenMessages::fate_of_packet(*fate, from, number, fragment, origin);
    if (fate.has_value() && is_refusal(*fate) && now < from.refused_until_ns) {
        verdict = *fate;
        return nullptr;
    }
    const bool room = has_room(1);
    if (fate.has_value()) {
        verdict = *fate;
        message = open_.index().find(source, number, from.epoch + 1);
        if (message != nullptr && message->origin.sender != origin.sender) return nullptr;
        return message != nullptr || !room ? message : open_.open_probation(source, number, *fate, origin, now);
    }
    message = room ? open_.open(source, number, fragment, origin, now) : nullptr;
    if (message == nullptr) {
        open_.refuse(source, number, now);
        verdict = PacketCounter::no_room;
    }
    return message;
}

/// Whether the packet fits its message: in_flight, or where it is counted. Takes its range if it does.
PacketCounter MessageTable::check(Message& message, const wire::Fragment& fragment, Origin origin) noexcept {
    const std::uint32_t end = fragment.offset + fragment.bytes;
    if (fragment.sender != message.origin.sender) return PacketCounter::conflict;
    // On probation; nothing is open and complete.
    if (message.complete)
        return is_copy(message, fragment, origin) ? PacketCounter::duplicate : PacketCounter::conflict;
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
            return is_copy(message, fragment, origin) ? PacketCounter::duplicate : PacketCounter::conflict;
        case RangeResult::conflict:
            return PacketCounter::conflict;
        case RangeResult::too_fragmented:
            return PacketCounter::too_fragmented;
    }
    return PacketCounter::in_flight;
}

/// Of a packet whose range is there: nothing shows that it is another one than that which brought it. Payload is looked
/// at where it came in one piece.
bool MessageTable::is_copy(Message& message, const wire::Fragment& fragment, Origin origin) noexcept {
    if (fragment.fresh || !may_be_copies(message.origin, origin)) return false;
    if (fragment.payload == nullptr) return true;
    const FragmentRef* const there = MessageMemory::find(message, fragment.offset, fragment.bytes);
    return there == nullptr || std::memcmp(there->data, fragment.payload, fragment.bytes) == 0;
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
