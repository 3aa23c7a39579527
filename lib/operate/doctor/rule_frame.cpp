#include "doctor/rule_frame.hpp"

#include <array>

#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::doctor {

namespace {

using steer::Field;
using steer::Wide;

/// Header values: those that the rule asks for, and harmless ones.
class Values {
public:
    Values(const steer::FlowRule& rule, std::uint32_t variety) {
        set(Field::eth_dst, 0x02000000a002);
        set(Field::eth_src, 0x02000000a001);
        set(Field::ipv4_src, 0xc6120001 + (variety & 0xffU) * 256);  // 198.18.0.0/15, for tests of devices (RFC 2544)
        set(Field::ipv4_dst, 0xc6130001);
        set(Field::ipv6_src, variety + 1);
        set(Field::ipv6_dst, 1);
        set(Field::ipv4_ttl, 64);
        set(Field::ipv6_hop, 64);
        set(Field::udp_src, 0xc000 + variety);
        set(Field::udp_dst, 9);
        for (const steer::Condition& condition : rule.conditions) apply(condition);
    }
    [[nodiscard]] const Wide& operator[](Field field) const noexcept {
        return values_[static_cast<std::size_t>(field)];
    }

private:
    void set(Field field, std::uint64_t value) noexcept { values_[static_cast<std::size_t>(field)] = {0, value}; }
    /// The bits that the condition looks at as its first value has them, the others as they are.
    void apply(const steer::Condition& condition) noexcept {
        Wide& value = values_[static_cast<std::size_t>(condition.field)];
        if (condition.holds(value)) return;
        value.low = (value.low & ~condition.mask.low) | condition.first.low;
        value.high = (value.high & ~condition.mask.high) | condition.first.high;
    }
    std::array<Wide, steer::field_count> values_{};
};

class FrameBuilder {
public:
    void number(std::uint64_t value, unsigned bytes) {
        while (bytes-- > 0) bytes_.push_back(static_cast<std::byte>(value >> (8 * bytes)));
    }
    void address(const Wide& value) {
        number(value.high, 8);
        number(value.low, 8);
    }
    [[nodiscard]] std::vector<std::byte>& bytes() noexcept { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

constexpr std::uint16_t payload_bytes = 32;
constexpr std::uint16_t datagram_bytes = wire::udp_header_bytes + payload_bytes;

std::uint16_t checksum_of(const std::vector<std::byte>& frame, std::size_t from, std::size_t bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = from; i < from + bytes; i += 2)
        sum += std::to_integer<std::uint32_t>(frame[i]) << 8U | std::to_integer<std::uint32_t>(frame[i + 1]);
    while (sum >> 16U != 0) sum = (sum & 0xffffU) + (sum >> 16U);
    return static_cast<std::uint16_t>(~sum);
}

void add_ipv4(FrameBuilder& frame, const Values& values) {
    const std::size_t at = frame.bytes().size();
    frame.number(0x45, 1);
    frame.number(values[Field::ipv4_tos].low, 1);
    frame.number(wire::ipv4_header_bytes + datagram_bytes, 2);
    frame.number(0, 4);
    frame.number(values[Field::ipv4_ttl].low, 1);
    frame.number(wire::ip_protocol_udp, 1);
    frame.number(0, 2);
    frame.number(values[Field::ipv4_src].low, 4);
    frame.number(values[Field::ipv4_dst].low, 4);
    const std::uint16_t sum = checksum_of(frame.bytes(), at, wire::ipv4_header_bytes);
    frame.bytes()[at + 10] = static_cast<std::byte>(sum >> 8U);
    frame.bytes()[at + 11] = static_cast<std::byte>(sum & 0xffU);
}

void add_ipv6(FrameBuilder& frame, const Values& values) {
    frame.number(0x60000000, 4);
    frame.number(datagram_bytes, 2);
    frame.number(wire::ip_protocol_udp, 1);
    frame.number(values[Field::ipv6_hop].low, 1);
    frame.address(values[Field::ipv6_src]);
    frame.address(values[Field::ipv6_dst]);
}

}  // namespace

std::optional<std::vector<std::byte>> rule_frame(const steer::Classifier& rules, std::uint32_t rule,
                                                 std::uint32_t variety) {
    const steer::FlowRule& wanted = rules.rules()[rule];
    const Values values(wanted, variety);
    const bool v6 = wanted.needs_network && wanted.network == steer::Network::ipv6;
    FrameBuilder frame;
    frame.number(values[Field::eth_dst].low, 6);
    frame.number(values[Field::eth_src].low, 6);
    for (unsigned tag = 0; tag < wanted.tags; ++tag) {
        frame.number(wire::ethertype_vlan, 2);
        frame.number(values[tag == 0 ? Field::vlan_tci : Field::inner_vlan_tci].low, 2);
    }
    frame.number(v6 ? 0x86dd : 0x0800, 2);
    if (v6)
        add_ipv6(frame, values);
    else
        add_ipv4(frame, values);
    frame.number(values[Field::udp_src].low, 2);
    frame.number(values[Field::udp_dst].low, 2);
    frame.number(datagram_bytes, 2);
    frame.number(0, 2);  // no checksum
    frame.number(0x64ffffff, 4);
    frame.number(values[Field::roce_qp].low, 4);
    for (unsigned i = 8; i < payload_bytes; ++i) frame.number(0, 1);
    // What the rule is for may be no UDP at all, or belong to another rule before it.
    if (rules.match(steer::read_fields(frame.bytes())) != rule) return std::nullopt;
    return std::move(frame.bytes());
}

}  // namespace weir::doctor
