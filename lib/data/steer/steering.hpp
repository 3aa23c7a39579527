// Steering in software: which stream and which source a datagram belongs to, and which rx lcore assembles it. Built
// once from the configuration; one look-up per packet by UDP port (or queue pair), then the address filters of that
// port.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/flat_table.hpp"
#include "core/number_index.hpp"
#include "wire/fragment.hpp"
#include "wire/roce.hpp"

namespace weir::steer {

/// Network byte order.
using Ipv6Address = std::array<std::uint8_t, 16>;

/// One rule: packets that match it belong to `stream`.
struct Rule {
    std::uint32_t key = 0;  ///< UDP destination port, or destination queue pair (RoCE)
    // Where neither kind has entries, any address will do; otherwise a packet of the other kind does not match.
    std::vector<std::uint32_t> src;     ///< IPv4 source addresses, host byte order
    std::vector<std::uint32_t> dst;     ///< IPv4 destination addresses
    std::vector<Ipv6Address> ipv6_src;  ///< IPv6 source addresses
    std::vector<Ipv6Address> ipv6_dst;  ///< IPv6 destination addresses
    std::optional<std::uint32_t> mark;  ///< that a flow rule gave the packet; nothing: any or none
    std::uint16_t stream = 0;
    std::uint32_t source = 0;        ///< run-wide id
    bool source_by_address = false;  ///< the source is `source` plus what belongs to the matching source address:
    std::vector<std::uint32_t> src_places;       ///< for each of `src`; empty: its index
    std::vector<std::uint32_t> ipv6_src_places;  ///< for each of `ipv6_src`; empty: its index
    std::uint16_t owner = 0;                     ///< index of the rx lcore that assembles the stream
};

/// Where a datagram goes. `stream` is Steering::none when no rule matches.
struct Route {
    std::uint16_t stream = 0;
    std::uint16_t owner = 0;
    std::uint32_t source = 0;
};

class Steering {
public:
    static constexpr std::uint16_t none = 0xffff;

    /// Rules for datagrams by destination port, and for RoCEv2 packets by destination queue pair. Of several that match
    /// the first wins. There are fewer than 65535 of each.
    Steering(std::vector<Rule> udp_rules, std::vector<Rule> roce_rules);

    using Mark = std::optional<std::uint32_t>;

    /// Some rule asks for a mark: otherwise nobody needs to look for one.
    [[nodiscard]] bool uses_marks() const noexcept { return uses_marks_; }
    [[nodiscard]] Route route_udp(const wire::Datagram& datagram, Mark mark = std::nullopt) const noexcept {
        return match(udp_, by_port_[datagram.dport], datagram, mark);
    }
    /// The queue pair is read from the packet before its iCRC has been checked: what is steered wrongly is found bad
    /// later.
    [[nodiscard]] Route route_roce(const wire::Datagram& datagram, Mark mark = std::nullopt) const noexcept {
        const std::optional<std::uint32_t> qp = wire::roce_queue_pair(datagram);
        const std::uint16_t* first = qp ? by_qp_.find({*qp, 0}) : nullptr;
        return first != nullptr ? match(roce_, *first, datagram, mark) : Route{none, 0, 0};
    }
    [[nodiscard]] bool is_roce(const wire::Datagram& datagram) const noexcept {
        return !roce_.rules.empty() && datagram.dport == wire::roce_port;
    }

private:
    static constexpr std::uint16_t end = 0xffff;

    /// The addresses of a rule, to be looked up.
    struct Filter {
        explicit Filter(const Rule& rule);
        core::NumberIndex src;
        core::NumberIndex dst;
        core::NumberIndex ipv6_src;
        core::NumberIndex ipv6_dst;
    };
    struct Rules {
        explicit Rules(std::vector<Rule> given);
        std::vector<Rule> rules;
        std::vector<Filter> filters;      ///< of each rule
        std::vector<std::uint16_t> next;  ///< the next rule with the same key
    };

    [[nodiscard]] static Route match(const Rules& all, std::uint16_t first, const wire::Datagram& datagram,
                                     Mark mark) noexcept;

    bool uses_marks_ = false;
    Rules udp_;
    Rules roce_;
    std::vector<std::uint16_t> by_port_;
    core::FlatTable<std::uint16_t> by_qp_;
};

}  // namespace weir::steer
