#include "assemble/message_table.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "core/resident_memory.hpp"

namespace weir::assemble {

using core::MessageCounter;
using core::PacketCounter;

namespace {

/// Where later packets for a message that has been delivered go: of a whole one there is nothing left to bring.
PacketCounter fate_after(const Message& message) noexcept {
    return message.complete ? PacketCounter::duplicate : PacketCounter::late;
}

}  // namespace

void MessageTable::MessageList::insert(Message& message) noexcept {
    // Messages open in order of time, but for those that learn their number late: the walk is short.
    Message* before = last;
    while (before != nullptr && before->first_ns > message.first_ns) before = before->previous;
    message.previous = before;
    message.next = before != nullptr ? before->next : first;
    (before != nullptr ? before->next : first) = &message;
    (message.next != nullptr ? message.next->previous : last) = &message;
}

void MessageTable::MessageList::remove(Message& message) noexcept {
    (message.previous != nullptr ? message.previous->next : first) = message.next;
    (message.next != nullptr ? message.next->previous : last) = message.previous;
    message.previous = message.next = nullptr;
}

MessageTable::MessageTable(const Config& config, core::PacketTally& packets, core::MessageTally& messages,
                           BufferRelease release)
    : config_(config),
      packets_(packets),
      messages_(messages),
      release_(release),
      slab_(std::make_unique<Message[]>(config.messages_max)),
      messages_free_(config.messages_max),
      copies_(config.copy_cells, config.copy_cell_bytes, config.touch),
      open_(config.messages_max),
      due_ns_(never),
      // A message slot has at most an announcement and its answer outstanding, and is not free before the answer has
      // been answered; the rest is for refusals of messages that got no slot.
      pending_(ShardOf(config.shards, config.number_bits), 2 * std::size_t{config.messages_max} + 1024) {
    for (std::uint32_t i = config.messages_max; i-- > 0;) {
        slab_[i].next = free_messages_;
        free_messages_ = &slab_[i];
    }
    const std::size_t blocks = blocks_of(config);
    blocks_free_ = static_cast<std::uint32_t>(blocks);
    block_slab_.reset(static_cast<FragmentBlock*>(std::malloc(blocks * sizeof(FragmentBlock))));
    if (block_slab_ == nullptr) throw std::bad_alloc();
    fresh_block_ = block_slab_.get();
    range_slab_.reset(
        static_cast<RangeBlock*>(std::malloc((std::size_t{config.range_blocks} + 1) * sizeof(RangeBlock))));
    if (range_slab_ == nullptr) throw std::bad_alloc();
    fresh_range_ = range_slab_.get();
    ranges_left_ = config.range_blocks;
    if (config.touch) {
        core::touch(block_slab_.get(), blocks * sizeof(FragmentBlock));
        core::touch(range_slab_.get(), (std::size_t{config.range_blocks} + 1) * sizeof(RangeBlock));
    }
    sources_.reserve(config.sources);
    for (std::uint32_t i = 0; i < config.sources; ++i)
        sources_.emplace_back(horizon_of(config, i), i < config.number_bits.size() ? config.number_bits[i] : 64U);
    for (Source& from : sources_) {
        from.due_ns = never;
        from.refused_until_ns = std::numeric_limits<TimeNs>::min();
    }
    to_release_.reserve(1024);
}

MessageTable::~MessageTable() = default;

/// Two neighbouring blocks hold at least 32 references together (splice joins what fits into one), and each message
/// that holds a buffer or a cell has one block that is not full yet. Of copied payload, a cell of many tiny packets
/// needs more; then blocks are what runs out first.
std::size_t MessageTable::blocks_of(const Config& config) noexcept {
    const std::size_t holders = std::size_t{config.buffers_max} + config.copy_cells;
    const std::size_t messages =
        config.keeps ? config.messages_max : std::min<std::size_t>(config.messages_max, holders);
    return config.buffers_max / 16 + messages + config.copy_cells + 1;
}

/// Of sources whose packets go to other lcores nothing is ever remembered.
std::uint32_t MessageTable::horizon_of(const Config& config, std::uint32_t source) noexcept {
    return source < config.own.size() && config.own[source] == 0 ? 0 : config.horizon;
}

std::uint64_t MessageTable::memory_bytes(const Config& config) noexcept {
    std::uint64_t bytes = std::uint64_t{config.messages_max} * sizeof(Message);
    bytes += core::FlatTable<Message*>::memory_bytes(config.messages_max);
    bytes += (2 * std::uint64_t{config.messages_max} + 1024) * sizeof(Descriptor);
    bytes += blocks_of(config) * sizeof(FragmentBlock);
    bytes += (std::uint64_t{config.range_blocks} + 1) * sizeof(RangeBlock);
    for (std::uint32_t i = 0; i < config.sources; ++i)
        bytes += sizeof(Source) + NumberMemory::memory_bytes(horizon_of(config, i));
    return bytes;
}

Message* MessageTable::find(std::uint32_t source, std::uint64_t number, std::uint32_t epoch) noexcept {
    Message** found = open_.find({number, scope_of(source, epoch)});
    return found != nullptr ? *found : nullptr;
}

Message* MessageTable::allocate(std::uint32_t source, TimeNs now) noexcept {
    Message* message = free_messages_;
    if (message == nullptr) return nullptr;
    free_messages_ = message->next;
    --messages_free_;
    message->number = 0;
    message->epoch = 0;
    message->source = source;
    message->total = message->received_bytes = message->packets = message->slot_bytes = 0;
    message->range_count = 0;
    message->total_known = message->complete = message->announced = message->whole_before = false;
    message->slots_refused = false;
    message->meta_bytes = 0;
    message->owner = config_.owner;
    message->novelty = sources_[source].novelty;
    message->first_block = message->last_block = nullptr;
    message->more_ranges = nullptr;
    message->first_ns = message->last_ns = message->total_ns = now;
    message->previous = message->next = nullptr;
    return message;
}

void MessageTable::push(Descriptor::Kind kind, const Message& message, Message* handed, TimeNs now) noexcept {
    assert(pending_.has_room(message.number, 0));  // by the sum in the constructor
    pending_.push({kind, message.source, message.number, message.epoch, message.total_known ? message.total : 0,
                   message.first_ns, std::min(now, held_ns_), handed});
}

void MessageTable::list(Message& message, MessageState state) noexcept {
    Source& from = sources_[message.source];
    message.state = state;
    if (state == MessageState::probation) {
        from.probation.insert(message);
        ++from.probation_count;
    } else {
        from.open.insert(message);
    }
    from.due_ns = std::min(from.due_ns, deadline_of(message.first_ns, config_.timeout_ns));
    due_ns_ = std::min(due_ns_, from.due_ns);
}

// No place for the first packet of a message: the builder refuses the whole event. A refusal that finds no place either
// costs nothing but time: the event then waits for its time-out.
void MessageTable::refuse(std::uint32_t source, std::uint64_t number, TimeNs now) noexcept {
    Source& from = sources_[source];
    from.memory.remember(number, PacketCounter::no_room);
    from.refused_until_ns = deadline_of(now, config_.timeout_ns);
    if (pending_.has_room(number, 2 * std::size_t{config_.messages_max}))
        pending_.push({Descriptor::Kind::refuse, source, number, from.epoch, 0, now, now, nullptr});
}

// No place for a later packet of it. An event is never half admitted, so what has been taken goes too; the slot goes to
// the builder as the answer that it waits for, and comes back by command.
void MessageTable::refuse_open(Message& message, TimeNs now) noexcept {
    Source& from = sources_[message.source];
    settle(message, PacketCounter::no_room);
    forget_place(message);
    release_memory(message);
    from.memory.remember(message.number, PacketCounter::no_room);
    from.refused_until_ns = deadline_of(now, config_.timeout_ns);
    message.state = MessageState::closed;
    push(Descriptor::Kind::refuse, message, &message, now);
}

Message* MessageTable::open_known(std::uint32_t source, std::uint64_t number, const wire::Fragment& fragment,
                                  TimeNs now) noexcept {
    Source& from = sources_[source];
    cancel_probation(source);  // the old numbering goes on, so there was no restart
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->number = number;
    message->epoch = from.epoch;
    message->total = fragment.total;
    message->total_known = fragment.total_known;
    opened(source, number);
    open_.insert({number, scope_of(source, from.epoch)}, message);
    list(*message, MessageState::open);
    messages_.add(MessageCounter::opened);
    message->announced = true;
    push(Descriptor::Kind::announce, *message, nullptr, now);
    return message;
}

Message* MessageTable::find_or_open(std::uint32_t source, const wire::Fragment& fragment, TimeNs now, Message* expected,
                                    PacketCounter& verdict) noexcept {
    Source& from = sources_[source];
    const std::uint64_t number = number_of(from, fragment.number);
    const bool restarting = is_restarting(from, number);
    Message* message = find_open(from, source, number, expected);
    if (message != nullptr && !restarting) {
        from.current = message;
        return message;
    }
    std::optional<PacketCounter> fate = message != nullptr ? PacketCounter::late : fate_of(from, number, restarting);
    fate = contradicts(fate, fragment);
    if (fate.has_value() && is_refusal(*fate) && now < from.refused_until_ns) {
        verdict = *fate;
        return nullptr;
    }
    const bool room = has_room(1);
    if (fate.has_value()) {
        verdict = *fate;
        message = find(source, number, from.epoch + 1);
        return message != nullptr || !room ? message : open_probation(source, number, *fate, now);
    }
    message = room ? open_known(source, number, fragment, now) : nullptr;
    if (message == nullptr) {
        refuse(source, number, now);
        verdict = PacketCounter::no_room;
        return nullptr;
    }
    from.current = message;
    return message;
}

void MessageTable::look_ahead(std::span<const std::uint32_t> sources, const wire::Fragment* fragments,
                              Message** expected) noexcept {
    std::fill_n(expected, sources.size(), nullptr);
    if (open_.size() < look_ahead_open) return;
    std::array<core::NumberKey, look_ahead_max> keys;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& from = sources_[sources[i]];
        keys[i] = {number_of(from, fragments[i].number), scope_of(sources[i], from.epoch)};
        open_.prefetch(keys[i]);
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (Message** found = open_.find(keys[i]); found != nullptr) __builtin_prefetch(expected[i] = *found, 1);
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
    return find(source, number, from.epoch);
}

/// Whether the packet lies right after the one range of a message that agrees with it.
bool MessageTable::continues(const Message& message, const wire::Fragment& fragment) noexcept {
    return message.range_count == 1 && message.slot_bytes == 0 && message.more_ranges == nullptr &&
           message.ranges[0].end == fragment.offset && message.total_known && fragment.total_known &&
           fragment.total == message.total && fragment.bytes > 0 && fragment.bytes <= message.total - fragment.offset;
}

void MessageTable::add(std::uint32_t source, const wire::Fragment& fragment, void* buffer, TimeNs now,
                       Message* expected) noexcept {
    Source& from = sources_[source];
    if (now >= from.due_ns) expire(from, now);
    if (from.probation_count == 0 && from.evidence.messages == 0) {
        const std::uint64_t number = number_of(from, fragment.number);
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
    if (now >= sources_[source].due_ns) expire(sources_[source], now);
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
            join_last(*message);
        }
        offset += piece.bytes;
    }
    deliver_if_whole(*message, now);
}

/// Finds or opens the message that a payload in `buffers` buffers joins, and takes its range: in_flight, or the counter
/// in which it ends.
PacketCounter MessageTable::admit(std::uint32_t source, const wire::Fragment& fragment, std::uint32_t buffers,
                                  TimeNs now, Message* expected, Message*& message) noexcept {
    Source& from = sources_[source];
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
        probation ? cancel(*message) : refuse_open(*message, now);
        return verdict;
    }
    verdict = check(*message, fragment);
    // What is late stays late, whatever else is wrong with it.
    if (verdict != PacketCounter::in_flight) return probation ? *contradicts(message->fallback, fragment) : verdict;
    if (!probation && (from.probation_count > 0 || from.evidence.messages > 0)) {
        ++from.novelty;
        from.evidence = {};
    }
    return PacketCounter::in_flight;
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
    switch (add_place(message, fragment.offset, end)) {
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
    if (!message.total_known || message.received_bytes != message.total) return;
    message.complete = true;
    if (message.state == MessageState::probation)
        whole_on_probation(message, now);
    else
        deliver(message, now);
}

void MessageTable::forget_place(Message& message) noexcept {
    Source& from = sources_[message.source];
    if (from.current == &message) from.current = nullptr;
    if (message.state != MessageState::open && message.state != MessageState::probation) return;
    open_.erase({message.number, scope_of(message.source, message.epoch)});
    if (message.state == MessageState::open) {
        from.open.remove(message);
    } else {
        from.probation.remove(message);
        --from.probation_count;
    }
}

void MessageTable::deliver(Message& message, TimeNs now) noexcept {
    forget_place(message);
    Source& from = sources_[message.source];
    if (message.epoch == from.epoch) from.memory.remember(message.number, fate_after(message));
    message.state = MessageState::closed;
    push(Descriptor::Kind::deliver, message, &message, now);
}

Message* MessageTable::open_unbound(std::uint32_t source, TimeNs now) noexcept {
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->state = MessageState::unbound;
    message->has_claim = claim_in_hand_;
    claim_in_hand_ = false;
    messages_.add(MessageCounter::opened);
    return message;
}

void MessageTable::bind_and_deliver(Message& message, std::uint64_t carried, TimeNs now) noexcept {
    Source& from = sources_[message.source];
    if (now >= from.due_ns) expire(from, now);
    const std::uint64_t number = number_of(from, carried);
    const bool restarting = is_restarting(from, number);
    std::optional<PacketCounter> fate = fate_of(from, number, restarting);
    if (find(message.source, number, from.epoch) != nullptr) {
        if (!restarting) return abandon(message, PacketCounter::conflict);
        fate = PacketCounter::late;
    }
    message.number = number;
    if (fate.has_value()) {
        if ((is_refusal(*fate) && now < from.refused_until_ns) ||
            find(message.source, number, from.epoch + 1) != nullptr)
            return abandon(message, *fate);
        if (from.probation_count == probation_max) cancel(*from.probation.first);
        message.epoch = from.epoch + 1;
        message.fallback = *fate;
        open_.insert({number, scope_of(message.source, message.epoch)}, &message);
        list(message, MessageState::probation);
        if (message.complete) whole_on_probation(message, now);
        return;
    }
    cancel_probation(message.source);
    opened(message.source, number);
    message.epoch = from.epoch;
    deliver(message, now);
}

void MessageTable::settle(const Message& message, PacketCounter counter) noexcept {
    packets_.settle(counter, message.packets);
    messages_.add(message_counter_of(counter));
}

void MessageTable::abandon(Message& message, PacketCounter counter) noexcept {
    settle(message, counter);
    forget_place(message);
    recycle(message);
}

void MessageTable::expire(Source& from, TimeNs now) noexcept {
    now = due_by(now);
    if (now < from.due_ns) return;
    from.due_ns = never;
    for (const MessageList* list : {&from.open, &from.probation}) {
        while (Message* message = list->first) {
            const TimeNs due_ns = deadline_of(message->first_ns, config_.timeout_ns);
            if (due_ns > now) {
                from.due_ns = std::min(from.due_ns, due_ns);
                break;
            }
            list == &from.open ? deliver(*message, now) : cancel(*message);
        }
    }
}

void MessageTable::expire(TimeNs now) noexcept {
    if (now < due_ns_) return;
    due_ns_ = never;
    for (Source& from : sources_) {
        if (now >= from.due_ns) expire(from, now);
        due_ns_ = std::min(due_ns_, from.due_ns);
    }
}

void MessageTable::finish(TimeNs now) noexcept {
    expire(now);
    for (std::uint32_t source = 0; source < sources_.size(); ++source) {
        cancel_probation(source);
        while (sources_[source].open.first != nullptr) deliver(*sources_[source].open.first, now);
    }
    end_burst();
}

void MessageTable::execute(const Command& command, TimeNs now) noexcept {
    if (command.kind == Command::Kind::recycle) return recycle(*command.message);
    Source& from = sources_[command.source];
    if (Message* message = find(command.source, command.number, command.epoch);
        message != nullptr && message->state == MessageState::open)
        deliver(*message, now);
    if (command.epoch != from.epoch) return;
    from.memory.remember(command.number, command.fate);
    if (is_refusal(command.fate)) from.refused_until_ns = deadline_of(now, config_.timeout_ns);
}

}  // namespace weir::assemble
