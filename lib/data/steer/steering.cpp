#include "steer/steering.hpp"

#include <algorithm>
#include <cstring>

namespace weir::steer {

namespace {

core::NumberKey key_of(const std::byte* ipv6) noexcept {
    core::NumberKey key;
    std::memcpy(&key, ipv6, sizeof(Ipv6Address));
    return key;
}

core::NumberIndex index_of(const std::vector<Ipv6Address>& addresses) {
    std::vector<core::NumberKey> keys;
    for (const Ipv6Address& address : addresses)
        keys.push_back(key_of(reinterpret_cast<const std::byte*>(address.data())));
    return core::NumberIndex(std::move(keys));
}

/// What is added to the rule's source for the source address at `index`.
std::uint32_t place_of(const std::vector<std::uint32_t>& places, std::size_t index) noexcept {
    return places.empty() ? static_cast<std::uint32_t>(index) : places[index];
}

}  // namespace

Steering::Filter::Filter(const Rule& rule)
    : src(rule.src), dst(rule.dst), ipv6_src(index_of(rule.ipv6_src)), ipv6_dst(index_of(rule.ipv6_dst)) {}

Steering::Rules::Rules(std::vector<Rule> given)
    : rules(std::move(given)), filters(rules.begin(), rules.end()), next(rules.size(), end) {}

Steering::Steering(std::vector<Rule> udp_rules, std::vector<Rule> roce_rules)
    : udp_(std::move(udp_rules)), roce_(std::move(roce_rules)), by_port_(65536, end), by_qp_(roce_.rules.size() + 1) {
    const auto asks = [](const Rule& rule) { return rule.mark.has_value(); };
    uses_marks_ = std::ranges::any_of(udp_.rules, asks) || std::ranges::any_of(roce_.rules, asks);
    // Backwards, so that each chain begins with the rule that was given first.
    for (std::size_t i = udp_.rules.size(); i-- > 0;) {
        std::uint16_t& head = by_port_[udp_.rules[i].key & 0xffffU];
        udp_.next[i] = head;
        head = static_cast<std::uint16_t>(i);
    }
    for (std::size_t i = roce_.rules.size(); i-- > 0;) {
        const core::NumberKey key{roce_.rules[i].key, 0};
        if (std::uint16_t* head = by_qp_.find(key); head != nullptr) {
            roce_.next[i] = *head;
            *head = static_cast<std::uint16_t>(i);
        } else {
            by_qp_.insert(key, static_cast<std::uint16_t>(i));
        }
    }
}

Route Steering::match(const Rules& all, std::uint16_t first, const wire::Datagram& datagram, Mark mark) noexcept {
    constexpr std::size_t absent = core::NumberIndex::absent;
    const bool ipv6 = datagram.ipv6;
    for (std::uint16_t at = first; at != end; at = all.next[at]) {
        const Rule& rule = all.rules[at];
        const Filter& filter = all.filters[at];
        if (rule.mark.has_value() && rule.mark != mark) continue;
        if (!filter.dst.empty() || !filter.ipv6_dst.empty()) {
            const std::size_t found =
                ipv6 ? filter.ipv6_dst.find(key_of(datagram.ipv6_dst())) : filter.dst.find(datagram.dst);
            if (found == absent) continue;
        }
        std::uint32_t source = rule.source;
        if (!filter.src.empty() || !filter.ipv6_src.empty()) {
            const std::size_t found =
                ipv6 ? filter.ipv6_src.find(key_of(datagram.ipv6_src())) : filter.src.find(datagram.src);
            if (found == absent) continue;
            if (rule.source_by_address) source += place_of(ipv6 ? rule.ipv6_src_places : rule.src_places, found);
        }
        return {rule.stream, rule.owner, source};
    }
    return {none, 0, 0};
}

}  // namespace weir::steer
