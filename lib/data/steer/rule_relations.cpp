#include "steer/rule_relations.hpp"

#include <algorithm>
#include <numeric>

namespace weir::steer {

namespace {

/// No value satisfies both.
bool exclude(const Condition& a, const Condition& b) noexcept {
    if (a.field != b.field) return false;
    if (a.mask == b.mask) return a.last < b.first || b.last < a.first;
    const Wide common = a.mask & b.mask;
    return a.first == a.last && b.first == b.last && (a.first & common) != (b.first & common);
}

template <class Function>
bool any_shape(Function&& function) {
    for (std::uint8_t tags = 0; tags < 4; ++tags)
        for (const Network network : {Network::other, Network::ipv4, Network::ipv6})
            for (const bool udp : {false, true})
                if (function(Shape{tags, network, udp})) return true;
    return false;
}

/// The queue of a rule whose packets all go to one.
std::optional<std::uint16_t> only_queue(const FlowRule& rule) noexcept {
    for (const Action& action : rule.actions) {
        if (action.kind == ActionKind::queue) return static_cast<std::uint16_t>(action.value);
        if (action.kind == ActionKind::rss && std::ranges::all_of(action.rss.queues, [&](std::uint16_t queue) {
                return queue == action.rss.queues.front();
            }))
            return action.rss.queues.front();
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::uint32_t> precedence(std::span<const FlowRule> rules) {
    std::vector<std::uint32_t> order(rules.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t rule) { return rules[rule].priority; });
    return order;
}

bool may_overlap(const FlowRule& a, const FlowRule& b) noexcept {
    if (!any_shape([&](const Shape& shape) { return a.fits(shape) && b.fits(shape); })) return false;
    for (const Condition& one : a.conditions)
        for (const Condition& other : b.conditions)
            if (exclude(one, other)) return false;
    return true;
}

bool same_outcome(const FlowRule& a, const FlowRule& b) {
    const auto without_count = [](const FlowRule& rule) {
        std::vector<Action> actions = rule.actions;
        std::erase_if(actions, [](const Action& action) { return action.kind == ActionKind::count; });
        return actions;
    };
    return without_count(a) == without_count(b);
}

bool has_action(const FlowRule& rule, ActionKind kind) noexcept {
    return std::ranges::find(rule.actions, kind, &Action::kind) != rule.actions.end();
}

std::vector<std::uint32_t> device_priorities(std::span<const FlowRule> rules) {
    std::vector<std::uint32_t> levels(rules.size());
    const std::vector<std::uint32_t> order = precedence(rules);
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t before = 0; before < i; ++before) {
            const FlowRule& rule = rules[order[i]];
            const FlowRule& first = rules[order[before]];
            if (levels[order[before]] + 1 > levels[order[i]] && !same_outcome(rule, first) && may_overlap(rule, first))
                levels[order[i]] = levels[order[before]] + 1;
        }
    return levels;
}

Match match(const FlowRule& rule, const PartialPacket& packet) noexcept {
    if (!rule.fits(packet.shape)) return Match::no;
    Match result = Match::yes;
    for (const Condition& condition : rule.conditions) {
        const auto& value = packet.values[static_cast<std::size_t>(condition.field)];
        if (!value.has_value())
            result = Match::maybe;
        else if (!condition.holds(*value))
            return Match::no;
    }
    return result;
}

std::optional<std::uint16_t> queue_of(std::span<const FlowRule> rules, const PartialPacket& packet) {
    std::optional<std::uint16_t> queue;
    for (const std::uint32_t at : precedence(rules)) {
        const FlowRule& rule = rules[at];
        const Match found = match(rule, packet);
        if (found == Match::no) continue;
        if (!has_action(rule, ActionKind::drop)) {
            const std::optional<std::uint16_t> here = only_queue(rule);
            if (!here.has_value() || (queue.has_value() && queue != here)) return std::nullopt;
            queue = here;
        }
        if (found == Match::yes) return queue;
    }
    // Some packets may match no rule at all, and go wherever the device puts those.
    return std::nullopt;
}

}  // namespace weir::steer
