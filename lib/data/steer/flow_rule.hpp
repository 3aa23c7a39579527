// A flow rule as rte_flow understands it: which packets, and what becomes of them. Read from text in the syntax of
// dpdk-testpmd (rule_parser.hpp), applied in software by Classifier (classifier.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::steer {

/// Up to 128 bits of a header, as a number: field value, address.
struct Wide {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend constexpr auto operator<=>(const Wide&, const Wide&) = default;
    friend constexpr Wide operator&(const Wide& a, const Wide& b) noexcept { return {a.high & b.high, a.low & b.low}; }
};

/// The lowest `bits` bits set.
[[nodiscard]] constexpr Wide low_bits(std::uint32_t bits) noexcept {
    constexpr std::uint64_t all = ~std::uint64_t{0};
    if (bits >= 128) return {all, all};
    if (bits > 64) return {all >> (128 - bits), all};
    if (bits == 64) return {0, all};
    return {0, (std::uint64_t{1} << bits) - 1};
}

/// What a rule can look at. `vlan_*` are of the outer tag, `inner_vlan_*` of the second.
enum class Field : std::uint8_t {
    eth_dst,
    eth_src,
    eth_type,
    vlan_tci,
    vlan_inner_type,
    inner_vlan_tci,
    inner_vlan_inner_type,
    ipv4_tos,
    ipv4_ttl,
    ipv4_proto,
    ipv4_src,
    ipv4_dst,
    ipv6_proto,
    ipv6_hop,
    ipv6_src,
    ipv6_dst,
    udp_src,
    udp_dst,
    roce_qp,  ///< destination queue pair of RoCEv2 (UDP port 4791, which a rule on it names too)
    count_,
};
inline constexpr std::size_t field_count = static_cast<std::size_t>(Field::count_);
[[nodiscard]] std::uint32_t field_bits(Field field) noexcept;

/// (value & mask) lies in [first, last]; first and last are masked already.
struct Condition {
    Field field{};
    Wide first{};
    Wide last{};
    Wide mask{};

    [[nodiscard]] constexpr bool holds(const Wide& value) const noexcept {
        const Wide masked = value & mask;
        return first <= masked && masked <= last;
    }
    friend bool operator==(const Condition&, const Condition&) = default;
};

enum class Network : std::uint8_t { other, ipv4, ipv6 };

/// What headers a frame has, one after the other.
struct Shape {
    std::uint8_t tags = 0;  ///< VLAN tags, at most 3 are told apart
    Network network = Network::other;
    bool udp = false;

    static constexpr std::uint32_t count = 4 * 3 * 2;
    [[nodiscard]] constexpr std::uint32_t index() const noexcept {
        return (std::uint32_t{tags} * 3 + static_cast<std::uint32_t>(network)) * 2 + (udp ? 1U : 0U);
    }
};

enum class ActionKind : std::uint8_t { queue, rss, mark, drop, count };

struct RssAction {
    std::vector<std::uint16_t> queues;
    std::vector<std::string> types;  ///< as written: "ipv4", "ipv4-udp", …; empty: addresses and, with UDP, ports
    friend bool operator==(const RssAction&, const RssAction&) = default;
};

struct Action {
    ActionKind kind{};
    std::uint32_t value = 0;  ///< queue index or mark id
    RssAction rss{};
    friend bool operator==(const Action&, const Action&) = default;
};

/// One `flow create` line.
struct FlowRule {
    std::uint32_t line = 0;  ///< in its file, from 1
    std::uint32_t port = 0;  ///< as written; weir applies a file to the port that names it
    std::uint32_t priority = 0;
    std::uint8_t tags = 0;       ///< `vlan` items
    bool tags_exact = false;     ///< something follows the tags, so there are no more of them
    bool needs_network = false;  ///< `network` is asked for
    Network network = Network::other;
    bool needs_udp = false;
    std::vector<Condition> conditions;
    std::vector<Action> actions;

    /// Whether a frame of this shape has the headers that the pattern names.
    [[nodiscard]] constexpr bool fits(const Shape& shape) const noexcept {
        if (tags_exact ? shape.tags != tags : shape.tags < tags) return false;
        if (needs_network && shape.network != network) return false;
        return !needs_udp || shape.udp;
    }
    friend bool operator==(const FlowRule&, const FlowRule&) = default;
};

/// The rule as a line that dpdk-testpmd and parse_rules read.
[[nodiscard]] std::string to_text(const FlowRule& rule);

}  // namespace weir::steer
