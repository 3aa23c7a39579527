#include "steer/rule_axes.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace weir::steer {

namespace {

constexpr std::uint32_t narrow_bits = 16;

using RuleBits = std::vector<std::uint64_t>;  ///< a bit per rule, in order of precedence

Wide next(const Wide& value) noexcept {
    return {value.high + (value.low == ~std::uint64_t{0} ? 1 : 0), value.low + 1};
}

void set_bit(std::uint64_t* bits, std::size_t at) noexcept {
    bits[at / 64] |= std::uint64_t{1} << (at % 64);
}

bool accepts(const FlowRule& rule, Field field, const Wide& value) noexcept {
    return std::ranges::all_of(rule.conditions, [&](const Condition& condition) {
        return condition.field != field || condition.holds(value);
    });
}

}  // namespace

RuleAxes::RuleAxes(std::span<const FlowRule> rules)
    : order(rules.size()), words((rules.size() + 63) / 64), shapes(Shape::count * words) {
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t rule) { return rules[rule].priority; });
    for (std::uint8_t tags = 0; tags < 4; ++tags)
        for (const Network network : {Network::other, Network::ipv4, Network::ipv6})
            for (const bool udp : {false, true}) {
                const Shape shape{tags, network, udp};
                for (std::size_t i = 0; i < order.size(); ++i)
                    if (rules[order[i]].fits(shape)) set_bit(&shapes[shape.index() * words], i);
            }
    for (std::size_t field = 0; field < field_count; ++field) add_field(rules, static_cast<Field>(field));
}

void RuleAxes::add_field(std::span<const FlowRule> rules, Field field) {
    std::vector<Wide> masks;
    for (const FlowRule& rule : rules)
        for (const Condition& condition : rule.conditions)
            if (condition.field == field && std::ranges::find(masks, condition.mask) == masks.end())
                masks.push_back(condition.mask);
    if (masks.empty()) return;
    if (field_bits(field) <= narrow_bits) return add_narrow(rules, field);
    for (const Wide& mask : masks) add_wide(rules, field, mask);
}

/// Begins with one class of all values and splits the classes by each rule that looks at the field.
void RuleAxes::add_narrow(std::span<const FlowRule> rules, Field field) {
    Narrow axis{field, std::vector<std::uint16_t>(std::size_t{1} << field_bits(field)), {}};
    std::vector<RuleBits> classes(1, RuleBits(words));
    for (std::size_t i = 0; i < order.size(); ++i) {
        const FlowRule& rule = rules[order[i]];
        if (std::ranges::find(rule.conditions, field, &Condition::field) == rule.conditions.end()) {
            for (RuleBits& bits : classes) set_bit(bits.data(), i);
            continue;
        }
        // Of each class those values that the rule refuses, and those that it accepts. No class is ever empty, so their
        // numbers fit.
        constexpr std::int32_t unseen = -1;
        std::vector<std::array<std::int32_t, 2>> parts(classes.size(), {unseen, unseen});
        std::vector<RuleBits> split;
        for (std::size_t value = 0; value < axis.class_of.size(); ++value) {
            std::uint16_t& of = axis.class_of[value];
            const bool accepted = accepts(rule, field, {0, value});
            std::int32_t& part = parts[of][accepted ? 1 : 0];
            if (part == unseen) {
                part = static_cast<std::int32_t>(split.size());
                split.push_back(classes[of]);
                if (accepted) set_bit(split.back().data(), i);
            }
            of = static_cast<std::uint16_t>(part);
        }
        classes = std::move(split);
    }
    for (const RuleBits& bits : classes) axis.bits.insert(axis.bits.end(), bits.begin(), bits.end());
    narrow.push_back(std::move(axis));
}

void RuleAxes::add_wide(std::span<const FlowRule> rules, Field field, const Wide& mask) {
    const auto belongs = [&](const Condition& condition) { return condition.field == field && condition.mask == mask; };
    Intervals axis{field, mask, {Wide{}}, {}};
    for (const FlowRule& rule : rules)
        for (const Condition& condition : rule.conditions) {
            if (!belongs(condition)) continue;
            axis.starts.push_back(condition.first);
            if (const Wide behind = next(condition.last); behind != Wide{}) axis.starts.push_back(behind);
        }
    std::ranges::sort(axis.starts);
    axis.starts.erase(std::unique(axis.starts.begin(), axis.starts.end()), axis.starts.end());
    axis.bits.resize(axis.starts.size() * words);
    for (std::size_t at = 0; at < axis.starts.size(); ++at)
        for (std::size_t i = 0; i < order.size(); ++i)
            if (std::ranges::all_of(rules[order[i]].conditions, [&](const Condition& condition) {
                    return !belongs(condition) ||
                           (condition.first <= axis.starts[at] && axis.starts[at] <= condition.last);
                }))
                set_bit(&axis.bits[at * words], i);
    wide.push_back(std::move(axis));
}

}  // namespace weir::steer
