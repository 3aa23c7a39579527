#include "assemble/event_builder.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace weir::assemble {

using core::EventCounter;
using core::MessageCounter;
using core::PacketCounter;

const char* name_of(EventCause cause) noexcept {
    switch (cause) {
        case EventCause::complete:
            return "complete";
        case EventCause::timeout:
            return "timeout";
        case EventCause::evicted:
            return "evicted";
        case EventCause::end_of_run:
            return "end_of_run";
        case EventCause::no_room:
            return "no_room";
    }
    return "unknown";
}

namespace {

EventCounter counter_of(EventCause cause) noexcept {
    switch (cause) {
        case EventCause::complete:
            return EventCounter::complete;
        case EventCause::timeout:
            return EventCounter::incomplete_timeout;
        case EventCause::evicted:
            return EventCounter::incomplete_evicted;
        case EventCause::end_of_run:
            return EventCounter::incomplete_end_of_run;
        case EventCause::no_room:
            break;
    }
    return EventCounter::incomplete_no_room;
}

/// Where a packet goes that comes for an event which left for this cause.
PacketCounter fate_of(EventCause cause) noexcept {
    return cause == EventCause::no_room ? PacketCounter::no_room : PacketCounter::late;
}

}  // namespace

EventBuilder::EventBuilder(const Config& config, core::PacketTally& packets, core::MessageTally& messages,
                           core::EventTally& events)
    : config_(config),
      packets_(packets),
      messages_(messages),
      events_(events),
      slots_(slots_of(config)),
      slab_(std::make_unique<Event[]>(slots_)),
      message_slots_(std::size_t{slots_} * config.sources),
      announced_slots_(std::size_t{slots_} * config.sources),
      table_(slots_),
      alignment_(config.sources, config.number_bits),
      timer_(timer_buckets),
      // A deadline is at most one time-out ahead of the newest time seen, so half the wheel holds them all.
      timer_granule_ns_(std::max<TimeNs>(1, config.timeout_ns / (timer_buckets / 2))),
      timer_next_ns_(never),
      now_(std::numeric_limits<TimeNs>::min()),
      prescaler_(config.prescale, config.number_bits.empty() ? 64U : *std::ranges::min_element(config.number_bits)),
      commands_(config.rx_count) {
    for (std::uint32_t i = slots_; i-- > 0;) {
        slab_[i].messages = {message_slots_.data() + std::size_t{i} * config.sources, config.sources};
        slab_[i].announced = {announced_slots_.data() + std::size_t{i} * config.sources, config.sources};
        slab_[i].next = free_;
        free_ = &slab_[i];
    }
    for (std::uint32_t i = 0; i < epochs_remembered; ++i) memory_.emplace_back(config.horizon, i);
    for (CommandQueue& queue : commands_) queue.commands.reserve(commands_of(config));
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

std::uint64_t EventBuilder::memory_bytes(const Config& config) noexcept {
    const std::uint64_t slots = slots_of(config);
    std::uint64_t bytes = slots * (sizeof(Event) + config.sources * (sizeof(void*) + sizeof(std::uint8_t)));
    bytes += core::FlatTable<Event*>::memory_bytes(slots);
    bytes += epochs_remembered * NumberMemory::memory_bytes(config.horizon);
    return bytes + config.rx_count * commands_of(config) * sizeof(Command);
}

void EventBuilder::follow_epoch(std::uint32_t epoch) noexcept {
    for (; newest_epoch_ < epoch; ++newest_epoch_) memory(newest_epoch_ + 1).clear();
}

Event* EventBuilder::find(std::uint64_t number, std::uint32_t epoch) noexcept {
    Event** found = table_.find({number, epoch});
    return found != nullptr ? *found : nullptr;
}

void EventBuilder::push_command(std::uint16_t rx, const Command& command) noexcept {
    std::vector<Command>& commands = commands_[rx].commands;
    assert(commands.size() < commands.capacity());  // by the sum in the constructor
    commands.push_back(command);
}

void EventBuilder::command_close(std::uint32_t source, std::uint64_t own_number, std::uint32_t epoch,
                                 PacketCounter fate) noexcept {
    push_command(config_.owner[source], {Command::Kind::close, source, own_number, nullptr, epoch, fate});
}

void EventBuilder::command_recycle(Message& message) noexcept {
    push_command(message.owner, {Command::Kind::recycle, message.source, message.number, &message, message.epoch});
}

/// The message is here, and its event admitted or known.
void EventBuilder::end_claim(Message& message) noexcept {
    if (!message.has_claim) return;
    message.has_claim = false;
    config_.event_room->give_back();
}

Event& EventBuilder::admit(const Descriptor& d, std::uint64_t number) noexcept {
    if (prescaler_.active() || others_overloaded_) ++prescale_kept_;
    Event* event = free_;
    free_ = event->next;
    ++in_use_;
    ++open_count_;
    event->number = number;
    event->epoch = d.epoch;
    event->state = EventState::open;
    event->cause = EventCause::complete;
    event->complete_messages = event->awaited = event->unfinished = 0;
    event->first_ns = event->last_ns = d.first_ns;
    event->deadline_ns = deadline_of(d.first_ns, config_.timeout_ns);
    std::ranges::fill(event->messages, nullptr);
    std::ranges::fill(event->announced, std::uint8_t{0});
    event->previous = open_last_;
    event->next = nullptr;
    (open_last_ != nullptr ? open_last_->next : open_first_) = event;
    open_last_ = event;
    table_.insert({number, d.epoch}, event);
    set_timer(*event);
    publish_room();
    events_.add(EventCounter::opened);
    alignment_.opened(d.epoch, number);
    if (config_.board != nullptr) {
        note_first(d.epoch, number);
        publish();
    }
    return *event;
}

bool EventBuilder::offer(const Descriptor& d) noexcept {
    advance(d.time_ns);
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
    const bool remembered = d.epoch + epochs_remembered > newest_epoch_;
    if (remembered) fate = memory(d.epoch).fate(number);
    if (!fate.has_value()) {
        const Refusal refusal = d.kind == Descriptor::Kind::refuse ? Refusal::no_room : refusal_of(d, number);
        if (refusal == Refusal::wait) return false;
        if (refusal == Refusal::none) {
            offer_known(d, admit(d, number));
            return true;
        }
        fate = refuse_event(number, d.epoch, refusal);
    }
    answer(d, *fate);
    return true;
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
        event.deadline_ns = deadline_of(d.first_ns, config_.timeout_ns);
        clear_timer(event);
        set_timer(event);
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
}

void EventBuilder::attach(Event& event, Message& message) noexcept {
    if (event.state != EventState::open) {
        settle(event, message);
        return;
    }
    event.messages[message.source] = &message;
    event.last_ns = std::max(event.last_ns, message.last_ns);
    ++(message.complete ? event.complete_messages : event.unfinished);
}

void EventBuilder::settle(Event& event, Message& message) noexcept {
    if (event.cause == EventCause::no_room) return refuse_message(message, PacketCounter::no_room);
    trim(message, event.deadline_ns);
    if (message.packets == 0) return refuse_message(message, PacketCounter::late);
    event.messages[message.source] = &message;
    event.last_ns = std::max(event.last_ns, message.last_ns);
    packets_.settle(PacketCounter::placed, message.packets);
    placed_bytes_ += message.received_bytes;
    messages_.add(MessageCounter::delivered);
}

void EventBuilder::refuse_message(Message& message, PacketCounter counter) noexcept {
    packets_.settle(counter, message.packets);
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
    packets_.settle(PacketCounter::late, removed);
}

void EventBuilder::close(Event& event, EventCause cause) noexcept {
    event.cause = cause;
    event.state = EventState::closing;
    event.last_ns = event.first_ns;
    // What ends before its deadline takes what has come until now, however late an rx lcore learns of it; and all that
    // is here, which may be ahead of the time that rx lcores vouch for.
    if (cause != EventCause::timeout) {
        TimeNs end = now_;
        for (const Message* message : event.messages)
            if (message != nullptr) end = std::max(end, message->last_ns);
        if (end < event.deadline_ns) event.deadline_ns = end + 1;
    }
    clear_timer(event);
    (event.previous != nullptr ? event.previous->next : open_first_) = event.next;
    (event.next != nullptr ? event.next->previous : open_last_) = event.previous;
    --open_count_;
    if (event.epoch + epochs_remembered > newest_epoch_) memory(event.epoch).remember(event.number, fate_of(cause));
    for (std::uint32_t source = 0; source < config_.sources; ++source) {
        if (Message* message = event.messages[source]; message != nullptr) {
            event.messages[source] = nullptr;
            settle(event, *message);
        }
        if (event.announced[source] == 0) continue;
        ++event.awaited;
        command_close(source, alignment_.to_own(source, event.epoch, event.number), event.epoch, fate_of(cause));
    }
    if (event.awaited > 0) ++awaiting_;
    events_.add(counter_of(cause));
    event.previous = closed_last_;
    event.next = nullptr;
    (closed_last_ != nullptr ? closed_last_->next : closed_first_) = &event;
    closed_last_ = &event;
}

void EventBuilder::answered(Event& event, std::uint32_t source) noexcept {
    if (event.announced[source] == 0) return;
    event.announced[source] = 0;
    --event.unfinished;
    if (event.state == EventState::closing && --event.awaited == 0) --awaiting_;
}

void EventBuilder::advance(TimeNs now) noexcept {
    now_ = std::max(now_, now);
    if (now < timer_next_ns_) return;
    // Everything due lies in the buckets from the earliest deadline to now; one turn of the wheel covers them all.
    const std::int64_t from = timer_next_ns_ / timer_granule_ns_;
    const std::int64_t to = std::min(now / timer_granule_ns_, from + timer_buckets - 1);
    timer_next_ns_ = never;
    for (std::int64_t tick = from; tick <= to; ++tick) {
        const TimerBucket& bucket = timer_[static_cast<std::size_t>(tick) % timer_buckets];
        while (bucket.first != nullptr && bucket.first->deadline_ns <= now) close(*bucket.first, EventCause::timeout);
    }
    for (std::int64_t tick = from; tick < from + timer_buckets; ++tick) {
        const Event* event = timer_[static_cast<std::size_t>(tick) % timer_buckets].first;
        if (event == nullptr) continue;
        timer_next_ns_ = event->deadline_ns;
        break;  // later buckets hold later deadlines
    }
}

void EventBuilder::set_timer(Event& event) noexcept {
    event.timer_bucket = no_timer;
    if (event.deadline_ns <= now_) return;  // overdue already; the wheel holds one turn ahead and nothing behind
    event.timer_bucket = static_cast<std::uint32_t>((event.deadline_ns / timer_granule_ns_) & (timer_buckets - 1));
    TimerBucket& bucket = timer_[event.timer_bucket];
    // Events open in order of time, but for those that learn their number late: the walk is short.
    Event* before = bucket.last;
    while (before != nullptr && before->deadline_ns > event.deadline_ns) before = before->timer_previous;
    event.timer_previous = before;
    event.timer_next = before != nullptr ? before->timer_next : bucket.first;
    (before != nullptr ? before->timer_next : bucket.first) = &event;
    (event.timer_next != nullptr ? event.timer_next->timer_previous : bucket.last) = &event;
    timer_next_ns_ = std::min(timer_next_ns_, event.deadline_ns);
}

void EventBuilder::clear_timer(Event& event) noexcept {
    if (event.timer_bucket == no_timer) return;
    TimerBucket& bucket = timer_[event.timer_bucket];
    (event.timer_previous != nullptr ? event.timer_previous->timer_next : bucket.first) = event.timer_next;
    (event.timer_next != nullptr ? event.timer_next->timer_previous : bucket.last) = event.timer_previous;
    event.timer_previous = event.timer_next = nullptr;
}

bool EventBuilder::evict_oldest() noexcept {
    if (open_first_ == nullptr) return false;
    close(*open_first_, EventCause::evicted);
    return true;
}

void EventBuilder::finish() noexcept {
    while (open_first_ != nullptr) close(*open_first_, EventCause::end_of_run);
}

Event* EventBuilder::pop_closed() noexcept {
    for (;;) {
        Event* event = closed_first_;
        if (event == nullptr || event->awaited > 0) return nullptr;
        std::uint64_t turn = 0;
        if (config_.board != nullptr && !find_turn(*event, turn)) return nullptr;
        closed_first_ = event->next;
        if (closed_first_ == nullptr)
            closed_last_ = nullptr;
        else
            closed_first_->previous = nullptr;
        table_.erase({event->number, event->epoch});
        event->number += turn;
        if (config_.numbers != nullptr) config_.numbers->add(event->epoch, event->number);
        event->state = EventState::queued;
        ++queued_;
        event->previous = event->next = nullptr;
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
    event.state = EventState::free;
    event.next = free_;
    free_ = &event;
    --in_use_;
    --queued_;
    publish_room();
}

std::span<const Command> EventBuilder::commands(std::uint32_t rx) const noexcept {
    const CommandQueue& queue = commands_[rx];
    return {queue.commands.data() + queue.first, queue.commands.size() - queue.first};
}

void EventBuilder::consume_commands(std::uint32_t rx, std::uint32_t count) noexcept {
    CommandQueue& queue = commands_[rx];
    queue.first += count;
    if (queue.first == queue.commands.size()) {
        queue.commands.clear();
        queue.first = 0;
    } else if (queue.first > queue.commands.capacity() / 2) {
        queue.commands.erase(queue.commands.begin(), queue.commands.begin() + static_cast<std::ptrdiff_t>(queue.first));
        queue.first = 0;
    }
}

}  // namespace weir::assemble
