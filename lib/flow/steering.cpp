#include "flow/steering.hpp"

#include <algorithm>

namespace weir::flow {

Steering::Steering(std::vector<Rule> udp_rules, std::vector<Rule> roce_rules)
    : udp_rules_(std::move(udp_rules)),
      roce_rules_(std::move(roce_rules)),
      udp_next_(udp_rules_.size(), end),
      roce_next_(roce_rules_.size(), end),
      by_port_(65536, end),
      by_qp_(roce_rules_.size() + 1) {
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
                      const wire::Datagram& datagram) noexcept {
    for (std::uint16_t at = first; at != end; at = next[at]) {
        const Rule& rule = rules[at];
        if (rule.impossible) continue;
        if (!rule.dst.empty() && std::ranges::find(rule.dst, datagram.dst) == rule.dst.end()) continue;
        std::uint32_t source = rule.source;
        if (!rule.src.empty()) {
            const auto found = std::ranges::find(rule.src, datagram.src);
            if (found == rule.src.end()) continue;
            if (rule.source_by_address) source += static_cast<std::uint32_t>(found - rule.src.begin());
        }
        return {rule.stream, rule.owner, source};
    }
    return {none, 0, 0};
}

}  // namespace weir::flow
