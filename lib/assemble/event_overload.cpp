// What the builder does with new events when there is no more room: the operator's choice, at the limits that all
// shards have in common.
#include <algorithm>

#include "assemble/event_builder.hpp"

namespace weir::assemble {

using core::EventCounter;
using core::PacketCounter;

ShardBoard::Account EventBuilder::others() const noexcept {
    return config_.board != nullptr ? config_.board->others(config_.shard) : ShardBoard::Account{};
}

/// Of all that is bounded here, the fullest; where the input waits, only what waiting does not help against.
Fill EventBuilder::fill(const ShardBoard::Account& others) const noexcept {
    const std::uint32_t opened = open_count_ + others.open;
    const Fill open = fill_of(opened, config_.open_max);
    if (config_.wait) return open;
    // The others' accounts are of several moments.
    const std::uint32_t held = in_use_ - awaiting_ + others.held;
    return std::max({open, rx_fill_, fill_of(held - std::min(held, opened), config_.queued_max)});
}

void EventBuilder::watch(Fill rx_fill, bool others_overloaded) noexcept {
    rx_fill_ = rx_fill;
    others_overloaded_ = others_overloaded;
    if (config_.overload == Overload::prescale) prescaler_.update(fill(others()));
}

/// Whether an event of this number may open, and if not, why. At the limit of open ones it makes room if it should.
EventBuilder::Refusal EventBuilder::refusal_of(const Descriptor& d, std::uint64_t number) noexcept {
    const ShardBoard::Account others = this->others();
    if (config_.wait && (queued_ + others.queued >= config_.queued_max || (holds_back_ && free_ == nullptr)))
        return Refusal::wait;  // what is queued drains by itself
    if (config_.overload == Overload::prescale) {
        prescaler_.update(fill(others));
        if ((prescaler_.active() || others_overloaded_) && !prescaler_.keeps(number)) return Refusal::prescaled;
    }
    // What waits for an rx lcore to answer does not count: it is about to go. What messages have claimed does, for all
    // but them: they were acknowledged, and have their place.
    const bool has_claim = d.message != nullptr && d.message->has_claim;
    const std::uint32_t claimed = config_.event_room != nullptr ? config_.event_room->claimed() : 0;
    if (!config_.wait && !has_claim &&
        in_use_ - awaiting_ + others.held + claimed >= config_.open_max + config_.queued_max)
        return Refusal::queue_full;
    if (free_ == nullptr) return Refusal::no_room;
    const bool full = open_count_ + others.open >= config_.open_max;
    if (has_claim && config_.overload != Overload::evict_oldest) return Refusal::none;
    if (config_.overload == Overload::evict_oldest) {
        if (full) make_place();
        return Refusal::none;
    }
    return full || (!config_.wait && rx_fill_ == Fill::full) ? Refusal::no_room : Refusal::none;
}

/// Nothing is taken of this event. Says where its packets go.
PacketCounter EventBuilder::refuse_event(std::uint64_t number, std::uint32_t epoch, Refusal refusal) noexcept {
    PacketCounter fate = PacketCounter::no_room;
    EventCounter counter = EventCounter::refused_no_room;
    if (refusal == Refusal::queue_full) {
        fate = PacketCounter::queue_full;
        counter = EventCounter::refused_queue_full;
    } else if (refusal == Refusal::prescaled) {
        fate = PacketCounter::prescaled;
        counter = EventCounter::refused_prescaled;
    }
    events_.add(counter);
    memory(epoch).remember(number, fate);
    if (config_.numbers != nullptr) config_.numbers->add(epoch, number);
    return fate;
}

void EventBuilder::make_room() noexcept {
    // Input that waits would wait for ever: no time passes while nothing is taken.
    if (config_.wait || config_.overload == Overload::evict_oldest) evict_oldest();
}

}  // namespace weir::assemble
