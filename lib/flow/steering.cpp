#include "flow/steering.hpp"

#include <algorithm>
#include <cstring>

namespace weir::flow {

namespace {

constexpr std::size_t absent = SIZE_MAX;

std::size_t index_of(const std::vector<std::uint32_t>& addresses, std::uint32_t address) noexcept {
    const auto found = std::ranges::find(addresses, address);
    return found == addresses.end() ? absent : static_cast<std::size_t>(found - addresses.begin());
}

std::size_t index_of(const std::vector<Ipv6Address>& addresses, const std::byte* address) noexcept {
    for (std::size_t i = 0; i < addresses.size(); ++i)
        if (std::memcmp(addresses[i].data(), address, sizeof(Ipv6Address)) == 0) return i;
    return absent;
}

/// What is added to the rule's source for the source address at `index`.
std::uint32_t place_of(const std::vector<std::uint32_t>& places, std::size_t index) noexcept {
    return places.empty() ? static_cast<std::uint32_t>(index) : places[index];
}

}  // namespace

Steering::Steering(std::vector<Rule> udp_rules, std::vector<Rule> roce_rules)
    : udp_rules_(std::move(udp_rules)),
      roce_rules_(std::move(roce_rules)),
      udp_next_(udp_rules_.size(), end),
      roce_next_(roce_rules_.size(), end),
      by_port_(65536, end),
      by_qp_(roce_rules_.size() + 1) {
    const auto asks = [](const Rule& rule) { return rule.mark.has_value(); };
    uses_marks_ = std::ranges::any_of(udp_rules_, asks) || std::ranges::any_of(roce_rules_, asks);
    // Backwards, so that each chain begins with the rule that was given first.
    for (std::size_t i = udp_rules_.size(); i-- > 0;) {
        std::uint16_t& head = by_port_[udp_rules_[i].key & 0xffffU];
        udp_next_[i] = head;
        head = static_cast<std::uint16_t>(i);
    }
    for (std::size_t i = roce_rules_.size(); i-- > 0;) {
        const core::NumberKey key{roce_rules_[i].key, 0};
        if (std::uint16_t* head = by_qp_.find(key); head != nullptr) {
            roce_next_[i] = *head;
            *head = static_cast<std::uint16_t>(i);
        } else {
            by_qp_.insert(key, static_cast<std::uint16_t>(i));
        }
    }
}

Route Steering::match(const std::vector<Rule>& rules, std::uint16_t first, const std::vector<std::uint16_t>& next,
                      const wire::Datagram& datagram, Mark mark) noexcept {
    for (std::uint16_t at = first; at != end; at = next[at]) {
        const Rule& rule = rules[at];
        if (rule.mark.has_value() && rule.mark != mark) continue;
        const bool ipv6 = datagram.ipv6;
        if (!rule.dst.empty() || !rule.ipv6_dst.empty()) {
            const std::size_t found =
                ipv6 ? index_of(rule.ipv6_dst, datagram.ipv6_dst()) : index_of(rule.dst, datagram.dst);
            if (found == absent) continue;
        }
        std::uint32_t source = rule.source;
        if (!rule.src.empty() || !rule.ipv6_src.empty()) {
            const std::size_t found =
                ipv6 ? index_of(rule.ipv6_src, datagram.ipv6_src()) : index_of(rule.src, datagram.src);
            if (found == absent) continue;
            if (rule.source_by_address) source += place_of(ipv6 ? rule.ipv6_src_places : rule.src_places, found);
        }
        return {rule.stream, rule.owner, source};
    }
    return {none, 0, 0};
}

}  // namespace weir::flow
