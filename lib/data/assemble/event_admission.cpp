#include "assemble/event_admission.hpp"

#include <algorithm>

namespace weir::assemble {

/// Of all that is bounded here, the fullest; where the input waits, only what waiting does not help against.
Fill EventAdmission::fill(const Standing& now) const noexcept {
    const std::uint32_t opened = now.own.open + now.others.open;
    const Fill open = fill_of(opened, config_.open_max);
    if (config_.wait) return open;
    // The others' accounts are of several moments.
    const std::uint32_t held = now.own.held + now.others.held;
    return std::max({open, rx_fill_, fill_of(held - std::min(held, opened), config_.queued_max)});
}

EventAdmission::Ruling EventAdmission::rule(const Descriptor& d, std::uint64_t number, const Standing& now) noexcept {
    const std::uint32_t queued = now.own.queued + now.others.queued;
    if (config_.wait && (queued >= config_.queued_max || (now.held_back && !now.slot_free)))
        return Ruling::wait;  // what is queued drains by itself
    if (config_.overload == Overload::prescale) {
        update(now);
        if (overloaded() && !prescaler_.keeps(number)) return Ruling::prescaled;
    }
    // What waits for an rx lcore to answer does not count: it is about to go. What messages have claimed does, for all
    // but them: they were acknowledged, and have their place.
    const bool has_claim = d.message != nullptr && d.message->has_claim;
    const std::uint32_t claimed = config_.event_room != nullptr ? config_.event_room->claimed() : 0;
    const std::uint32_t held = now.own.held + now.others.held;
    if (!config_.wait && !has_claim && held + claimed >= config_.open_max + config_.queued_max)
        return Ruling::queue_full;
    if (!now.slot_free) return Ruling::no_room;
    const bool full = now.own.open + now.others.open >= config_.open_max;
    if (evicts(config_.overload)) return full ? Ruling::admitted_for_oldest : Ruling::admitted;
    if (has_claim) return Ruling::admitted;
    return full || (!config_.wait && rx_fill_ == Fill::full) ? Ruling::no_room : Ruling::admitted;
}

}  // namespace weir::assemble
