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

/// Where a packet goes whose range did so.
PacketCounter counter_of_range(RangeResult result) noexcept {
    switch (result) {
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

/// What is due when a packet of this source comes. Messages in sequence end of themselves before their event does, so
/// that no packet of any of them may move its time on without them.
void MessageTable::expire_before(std::uint32_t source, TimeNs now) noexcept {
    Source& from = open_.source(source);
    if (from.in_sequence)
        open_.expire(now);
    else if (now >= from.due_ns)
        open_.expire(from, now);
}

void MessageTable::add_any(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now) noexcept {
    expire_before(source, now);
    Message* message = nullptr;
    const PacketCounter verdict = admit(source, fragment, origin_of(fragment, fragment.bytes), 1, now, message);
    if (verdict == PacketCounter::in_flight)
        commit(*message, fragment, buffer, now);
    else
        reject(buffer, verdict);
    if (fragment.in_sequence) follow_sequence(source, fragment, verdict, message, now);
}

void MessageTable::add_pieces(std::uint32_t source, const wire::Fragment& fragment, std::span<const Piece> pieces,
                              TimeNs now, PiecesAre are) noexcept {
    const bool together = are == PiecesAre::one_packet;
    expire_before(source, now);
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
        if (fragment.in_sequence) follow_sequence(source, fragment, verdict, message, now);
        return;
    }
    std::uint32_t offset = offset_of(*message, fragment);
    describe(*message, fragment, now);
    for (const Piece& piece : pieces) {
        if (!append(*message, piece.buffer, piece.data, offset, piece.bytes, now)) {
            assert(false);  // admit has asked for room for all of them
            reject(piece.buffer, PacketCounter::no_room);
        } else if (together && &piece != pieces.data()) {
            memory_.join_last(*message);
        }
        if (!fragment.in_sequence) offset += piece.bytes;
    }
    if (fragment.in_sequence)
        follow_sequence(source, fragment, verdict, message, now);
    else
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
    PacketCounter end = message.fallback;
    if (end == PacketCounter::duplicate) end = verdict == PacketCounter::conflict ? verdict : fate;
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
    if (fragment.in_sequence) return check_in_sequence(message, fragment);
    if (fragment.total_known && !message.total_known && message.range_count > 0 &&
        message.range_data()[message.range_count - 1].end > fragment.total)
        return PacketCounter::conflict;  // declared for the first time, after packets that do not fit
    if (message.total_known && ((fragment.total_known && fragment.total != message.total) || end > message.total))
        return PacketCounter::conflict;  // the first declared total wins
    if (fragment.bytes == 0) return PacketCounter::in_flight;
    const PacketCounter counter = counter_of_range(ranges_.add_place(message, fragment.offset, end));
    return counter == PacketCounter::duplicate && !is_copy(message, fragment, origin) ? PacketCounter::conflict
                                                                                      : counter;
}

/// The same for a packet whose number is its place.
PacketCounter MessageTable::check_in_sequence(Message& message, const wire::Fragment& fragment) noexcept {
    if (std::uint64_t{message.received_bytes} + fragment.bytes > config_.message_bytes_max)
        return PacketCounter::malformed_message_size;
    const std::optional<std::uint32_t> place = SequenceOrder::place_of(message, fragment.sequence);
    if (!place) return PacketCounter::conflict;
    message.in_sequence = true;
    return counter_of_range(ranges_.add_range(message, *place, *place + 1));
}

/// A packet with a number came, whatever became of it: what lies before it and after it may now be known to be whole.
/// One that contradicts its message says nothing of others either.
void MessageTable::follow_sequence(std::uint32_t source, const wire::Fragment& fragment, PacketCounter verdict,
                                   Message* joined, TimeNs now) noexcept {
    if (verdict == PacketCounter::conflict || verdict == PacketCounter::duplicate) return;
    const Source& from = open_.source(source);
    const bool placed = verdict == PacketCounter::in_flight;
    open_.order().note(source, {placed ? joined->number : from.numbers.guess_of(fragment.number),
                                placed ? joined->epoch : from.epoch, fragment.sequence});
    if (!placed) {
        meet(source, fragment.sequence - 1, now);
        meet(source, fragment.sequence, now);
    } else if (fragment.total == 0) {
        connect(*joined, fragment.sequence, now);
    } else if (SequenceOrder::numbers_of(*joined) == fragment.total) {
        open_.whole(*joined, now);
    }
    end_first(source, now);
}

/// It says that its pulse goes on, or that there is one without data.
void MessageTable::note_heartbeat(std::uint32_t source, const wire::Fragment& fragment, TimeNs now) noexcept {
    const Source& from = open_.source(source);
    if (!from.in_sequence || fragment.total != 0) return;
    expire_before(source, now);
    const std::uint64_t number = from.numbers.guess_of(fragment.number);
    const bool restarted = open_.index().find(source, number, from.epoch) == nullptr &&
                           open_.index().find(source, number, from.epoch + 1) != nullptr;
    const SequenceOrder::Owner owner{number, from.epoch + (restarted ? 1 : 0), fragment.sequence, true};
    open_.order().note(source, owner);
    if (Message* const message = collecting(source, &owner); message != nullptr && message->packets > 0) {
        static_cast<void>(take_heartbeats(*message, fragment.sequence, 1));
        return connect(*message, fragment.sequence, now);
    }
    meet(source, fragment.sequence - 1, now);
    meet(source, fragment.sequence, now);
}

/// From a number of the message on both ways: over heartbeats of its own, to what is something else.
void MessageTable::connect(Message& message, std::uint32_t sequence, TimeNs now) noexcept {
    const std::uint32_t source = message.source;
    const std::uint32_t before = take_heartbeats(message, sequence - 1, ~std::uint32_t{0});
    const std::uint32_t after = take_heartbeats(message, sequence + 1, 1);
    meet(source, before, now);
    meet(source, after - 1, now);
}

/// Makes the numbers of its heartbeats the message's, from `from` on. Returns the first one that is not.
std::uint32_t MessageTable::take_heartbeats(Message& message, std::uint32_t from, std::uint32_t step) noexcept {
    for (;; from += step) {
        const SequenceOrder::Owner* const owner = open_.order().owner(message.source, from);
        if (owner == nullptr || !owner->empty || owner->number != message.number || owner->epoch != message.epoch)
            return from;
        const std::optional<std::uint32_t> place = SequenceOrder::place_of(message, from);
        if (!place || ranges_.add_range(message, *place, *place + 1) == RangeResult::too_fragmented) return from;
    }
}

/// Of a number and the next one: where both came, with different things, one ends there and the other begins.
void MessageTable::meet(std::uint32_t source, std::uint32_t sequence, TimeNs now) noexcept {
    const SequenceOrder::Owner* const one = open_.order().owner(source, sequence);
    const SequenceOrder::Owner* const other = open_.order().owner(source, sequence + 1);
    if (one == nullptr || other == nullptr || *one == *other) return;
    // A heartbeat may be further away from what came of its message.
    if (Message* const next = collecting(source, other); next != nullptr)
        next->begun = next->begun || SequenceOrder::lowest_of(*next) == sequence + 1;
    if (Message* const before = collecting(source, one); before != nullptr) {
        before->ended = before->ended || SequenceOrder::highest_of(*before) == sequence;
        end_if_proven(*before, now);
    }
    // What has just ended may have been the last proof that there was nothing before.
    if (Message* const next = collecting(source, other); next != nullptr) end_if_proven(*next, now);
}

/// Nothing is whole before it is in this state for the last time.
Message* MessageTable::collecting(std::uint32_t source, const SequenceOrder::Owner* owner) noexcept {
    if (owner == nullptr) return nullptr;
    Message* const message = open_.index().find(source, owner->number, owner->epoch);
    return message != nullptr && message->in_sequence && !message->complete ? message : nullptr;
}

void MessageTable::end_if_proven(Message& message, TimeNs now) noexcept {
    if (SequenceOrder::has_no_gap(message) && message.begun && message.ended) open_.whole(message, now);
}

/// Nothing proves the beginning of a source's first message. It is believed once nothing comes any more that may have
/// been sent before.
void MessageTable::end_first(std::uint32_t source, TimeNs now) noexcept {
    const std::optional<std::uint32_t> first = open_.order().take_first(source);
    if (!first) return;
    Message* const message = collecting(source, open_.order().owner(source, *first));
    if (message == nullptr) return;
    message->begun = true;
    end_if_proven(*message, now);
}

/// What a reference says until the message ends.
std::uint32_t MessageTable::offset_of(Message& message, const wire::Fragment& fragment) noexcept {
    return fragment.in_sequence ? *SequenceOrder::place_of(message, fragment.sequence) : fragment.offset;
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
    const std::uint32_t offset = offset_of(message, fragment);
    describe(message, fragment, now);
    if (!append(message, buffer, fragment.payload, offset, fragment.bytes, now)) {
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
