#include "flow_cases.hpp"

#include <fmt/format.h>

#include <optional>

#include "steer/rule_parser.hpp"

namespace weir::steer::test {

namespace {

const std::vector<std::uint64_t> macs{0x020000000001, 0x020000000002};
const std::vector<std::uint32_t> addresses{0x0a01000a, 0x0a01000b, 0x0a01010a, 0xc0a80701};
const std::vector<Wide> addresses6{{0xfd00000000000000, 0x10}, {0xfd00000000000000, 0x11}, {0x20010db800000000, 1}};
const std::vector<std::uint16_t> ports{50001, 50002, 50003, 4791, 80, 65535};
const std::vector<std::uint16_t> tag_values{1, 100, 0x2064, 0xa001};

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = bytes; i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put(std::vector<std::byte>& out, const Wide& value) {
    put(out, value.high, 8);
    put(out, value.low, 8);
}

std::string address_text(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24U, address >> 16U & 255U, address >> 8U & 255U, address & 255U);
}

std::string address_text(const Wide& address) {
    return fmt::format("{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}", address.high >> 48U, address.high >> 32U & 0xffffU,
                       address.high >> 16U & 0xffffU, address.high & 0xffffU, address.low >> 48U,
                       address.low >> 32U & 0xffffU, address.low >> 16U & 0xffffU, address.low & 0xffffU);
}

std::string number_condition(Random& random, const char* name, std::uint32_t value, std::uint32_t most) {
    switch (random.below(4)) {
        case 0:
            return fmt::format(" {} is {}", name, value);
        case 1:
            return fmt::format(" {} spec {} {} mask {:#x}", name, value, name, random.below(most + 1ULL));
        case 2:
            return fmt::format(" {} spec {} {} last {}", name, value, name,
                               std::min<std::uint64_t>(most, value + random.below(5000)));
        default:
            return fmt::format(" {} spec {} {} last {} {} mask {:#x}", name, value, name, value, name, most);
    }
}

template <class Address>
std::string address_condition(Random& random, const char* name, const Address& value, std::uint32_t bits) {
    if (random.one_in(2)) return fmt::format(" {} is {}", name, address_text(value));
    const std::vector<std::uint32_t> lengths{0, bits / 4, bits / 2, bits - 8, bits - 1, bits};
    return fmt::format(" {} spec {} {} prefix {}", name, address_text(value), name, random.of(lengths));
}

std::string network_item(Random& random, bool v6) {
    std::string text = v6 ? " / ipv6" : " / ipv4";
    for (const char* name : {"src", "dst"}) {
        if (random.below(3) > 0) continue;
        text += v6 ? address_condition(random, name, random.of(addresses6), 128)
                   : address_condition(random, name, random.of(addresses), 32);
    }
    if (random.one_in(4)) text += number_condition(random, "proto", random.one_in(2) ? 17 : 6, 255);
    if (random.one_in(6)) text += number_condition(random, v6 ? "hop" : "ttl", random.one_in(2) ? 1 : 64, 255);
    return text;
}

std::string pattern(Random& random) {
    std::string text = "eth";
    if (random.one_in(5))
        text += fmt::format(" dst is 02:00:00:00:00:0{}", 1 + random.below(2));
    else if (random.one_in(6))
        text += " src spec 02:00:00:00:00:02 src mask ff:00:00:00:00:03";
    if (random.one_in(10)) text += fmt::format(" type is {:#x}", random.one_in(2) ? 0x0800 : 0x86dd);
    for (std::size_t tag = random.below(8); tag > 5; --tag) {
        text += " / vlan";
        if (random.one_in(2)) text += number_condition(random, "vid", random.one_in(2) ? 1 : 100, 0xfff);
        if (random.one_in(3)) text += fmt::format(" pcp is {}", random.one_in(2) ? 1 : 5);
    }
    if (random.one_in(8)) return text;
    text += network_item(random, random.one_in(3));
    if (random.below(4) == 0) return text;
    text += " / udp";
    if (random.one_in(6))
        return text +
               fmt::format(" / ib_bth dst_qp spec {} dst_qp last {}", 0x11 + random.below(2), 0x12 + random.below(2));
    for (const char* name : {"src", "dst"})
        if (random.one_in(2)) text += number_condition(random, name, random.of(ports), 0xffff);
    return text;
}

std::string actions(Random& random) {
    std::string text;
    if (random.one_in(3)) text += fmt::format("mark id {} / ", random.below(100));
    switch (random.below(5)) {
        case 0:
        case 1:
            return text + fmt::format("queue index {} / ", random.below(4));
        case 2:
            return text + "drop / ";
        case 3:
            return text + fmt::format("rss queues {} {} end / ", random.below(4), random.below(4));
        default:
            return text + "count / ";
    }
}

std::optional<Wide> value_of(const FrameSpec& frame, Field field) {
    const auto found = frame.values.find(field);
    return found != frame.values.end() ? std::optional(found->second) : std::nullopt;
}

void put_network(const FrameSpec& frame, std::vector<std::byte>& out) {
    const auto value = [&](Field field) { return frame.values.at(field); };
    const std::uint8_t protocol =
        static_cast<std::uint8_t>(value(frame.network == Network::ipv4 ? Field::ipv4_proto : Field::ipv6_proto).low);
    if (frame.network == Network::ipv4) {
        put(out, frame.options ? 0x46 : 0x45, 1);
        put(out, value(Field::ipv4_tos).low, 1);
        put(out, (frame.options ? 24U : 20U) + 12U, 2);
        put(out, 7, 2);
        put(out, frame.fragment ? 100 : 0x4000, 2);
        put(out, value(Field::ipv4_ttl).low, 1);
        put(out, protocol, 1);
        put(out, 0, 2);
        put(out, value(Field::ipv4_src).low, 4);
        put(out, value(Field::ipv4_dst).low, 4);
        if (frame.options) put(out, 0x01010101, 4);
    } else {
        put(out, 0x60000000, 4);
        put(out, 12, 2);
        put(out, protocol, 1);
        put(out, value(Field::ipv6_hop).low, 1);
        put(out, value(Field::ipv6_src));
        put(out, value(Field::ipv6_dst));
    }
}

}  // namespace

std::vector<std::byte> FrameSpec::bytes() const {
    std::vector<std::byte> out;
    put(out, values.at(Field::eth_dst).low, 6);
    put(out, values.at(Field::eth_src).low, 6);
    for (const std::uint16_t tag : tags) {
        put(out, 0x8100, 2);
        put(out, tag, 2);
    }
    put(out, network == Network::ipv4 ? 0x0800 : network == Network::ipv6 ? 0x86dd : 0x0806, 2);
    if (network == Network::other) {
        out.resize(out.size() + 46);
        return out;
    }
    put_network(*this, out);
    // Ports that a matcher must not take for those of UDP, where it is something else.
    put(out, value_of(*this, Field::udp_src).value_or(Wide{0, 50001}).low, 2);
    put(out, value_of(*this, Field::udp_dst).value_or(Wide{0, 50001}).low, 2);
    put(out, 12, 2);
    put(out, 0, 2);
    put(out, 0x64617461, 4);
    const auto qp = value_of(*this, Field::roce_qp);
    if (qp.has_value()) {
        out.resize(out.size() - 4);
        put(out, 0x64406f12, 4);
        put(out, 0xab000000 | qp->low, 4);
        put(out, 7, 4);
    }
    return out;
}

std::string FrameSpec::text() const {
    std::string text =
        fmt::format("{} tags, network {}, udp {}, fragment {}", tags.size(), static_cast<int>(network), udp, fragment);
    for (const auto& [field, value] : values)
        text += fmt::format(", field {} = {:x}:{:x}", static_cast<int>(field), value.high, value.low);
    return text;
}

FrameSpec random_frame(Random& random) {
    FrameSpec frame;
    if (random.one_in(4))
        for (std::size_t i = 0; i <= random.below(3); ++i) frame.tags.push_back(random.of(tag_values));
    frame.network = random.one_in(8) ? Network::other : random.one_in(3) ? Network::ipv6 : Network::ipv4;
    frame.udp = !random.one_in(6);
    frame.fragment = frame.network == Network::ipv4 && random.one_in(10);
    frame.options = frame.network == Network::ipv4 && random.one_in(10);
    frame.values[Field::eth_dst] = {0, random.of(macs)};
    frame.values[Field::eth_src] = {0, random.of(macs)};
    const std::uint64_t type = frame.network == Network::ipv4   ? 0x0800
                               : frame.network == Network::ipv6 ? 0x86dd
                                                                : 0x0806;
    frame.values[Field::eth_type] = {0, frame.tags.empty() ? type : 0x8100};
    if (!frame.tags.empty()) {
        frame.values[Field::vlan_tci] = {0, frame.tags[0]};
        frame.values[Field::vlan_inner_type] = {0, frame.tags.size() > 1 ? 0x8100 : type};
    }
    if (frame.tags.size() > 1) {
        frame.values[Field::inner_vlan_tci] = {0, frame.tags[1]};
        frame.values[Field::inner_vlan_inner_type] = {0, frame.tags.size() > 2 ? 0x8100 : type};
    }
    const Wide protocol{0, frame.udp ? 17U : 6U};
    if (frame.network == Network::ipv4) {
        frame.values[Field::ipv4_tos] = {0, random.below(2) * 0xb8};
        frame.values[Field::ipv4_ttl] = {0, random.one_in(2) ? 1U : 64U};
        frame.values[Field::ipv4_proto] = protocol;
        frame.values[Field::ipv4_src] = {0, random.of(addresses)};
        frame.values[Field::ipv4_dst] = {0, random.of(addresses)};
    }
    if (frame.network == Network::ipv6) {
        frame.values[Field::ipv6_hop] = {0, random.one_in(2) ? 1U : 64U};
        frame.values[Field::ipv6_proto] = protocol;
        frame.values[Field::ipv6_src] = random.of(addresses6);
        frame.values[Field::ipv6_dst] = random.of(addresses6);
    }
    if (frame.network != Network::other && frame.udp && !frame.fragment) {
        frame.values[Field::udp_src] = {0, random.of(ports)};
        frame.values[Field::udp_dst] = {0, random.of(ports)};
        if (frame.values[Field::udp_dst].low == 4791) frame.values[Field::roce_qp] = {0, 0x11 + random.below(3)};
    }
    return frame;
}

std::vector<FlowRule> random_rules(Random& random, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += fmt::format("flow create 0 priority {} ingress pattern {} / end actions {}end\n", random.below(4),
                            pattern(random), actions(random));
    return parse_rules(text, "random.flow");
}

bool matches(const FlowRule& rule, const FrameSpec& frame) {
    const std::size_t tags = frame.tags.size();
    if (rule.tags_exact ? tags != rule.tags : tags < rule.tags) return false;
    if (rule.needs_network && rule.network != frame.network) return false;
    if (rule.needs_udp && (!frame.udp || frame.fragment || frame.network == Network::other)) return false;
    for (const Condition& condition : rule.conditions) {
        const std::optional<Wide> value = value_of(frame, condition.field);
        if (!value.has_value() || !condition.holds(*value)) return false;
    }
    return true;
}

std::uint32_t linear_winner(const std::vector<FlowRule>& rules, const FrameSpec& frame) {
    std::uint32_t best = Classifier::none;
    for (std::uint32_t i = 0; i < rules.size(); ++i)
        if (matches(rules[i], frame) && (best == Classifier::none || rules[i].priority < rules[best].priority))
            best = i;
    return best;
}

}  // namespace weir::steer::test
