#include "assemble/event_builder.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace weir::assemble {

using wire::PacketCounter;

namespace {

/// Where a packet goes that comes for an event which left for this cause.
PacketCounter fate_of(EventCause cause) noexcept {
    return cause == EventCause::no_room ? PacketCounter::no_room : PacketCounter::late;
}

}  // namespace

EventBuilder::EventBuilder(const Config& config, wire::PacketTally& packets, MessageTally& messages, EventTally& events)
    : config_(config),
      packets_(packets),
      messages_(messages),
      events_(events),
      pool_(slots_of(config), config.sources),
      timer_(config.timeout_ns),
      table_(slots_of(config)),
      alignment_(config.sources, config.number_bits),
      shards_(config.board, config.shard),
      admission_(admission_of(config)),
      now_(std::numeric_limits<TimeNs>::min()),
      newest_whole_(config.sources, std::numeric_limits<TimeNs>::min()),
      commands_(config.rx_count, commands_of(config)) {
    for (std::uint32_t i = 0; i < epochs_remembered; ++i) memory_.emplace_back(config.horizon, i, config.touch);
}

/// Open and queued ones; as many again that are closing and wait for rx lcores to hand over their last messages (all
/// open ones may time out at once); and what one poll can evict.
std::uint32_t EventBuilder::slots_of(const Config& config) noexcept {
    return 2 * config.open_max + config.queued_max + 128;
}

/// One close and one recycle per message that exists: its slot is not free before the recycle has been executed. Twice
/// that, because a worker's recycling may overtake a close that is still under way.
std::size_t EventBuilder::commands_of(const Config& config) noexcept {
    return 4 * std::size_t{config.messages_max} + 64;
}

EventAdmission::Config EventBuilder::admission_of(const Config& config) noexcept {
    return {config.open_max,  config.queued_max,
            config.wait,      config.overload,
            config.prescale,  config.number_bits.empty() ? 64U : *std::ranges::min_element(config.number_bits),
            config.event_room};
}

std::uint64_t EventBuilder::memory_bytes(const Config& config) noexcept {
    std::uint64_t bytes = EventPool::memory_bytes(slots_of(config), config.sources);
    bytes += EventTable::memory_bytes(slots_of(config));
    bytes += epochs_remembered * NumberMemory::memory_bytes(config.horizon);
    return bytes + CommandQueues::memory_bytes(config.rx_count, commands_of(config));
}

ShardBoard::Account EventBuilder::account() const noexcept {
    const Event* const oldest = open_.first();
    return {open_count_, held(), queued_, oldest != nullptr ? oldest->first_ns : std::numeric_limits<TimeNs>::max()};
}

EventAdmission::Standing EventBuilder::standing() const noexcept {
    return {account(), shards_.others(), !pool_.empty(), shards_.holds_back()};
}

void EventBuilder::follow_epoch(std::uint32_t epoch) noexcept {
    for (; newest_epoch_ < epoch; ++newest_epoch_) memory(newest_epoch_ + 1).clear();
}

void EventBuilder::command_close(std::uint32_t source, std::uint64_t own_number, std::uint32_t epoch,
                                 PacketCounter fate) noexcept {
    commands_.push(config_.owner[source], {Command::Kind::close, source, own_number, nullptr, epoch, fate});
}

void EventBuilder::command_recycle(Message& message) noexcept {
    commands_.push(message.owner, {Command::Kind::recycle, message.source, message.number, &message, message.epoch});
}

/// The message is here, and its event admitted or known.
void EventBuilder::end_claim(Message& message) noexcept {
    if (!message.has_claim) return;
    message.has_claim = false;
    config_.event_room->give_back();
}

Event& EventBuilder::open(const Descriptor& d, std::uint64_t number) noexcept {
    admission_.admitted();
    Event& event = pool_.take();
    ++open_count_;
    event.number = number;
    event.epoch = d.epoch;
    event.state = EventState::open;
    event.cause = EventCause::complete;
    event.complete_messages = event.awaited = event.unfinished = event.ended = 0;
    event.first_ns = event.last_ns = d.first_ns;
    event.deadline_ns = config_.ends_told ? core::never : deadline_of(d.first_ns, config_.timeout_ns);
    std::ranges::fill(event.messages, nullptr);
    std::ranges::fill(event.announced, std::uint8_t{0});
    open_.push(event);
    table_.insert(event);
    timer_.set(event, now_);
    publish_room();
    events_.add(EventCounter::opened);
    alignment_.opened(d.epoch, number);
    if (!shards_.alone()) {
        shards_.opened(d.epoch, number, now_, alignment_);
        shards_.publish(account());
    }
    return event;
}

bool EventBuilder::offer(const Descriptor& d) noexcept {
    advance(d.time_ns);
    if (d.kind == Descriptor::Kind::end) {
        if (Event* event = find(d.number, d.epoch); event != nullptr && event->state == EventState::open)
            close(*event, d.cause);
        return true;
    }
    follow_epoch(d.epoch);
    if (!offer_number(d, alignment_.to_common(d.source, d.epoch, d.number))) return false;
    if (d.kind == Descriptor::Kind::deliver) end_claim(*d.message);
    if (d.kind != Descriptor::Kind::announce) alignment_.forget(d.source, d.number);
    if (d.kind == Descriptor::Kind::refuse && d.message != nullptr) command_recycle(*d.message);
    return true;
}

bool EventBuilder::offer_number(const Descriptor& d, std::uint64_t number) noexcept {
    if (Event* event = find(number, d.epoch); event != nullptr) {
        offer_known(d, *event);
        return true;
    }
    std::optional<PacketCounter> fate = PacketCounter::late;
    if (config_.ends_told)
        fate.reset();
    else if (is_remembered(d.epoch))
        fate = memory(d.epoch).fate(number);
    if (!fate.has_value()) {
        using Ruling = EventAdmission::Ruling;
        const Ruling ruling =
            d.kind == Descriptor::Kind::refuse ? Ruling::no_room : admission_.rule(d, number, standing());
        if (ruling == Ruling::wait) return false;
        // As many events are open as may be: the one that opened first goes, wherever it is. Until the other shard has
        // come to it there is one too many.
        if (ruling == Ruling::admitted_for_oldest && !shards_.ask_oldest()) evict_oldest();
        if (ruling == Ruling::admitted || ruling == Ruling::admitted_for_oldest) {
            offer_known(d, open(d, number));
            return true;
        }
        fate = refuse_event(number, d.epoch, ruling);
    }
    answer(d, *fate);
    return true;
}

/// Nothing is taken of this event. Says where its packets go.
PacketCounter EventBuilder::refuse_event(std::uint64_t number, std::uint32_t epoch,
                                         EventAdmission::Ruling ruling) noexcept {
    PacketCounter fate = PacketCounter::no_room;
    EventCounter counter = EventCounter::refused_no_room;
    if (ruling == EventAdmission::Ruling::queue_full) {
        fate = PacketCounter::queue_full;
        counter = EventCounter::refused_queue_full;
    } else if (ruling == EventAdmission::Ruling::prescaled) {
        fate = PacketCounter::prescaled;
        counter = EventCounter::refused_prescaled;
    }
    events_.add(counter);
    memory(epoch).remember(number, fate);
    if (config_.numbers != nullptr) config_.numbers->add(epoch, number);
    return fate;
}

/// There is no event for this, and there will be none.
void EventBuilder::answer(const Descriptor& d, PacketCounter fate) noexcept {
    if (d.kind == Descriptor::Kind::deliver)
        refuse_message(*d.message, is_refusal(fate) ? fate : PacketCounter::late);
    else if (d.kind == Descriptor::Kind::announce)
        command_close(d.source, d.number, d.epoch, fate);
}

void EventBuilder::offer_known(const Descriptor& d, Event& event) noexcept {
    if (event.state == EventState::open && d.kind != Descriptor::Kind::refuse && d.first_ns < event.first_ns) {
        // A message that learnt its number late may have begun before the event was known.
        event.first_ns = d.first_ns;
        event.deadline_ns = config_.ends_told ? core::never : deadline_of(d.first_ns, config_.timeout_ns);
        timer_.clear(event);
        timer_.set(event, now_);
    }
    switch (d.kind) {
        case Descriptor::Kind::refuse:
            answered(event, d.source);
            if (event.state == EventState::open) close(event, EventCause::no_room);
            return;
        case Descriptor::Kind::announce:
            if (event.state != EventState::open) return answer(d, fate_of(event.cause));
            event.unfinished += event.announced[d.source] == 0 ? 1 : 0;
            event.announced[d.source] = 1;
            break;
        case Descriptor::Kind::end:
            return;
        case Descriptor::Kind::deliver: {
            const bool awaited = event.announced[d.source] != 0;
            if (event.messages[d.source] != nullptr)
                refuse_message(*d.message, PacketCounter::conflict);
            else if (event.state == EventState::open || awaited)
                attach(event, *d.message);
            else
                answer(d, fate_of(event.cause));
            if (awaited) answered(event, d.source);
            break;
        }
    }
    if (event.state != EventState::open) return;
    // A message may be ahead of the time that rx lcores vouch for, and whole only by packets that came too late: then
    // its event is about to time out without them.
    const bool in_time = event.last_ns < event.deadline_ns;
    if (event.deadline_ns <= now_)
        close(event, EventCause::timeout);  // its first packet was known only now
    else if (in_time && is_complete(event))
        close(event, EventCause::complete);
    else if (in_time && has_ended(event) && !config_.ends_told)
        close(event, EventCause::ended);
}

void EventBuilder::attach(Event& event, Message& message) noexcept {
    if (event.state != EventState::open) {
        account(event, message);
        return;
    }
    event.messages[message.source] = &message;
    event.last_ns = std::max(event.last_ns, message.last_ns);
    if (message.complete && message.last_ns < event.deadline_ns)
        newest_whole_[message.source] = std::max(newest_whole_[message.source], message.first_ns);
    ++(message.complete ? event.complete_messages : event.unfinished);
    // The sender has said that this was all of it, so nothing is waited for.
    if (!message.complete && message.lease != nullptr) ++event.ended;
}

void EventBuilder::account(Event& event, Message& message) noexcept {
    if (event.cause == EventCause::no_room) return refuse_message(message, PacketCounter::no_room);
    trim(message, event.deadline_ns);
    if (message.packets == 0) return refuse_message(message, PacketCounter::late);
    event.messages[message.source] = &message;
    event.last_ns = std::max(event.last_ns, message.last_ns);
    packets_.account(PacketCounter::placed, message.packets);
    placed_bytes_ += message.received_bytes;
    messages_.add(MessageCounter::delivered);
}

void EventBuilder::refuse_message(Message& message, PacketCounter counter) noexcept {
    packets_.account(counter, message.packets);
    messages_.add(message_counter_of(counter));
    command_recycle(message);
}

void EventBuilder::trim(Message& message, TimeNs deadline_ns) noexcept {
    // The rx lcore may have placed packets between the event's end and the command to close. They came too late; an
    // empty reference keeps their buffer until the message is recycled.
    if (message.last_ns < deadline_ns) return;
    TimeNs last = message.first_ns;
    std::uint32_t removed = 0;
    for (FragmentBlock* block = message.first_block; block != nullptr; block = block->next) {
        for (std::uint32_t i = 0; i < block->count; ++i) {
            FragmentRef& ref = block->refs[i];
            if (ref.time_ns < deadline_ns) {
                last = std::max(last, ref.time_ns);
                continue;
            }
            message.received_bytes -= ref.bytes;
            ref.bytes = 0;
            ref.data = nullptr;
            removed += (block->continued >> i & 1U) != 0 ? 0 : 1;  // a packet's references have one time
        }
    }
    message.packets -= removed;
    message.last_ns = last;
    message.complete = message.complete && removed == 0;
    message.total_known = message.total_known && message.total_ns < deadline_ns;
    packets_.account(PacketCounter::late, removed);
}

void EventBuilder::close(Event& event, EventCause cause) noexcept {
    event.cause = cause;
    event.state = EventState::closing;
    event.last_ns = event.first_ns;
    // What ends before its deadline takes what has come until now, however late an rx lcore learns of it; and all that
    // is here, which may be ahead of the time that rx lcores vouch for.
    if (cause != EventCause::timeout || now_ < event.deadline_ns) {
        TimeNs end = now_;
        for (const Message* message : event.messages)
            if (message != nullptr) end = std::max(end, message->last_ns);
        if (end < event.deadline_ns) event.deadline_ns = end + 1;
    }
    timer_.clear(event);
    open_.remove(event);
    --open_count_;
    if (is_remembered(event.epoch) && !config_.ends_told) memory(event.epoch).remember(event.number, fate_of(cause));
    for (std::uint32_t source = 0; source < config_.sources; ++source) {
        if (Message* message = event.messages[source]; message != nullptr) {
            event.messages[source] = nullptr;
            account(event, *message);
        }
        if (event.announced[source] == 0) continue;
        ++event.awaited;
        command_close(source, alignment_.to_own(source, event.epoch, event.number), event.epoch, fate_of(cause));
    }
    if (event.awaited > 0) ++awaiting_;
    events_.add(counter_of(cause));
    closed_.push(event);
}

void EventBuilder::answered(Event& event, std::uint32_t source) noexcept {
    if (event.announced[source] == 0) return;
    event.announced[source] = 0;
    --event.unfinished;
    if (event.state == EventState::closing && --event.awaited == 0) --awaiting_;
}

void EventBuilder::advance(TimeNs now) noexcept {
    now_ = std::max(now_, now);
    timer_.advance(now, [this](Event& event) { close(event, EventCause::timeout); });
}

void EventBuilder::watch(Fill rx_fill, bool others_overloaded) noexcept {
    admission_.watch(rx_fill, others_overloaded);
    if (config_.overload == Overload::prescale) admission_.update(standing());
}

void EventBuilder::make_room() noexcept {
    // Input that waits would wait for ever: no time passes while nothing is taken.
    if (config_.wait || evicts(config_.overload)) evict_oldest();
}

bool EventBuilder::evict_oldest() noexcept {
    if (open_.first() == nullptr) return false;
    close(*open_.first(), EventCause::evicted);
    return true;
}

void EventBuilder::finish(std::span<const std::span<const TimeNs>> newest_whole) noexcept {
    const auto was_passed = [&](const Event& event, std::uint32_t source) {
        const Message* message = event.messages[source];
        if (message != nullptr && message->complete) return false;
        const TimeNs first_ns = message != nullptr ? message->first_ns : event.first_ns;
        return std::ranges::any_of(newest_whole, [&](const auto& of_shard) { return of_shard[source] > first_ns; });
    };
    while (open_.first() != nullptr) {
        Event& event = *open_.first();
        bool passed = false;
        for (std::uint32_t source = 0; source < config_.sources && !passed; ++source)
            passed = was_passed(event, source);
        close(event, passed ? EventCause::timeout : EventCause::end_of_run);
    }
}

void EventBuilder::meet_shards() noexcept {
    if (shards_.alone()) return;
    for (std::uint32_t asked = shards_.take_asked(); asked > 0 && evict_oldest();) --asked;
    shards_.publish(account());
    shards_.post(now_);
}

void EventBuilder::end_input() noexcept {
    shards_.end_input();
    meet_shards();
}

Event* EventBuilder::pop_closed() noexcept {
    for (;;) {
        Event* event = closed_.first();
        if (event == nullptr || event->awaited > 0) return nullptr;
        const std::optional<std::uint64_t> turn = shards_.turn_of(*event, alignment_);
        if (!turn.has_value()) return nullptr;
        closed_.remove(*event);
        table_.erase(*event);
        event->number += *turn;
        if (config_.numbers != nullptr) config_.numbers->add(event->epoch, event->number);
        event->state = EventState::queued;
        ++queued_;
        if (event->cause != EventCause::no_room) {
            event->sequence = sequence_++;
            return event;
        }
        discard(*event, EventCounter::dropped_no_room);
    }
}

void EventBuilder::recycle_messages(Event& event) noexcept {
    for (Message*& message : event.messages) {
        if (message == nullptr) continue;
        command_recycle(*message);
        message = nullptr;
    }
}

void EventBuilder::discard(Event& event, EventCounter counter) noexcept {
    events_.add(counter);
    recycle_messages(event);
    release(event);
}

void EventBuilder::release(Event& event) noexcept {
    pool_.give_back(event);
    --queued_;
    publish_room();
}

}  // namespace weir::assemble
