#include "steer/classifier.hpp"

#include <rte_thash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace weir::flow {

namespace {

constexpr std::uint32_t narrow_bits = 16;

// The verification key of Microsoft's RSS specification, which most drivers have as their default.
constexpr std::array<std::uint8_t, 40> rss_key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                               0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                               0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                               0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

Wide next(const Wide& value) noexcept {
    return {value.high + (value.low == ~std::uint64_t{0} ? 1 : 0), value.low + 1};
}

void set_bit(std::uint64_t* bits, std::size_t at) noexcept {
    bits[at / 64] |= std::uint64_t{1} << (at % 64);
}

}  // namespace

Classifier::Classifier(std::vector<FlowRule> rules)
    : rules_(std::move(rules)),
      order_(rules_.size()),
      words_((rules_.size() + 63) / 64),
      shapes_(Shape::count * words_) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::stable_sort(order_, {}, [this](std::uint32_t rule) { return rules_[rule].priority; });
    for (std::uint8_t tags = 0; tags < 4; ++tags)
        for (const Network network : {Network::other, Network::ipv4, Network::ipv6})
            for (const bool udp : {false, true}) {
                const Shape shape{tags, network, udp};
                for (std::size_t i = 0; i < order_.size(); ++i)
                    if (rules_[order_[i]].fits(shape)) set_bit(&shapes_[shape.index() * words_], i);
            }
    for (std::size_t field = 0; field < field_count; ++field) add_axis(static_cast<Field>(field));
    make_plain();
}

bool Classifier::accepts(const FlowRule& rule, Field field, const Wide& value) const noexcept {
    return std::ranges::all_of(rule.conditions, [&](const Condition& condition) {
        return condition.field != field || condition.holds(value);
    });
}

void Classifier::add_axis(Field field) {
    std::vector<Wide> masks;
    for (const FlowRule& rule : rules_)
        for (const Condition& condition : rule.conditions)
            if (condition.field == field && std::ranges::find(masks, condition.mask) == masks.end())
                masks.push_back(condition.mask);
    if (masks.empty()) return;
    if (field_bits(field) <= narrow_bits) return add_narrow(field);
    for (const Wide& mask : masks) add_wide(field, mask);
}

/// Begins with one class of all values and splits the classes by each rule that looks at the field.
void Classifier::add_narrow(Field field) {
    NarrowAxis axis{field, std::vector<std::uint16_t>(std::size_t{1} << field_bits(field)), {}};
    std::vector<Bits> classes(1, Bits(words_));
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const FlowRule& rule = rules_[order_[i]];
        if (std::ranges::find(rule.conditions, field, &Condition::field) == rule.conditions.end()) {
            for (Bits& bits : classes) set_bit(bits.data(), i);
            continue;
        }
        // Of each class those values that the rule refuses, and those that it accepts. No class is ever empty, so their
        // numbers fit.
        constexpr std::int32_t unseen = -1;
        std::vector<std::array<std::int32_t, 2>> parts(classes.size(), {unseen, unseen});
        std::vector<Bits> split;
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
    for (const Bits& bits : classes) axis.bits.insert(axis.bits.end(), bits.begin(), bits.end());
    narrow_.push_back(std::move(axis));
}

void Classifier::add_wide(Field field, const Wide& mask) {
    const auto belongs = [&](const Condition& condition) { return condition.field == field && condition.mask == mask; };
    WideAxis axis{field, mask, {Wide{}}, {}};
    for (const FlowRule& rule : rules_)
        for (const Condition& condition : rule.conditions) {
            if (!belongs(condition)) continue;
            axis.starts.push_back(condition.first);
            if (const Wide behind = next(condition.last); behind != Wide{}) axis.starts.push_back(behind);
        }
    std::ranges::sort(axis.starts);
    axis.starts.erase(std::unique(axis.starts.begin(), axis.starts.end()), axis.starts.end());
    axis.bits.resize(axis.starts.size() * words_);
    for (std::size_t at = 0; at < axis.starts.size(); ++at)
        for (std::size_t i = 0; i < order_.size(); ++i)
            if (std::ranges::all_of(rules_[order_[i]].conditions, [&](const Condition& condition) {
                    return !belongs(condition) ||
                           (condition.first <= axis.starts[at] && axis.starts[at] <= condition.last);
                }))
                set_bit(&axis.bits[at * words_], i);
    wide_.push_back(std::move(axis));
}

std::uint32_t Classifier::match(const PacketFields& packet) const noexcept {
    if (words_ == 0) return none;
    // The intervals are found once, not once per word of the bits.
    constexpr std::size_t axes_max = 64;
    std::array<const std::uint64_t*, axes_max> rows;
    std::size_t count = 0;
    rows[count++] = &shapes_[packet.shape.index() * words_];
    for (const NarrowAxis& axis : narrow_) rows[count++] = &axis.bits[axis.class_of[packet[axis.field].low] * words_];
    std::size_t many = 0;  // axes that do not fit: looked up word by word
    for (; many < wide_.size() && count < axes_max; ++many) {
        const WideAxis& axis = wide_[many];
        const auto behind = std::ranges::upper_bound(axis.starts, packet[axis.field] & axis.mask);
        rows[count++] = &axis.bits[static_cast<std::size_t>(behind - axis.starts.begin() - 1) * words_];
    }
    for (std::size_t word = 0; word < words_; ++word) {
        std::uint64_t bits = rows[0][word];
        for (std::size_t i = 1; i < count; ++i) bits &= rows[i][word];
        for (std::size_t i = many; bits != 0 && i < wide_.size(); ++i) {
            const auto behind = std::ranges::upper_bound(wide_[i].starts, packet[wide_[i].field] & wide_[i].mask);
            bits &= wide_[i].bits[static_cast<std::size_t>(behind - wide_[i].starts.begin() - 1) * words_ + word];
        }
        if (bits != 0) return order_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
    }
    return none;
}

Verdict Classifier::classify(const PacketFields& packet) const noexcept {
    Verdict verdict;
    const std::uint32_t rule = match(packet);
    if (rule == none) return verdict;
    verdict.rule = rule;
    for (const Action& action : rules_[rule].actions) {
        if (action.kind == ActionKind::queue) verdict.queue = static_cast<std::uint16_t>(action.value);
        if (action.kind == ActionKind::rss) verdict.queue = rss_queue(action.rss, packet);
        if (action.kind == ActionKind::mark) verdict.mark = action.value;
        if (action.kind == ActionKind::drop) verdict.dropped = true;
    }
    return verdict;
}

std::uint16_t rss_queue(const RssAction& action, const PacketFields& packet) noexcept {
    const bool v6 = packet.shape.network == Network::ipv6;
    const auto wants = [&](std::string_view type) {
        return std::ranges::find(action.types, type) != action.types.end();
    };
    const bool ports =
        packet.shape.udp && (action.types.empty() || wants("udp") || wants(v6 ? "ipv6-udp" : "ipv4-udp"));
    const bool addresses = action.types.empty() || ports || wants("ip") || wants(v6 ? "ipv6" : "ipv4");
    if (packet.shape.network == Network::other || !addresses) return action.queues.front();
    std::array<std::uint32_t, 9> words{};
    std::uint32_t count = 0;
    const auto put = [&](const Wide& address) {
        if (v6) {
            words[count++] = static_cast<std::uint32_t>(address.high >> 32U);
            words[count++] = static_cast<std::uint32_t>(address.high);
            words[count++] = static_cast<std::uint32_t>(address.low >> 32U);
        }
        words[count++] = static_cast<std::uint32_t>(address.low);
    };
    put(packet[v6 ? Field::ipv6_src : Field::ipv4_src]);
    put(packet[v6 ? Field::ipv6_dst : Field::ipv4_dst]);
    if (ports)
        words[count++] = static_cast<std::uint32_t>(packet[Field::udp_src].low << 16U | packet[Field::udp_dst].low);
    const std::uint32_t hash = ::rte_softrss(words.data(), count, rss_key.data());
    return action.queues[hash % action.queues.size()];
}

}  // namespace weir::flow
