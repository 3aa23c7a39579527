#include "assemble/open_messages.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace weir::assemble {

using wire::PacketCounter;

namespace {

/// Where later packets for a message that has been delivered go: of a whole one there is nothing left to bring.
PacketCounter fate_after(const Message& message) noexcept {
    return message.complete ? PacketCounter::duplicate : PacketCounter::late;
}

}  // namespace

OpenMessages::OpenMessages(const MessageConfig& config, wire::PacketTally& packets, MessageTally& messages,
                           MessageMemory& memory, ReceivedRanges& ranges)
    : timeout_ns_(config.timeout_ns),
      numbers_once_(config.numbers_once),
      waits_(config.waits),
      probation_max_(config.probation_max),
      event_room_(config.event_room),
      packets_(packets),
      messages_(messages),
      memory_(memory),
      ranges_(ranges),
      pool_(config.messages_max, config.owner),
      index_(config.messages_max),
      order_(config),
      pass_numbers_(pass_numbers_of(config)),
      pending_(ShardOf(config.shards, config.number_bits), pending_of(config)) {
    sources_.reserve(config.sources);
    for (std::uint32_t i = 0; i < config.sources; ++i) {
        sources_.emplace_back(horizon_of(config, i), bits_of(config, i), config.touch);
        sources_.back().refused_until_ns = std::numeric_limits<TimeNs>::min();
        sources_.back().in_sequence = order_.follows(i);
    }
}

/// Of sources whose packets go to other lcores nothing is ever remembered.
std::uint32_t OpenMessages::horizon_of(const MessageConfig& config, std::uint32_t source) noexcept {
    return source < config.own.size() && config.own[source] == 0 ? 0 : config.horizon;
}

unsigned OpenMessages::bits_of(const MessageConfig& config, std::uint32_t source) noexcept {
    return source < config.number_bits.size() ? config.number_bits[source] : 64U;
}

PassNumbers OpenMessages::pass_numbers_of(const MessageConfig& config) {
    std::vector<unsigned> bits;
    for (std::uint32_t i = 0; config.follows_numbers && i < config.sources; ++i) bits.push_back(bits_of(config, i));
    return PassNumbers(bits);
}

/// A message slot has at most an announcement and its answer outstanding, and is not free before the answer has been
/// answered; the rest is for refusals of messages that got no slot. An event that is told to end has a message at
/// least.
std::size_t OpenMessages::pending_of(const MessageConfig& config) noexcept {
    return 2 * std::size_t{config.messages_max} + 1024;
}

std::uint64_t OpenMessages::memory_bytes(const MessageConfig& config) noexcept {
    std::uint64_t bytes = std::uint64_t{config.messages_max} * sizeof(Message);
    bytes += MessageIndex::memory_bytes(config.messages_max);
    bytes += SequenceOrder::memory_bytes(config);
    bytes += pending_of(config) * sizeof(Descriptor);
    for (std::uint32_t i = 0; i < config.sources; ++i)
        bytes += sizeof(Source) + NumberMemory::memory_bytes(horizon_of(config, i)) +
                 Origins::memory_bytes(horizon_of(config, i));
    return bytes;
}

Message* OpenMessages::allocate(std::uint32_t source, TimeNs now) noexcept {
    Message* message = pool_.take(source, now);
    if (message != nullptr) sources_[source].probation.begin(*message);
    return message;
}

void OpenMessages::push(Descriptor::Kind kind, const Message& message, Message* handed, TimeNs now) noexcept {
    assert(pending_.has_room(message.number, 0));  // by pending_of
    pending_.push({.kind = kind,
                   .source = message.source,
                   .number = message.number,
                   .epoch = message.epoch,
                   .bytes = message.total_known ? message.total : 0,
                   .first_ns = message.first_ns,
                   .time_ns = std::min(now, held_ns_),
                   .message = handed});
}

/// It comes back by command.
void OpenMessages::hand_over(Descriptor::Kind kind, Message& message, TimeNs now) noexcept {
    message.state = MessageState::closed;
    ++handed_over_;
    push(kind, message, &message, now);
}

/// A message begins under this number.
void OpenMessages::opened(std::uint32_t source, std::uint64_t number) noexcept {
    sources_[source].numbers.opened(number);
    pass_numbers_.add(source, number);
}

void OpenMessages::list(Message& message, MessageState state) noexcept {
    Source& from = sources_[message.source];
    message.state = state;
    if (state == MessageState::probation)
        from.probation.insert(message);
    else
        from.open.insert(message);
    const TimeNs timeout_ns = from.in_sequence ? timeout_ns_ / 2 : timeout_ns_;
    from.due_ns = std::min(from.due_ns, deadline_of(message.first_ns, timeout_ns));
    due_ns_ = std::min(due_ns_, from.due_ns);
}

void OpenMessages::forget_place(Message& message) noexcept {
    if (message.state != MessageState::open && message.state != MessageState::probation) return;
    index_.erase(message);
    Source& from = sources_[message.source];
    if (message.state == MessageState::open)
        from.open.remove(message);
    else
        from.probation.remove(message);
}

Message* OpenMessages::open(std::uint32_t source, std::uint64_t number, const wire::Fragment& fragment, Origin origin,
                            TimeNs now) noexcept {
    Source& from = sources_[source];
    cancel_probation(source);  // the old numbering goes on, so there was no restart
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->number = number;
    message->epoch = from.epoch;
    message->total = fragment.total;
    message->total_known = fragment.total_known;
    message->origin = origin;
    message->of_other_sender = origin.sender != 0;
    from.probation.epoch_of(origin.sender);
    opened(source, number);
    index_.insert(*message);
    list(*message, MessageState::open);
    messages_.add(MessageCounter::opened);
    push(Descriptor::Kind::announce, *message, nullptr, now);
    return message;
}

Message* OpenMessages::open_probation(std::uint32_t source, std::uint64_t number, PacketCounter fate, Origin origin,
                                      TimeNs now) noexcept {
    Source& from = sources_[source];
    make_probation_room(from);
    // Probation may not take the last places: it is most likely a straggler. Where the input waits for places, there
    // are enough for everybody, and how many are free for the moment is a question of pace.
    if (!waits_ && pool_.free_count() <= pool_.size() / 8) return nullptr;
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->number = number;
    message->epoch = from.epoch + 1;
    message->fallback = fate;
    message->origin = origin;
    message->of_other_sender = origin.sender != 0;
    index_.insert(*message);
    list(*message, MessageState::probation);
    messages_.add(MessageCounter::opened);
    return message;
}

Message* OpenMessages::open_unbound(std::uint32_t source, TimeNs now) noexcept {
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->state = MessageState::unbound;
    message->has_claim = claim_in_hand_;
    claim_in_hand_ = false;
    messages_.add(MessageCounter::opened);
    return message;
}

void OpenMessages::bind_and_deliver(Message& message, std::uint64_t carried, TimeNs now) noexcept {
    Source& from = sources_[message.source];
    if (numbers_once_) {
        message.number = carried;
        message.epoch = 0;
        return deliver(message, now);
    }
    if (now >= from.due_ns) expire(from, now);
    const std::uint64_t number = from.numbers.number_of(carried);
    const bool restarting = from.probation.is_restarting(number);
    std::optional<PacketCounter> fate = fate_of(from, number, restarting);
    // Looking into an index that is not in the cache is dear, and where all numbers come late it is mostly empty.
    if (index_.size() > 0 && index_.find(message.source, number, from.epoch) != nullptr) {
        if (!restarting) return abandon(message, PacketCounter::conflict);
        fate = PacketCounter::late;
    }
    message.number = number;
    if (fate.has_value()) {
        if ((is_refusal(*fate) && now < from.refused_until_ns) ||
            index_.find(message.source, number, from.epoch + 1) != nullptr)
            return abandon(message, *fate);
        make_probation_room(from);
        message.epoch = from.epoch + 1;
        message.fallback = *fate;
        index_.insert(message);
        list(message, MessageState::probation);
        if (message.complete) whole_on_probation(message, now);
        return;
    }
    cancel_probation(message.source);
    opened(message.source, number);
    message.epoch = from.epoch;
    deliver(message, now);
}

void OpenMessages::end_event(std::uint64_t number, EventCause cause, TimeNs now) noexcept {
    pending_.push({.kind = Descriptor::Kind::end, .cause = cause, .number = number, .first_ns = now, .time_ns = now});
}

std::optional<PacketCounter> OpenMessages::fate_of(Source& from, std::uint64_t number, bool restarting) noexcept {
    const std::optional<PacketCounter> fate = from.memory.fate(number);
    if (!fate.has_value() && restarting && !is_after(number, from.numbers.newest())) return PacketCounter::late;
    return fate;
}

PacketCounter OpenMessages::fate_of_packet(PacketCounter fate, const Source& from, std::uint64_t number,
                                           const wire::Fragment& fragment, Origin origin) noexcept {
    if (fate != PacketCounter::duplicate) return fate;
    // A message of any number of packets may have ended without this one.
    if (fragment.fresh)
        return fragment.in_sequence && fragment.total == 0 ? PacketCounter::late : PacketCounter::conflict;
    const std::optional<Origin> before = from.origins.find(number);
    return before && !may_be_copies(*before, origin) ? PacketCounter::conflict : fate;
}

void OpenMessages::deliver(Message& message, TimeNs now) noexcept {
    forget_place(message);
    if (message.in_sequence) order_.lay_out(message, ranges_);
    Source& from = sources_[message.source];
    if (message.epoch == from.epoch && !numbers_once_) {
        from.memory.remember(message.number, fate_after(message));
        if (message.complete) from.origins.remember(message.number, message.origin);
    }
    message.seal();
    hand_over(Descriptor::Kind::deliver, message, now);
}

/// Nothing more comes, for a reason that says nothing of the message.
void OpenMessages::deliver_rest(Message& message, TimeNs now) noexcept {
    message.complete = message.in_sequence && order_.misses_nothing(message);
    deliver(message, now);
}

void OpenMessages::whole(Message& message, TimeNs now) noexcept {
    message.complete = true;
    if (message.state == MessageState::probation)
        whole_on_probation(message, now);
    else
        deliver(message, now);
}

void OpenMessages::whole_on_probation(Message& message, TimeNs now) noexcept {
    if (sources_[message.source].probation.whole(message)) restart(message.source, now);
}

void OpenMessages::refuse(std::uint32_t source, std::uint64_t number, TimeNs now) noexcept {
    Source& from = sources_[source];
    from.memory.remember(number, PacketCounter::no_room);
    from.refused_until_ns = deadline_of(now, timeout_ns_);
    if (pending_.has_room(number, 2 * std::size_t{pool_.size()}))
        pending_.push({.kind = Descriptor::Kind::refuse,
                       .source = source,
                       .number = number,
                       .epoch = from.epoch,
                       .first_ns = now,
                       .time_ns = now});
}

void OpenMessages::refuse_open(Message& message, TimeNs now) noexcept {
    Source& from = sources_[message.source];
    count(message, PacketCounter::no_room);
    forget_place(message);
    release_memory(message);
    from.memory.remember(message.number, PacketCounter::no_room);
    from.refused_until_ns = deadline_of(now, timeout_ns_);
    hand_over(Descriptor::Kind::refuse, message, now);
}

void OpenMessages::count(const Message& message, PacketCounter counter) noexcept {
    packets_.account(counter, message.packets);
    messages_.add(message_counter_of(counter));
}

void OpenMessages::abandon(Message& message, PacketCounter counter) noexcept {
    count(message, counter);
    forget_place(message);
    recycle(message);
}

void OpenMessages::cancel(Message& message) noexcept {
    abandon(message, message.fallback);
}

void OpenMessages::cancel_probation(std::uint32_t source) noexcept {
    Source& from = sources_[source];
    while (Message* message = from.probation.messages().first()) cancel(*message);
    from.probation.end();
}

void OpenMessages::make_probation_room(Source& from) noexcept {
    if (from.probation.count() >= probation_max_) cancel(*from.probation.messages().first());
}

bool OpenMessages::cancel_oldest_probation() noexcept {
    if (waits_ && handed_over_ > 0) return false;  // these make room when they come back
    Message* oldest = nullptr;
    for (const Source& from : sources_)
        if (Message* first = from.probation.messages().first(); first != nullptr)
            if (oldest == nullptr || first->first_ns < oldest->first_ns) oldest = first;
    if (oldest == nullptr) return false;
    cancel(*oldest);
    return true;
}

/// A source has begun again: what is on probation belongs to a new epoch, or comes to nothing.
void OpenMessages::restart(std::uint32_t source, TimeNs now) noexcept {
    Source& from = sources_[source];
    // No packet can join what is open from before any more, and the builder wants no answers from two epochs at once.
    while (Message* message = from.open.first()) deliver_rest(*message, now);
    ++from.epoch;
    from.memory.clear();
    from.origins.clear();
    const Probation::Run run = from.probation.take_run();
    // What came before the run did is a straggler. If the run's first message has timed out, all others are younger.
    const Message* first = index_.find(source, run.first, from.epoch);
    bool begun = first == nullptr;
    for (Message* message = from.probation.messages().first(); message != nullptr;) {
        Message* next = message->next;
        begun = begun || message == first;
        if (!begun && !run.holds(message->number)) {
            cancel(*message);
        } else if (message->whole_before) {
            deliver(*message, now);
        } else {
            from.probation.remove(*message);
            list(*message, MessageState::open);
            push(Descriptor::Kind::announce, *message, nullptr, now);
        }
        message = next;
    }
    from.probation.epoch_of(run.sender);
    from.numbers.restart(run.last);
    pass_numbers_.add(source, run.first);
    pass_numbers_.add(source, run.last);
}

void OpenMessages::release_memory(Message& message) noexcept {
    memory_.release(message);
    ranges_.release(message);
}

void OpenMessages::recycle(Message& message) noexcept {
    release_memory(message);
    if (message.lease != nullptr) *message.lease = 0;
    message.lease = nullptr;
    if (message.has_claim) event_room_->give_back();  // it never got to the builder
    message.has_claim = false;
    pool_.give_back(message);
}

void OpenMessages::expire(Source& from, TimeNs now) noexcept {
    now = due_by(now);
    if (now < from.due_ns) return;
    from.due_ns = never;
    if (from.in_sequence) end_silent(from, now);
    for (const MessageList* list : {&from.open, &from.probation.messages()}) {
        while (Message* message = list->first()) {
            const TimeNs due_ns = deadline_of(message->first_ns, timeout_ns_);
            if (due_ns > now) {
                from.due_ns = std::min(from.due_ns, due_ns);
                break;
            }
            list == &from.open ? deliver(*message, now) : cancel(*message);
        }
    }
}

/// Of messages in sequence whose end nothing has shown, those that miss nothing end after half of the time-out (then,
/// however late that is noticed): their events are still open, and whole. The others have the whole of it.
void OpenMessages::end_silent(Source& from, TimeNs now) noexcept {
    for (Message* message = from.open.first(); message != nullptr;) {
        Message* const next = message->next;
        if (const TimeNs due_ns = deadline_of(message->first_ns, timeout_ns_ / 2); due_ns > now) {
            from.due_ns = due_ns;
            return;
        }
        if (order_.misses_nothing(*message)) whole(*message, deadline_of(message->first_ns, timeout_ns_ / 2));
        message = next;
    }
}

void OpenMessages::expire(TimeNs now) noexcept {
    if (now < due_ns_) return;
    due_ns_ = never;
    for (Source& from : sources_) {
        if (now >= from.due_ns) expire(from, now);
        due_ns_ = std::min(due_ns_, from.due_ns);
    }
}

void OpenMessages::finish(TimeNs now) noexcept {
    expire(now);
    for (std::uint32_t source = 0; source < sources_.size(); ++source) {
        cancel_probation(source);
        while (Message* message = sources_[source].open.first()) deliver_rest(*message, now);
    }
    memory_.end_burst();
}

void OpenMessages::execute(const Command& command, TimeNs now) noexcept {
    if (command.kind == Command::Kind::recycle) {
        --handed_over_;
        return recycle(*command.message);
    }
    Source& from = sources_[command.source];
    if (Message* message = index_.find(command.source, command.number, command.epoch);
        message != nullptr && message->state == MessageState::open)
        deliver(*message, now);
    if (command.epoch != from.epoch) return;
    from.memory.remember(command.number, command.fate);
    if (is_refusal(command.fate)) from.refused_until_ns = deadline_of(now, timeout_ns_);
}

std::uint32_t OpenMessages::newest_epoch() const noexcept {
    std::uint32_t newest = 0;
    for (const Source& from : sources_) newest = std::max(newest, from.epoch);
    return newest;
}

void OpenMessages::begin_pass(std::uint64_t shift, std::uint32_t epoch, TimeNs now) noexcept {
    pass_numbers_.end();
    order_.begin_anew();
    for (std::uint32_t source = 0; source < sources_.size(); ++source) {
        Source& from = sources_[source];
        cancel_probation(source);
        from.numbers.begin_pass(shift);
        if (epoch <= from.epoch) continue;
        // Others have restarted more often in a pass. As in restart: two epochs at once are too many.
        while (Message* message = from.open.first()) deliver_rest(*message, now);
        from.epoch = epoch;
        from.memory.clear();
        from.origins.clear();
    }
}

}  // namespace weir::assemble
