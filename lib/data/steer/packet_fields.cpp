#include "steer/packet_fields.hpp"

#include "wire/bytes.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::steer {

namespace {

using wire::load_be;

constexpr std::uint16_t ethertype_ipv6 = 0x86dd;

Wide address(const std::byte* at) noexcept {
    return {load_be<std::uint64_t>(at), load_be<std::uint64_t>(at + 8)};
}

void read_udp(std::span<const std::byte> rest, PacketFields& out) noexcept {
    if (rest.size() < wire::udp_header_bytes) return;
    out.shape.udp = true;
    out[Field::udp_src].low = load_be<std::uint16_t>(rest.data());
    out[Field::udp_dst].low = load_be<std::uint16_t>(rest.data() + 2);
    constexpr std::size_t qp_offset = wire::udp_header_bytes + 4;  // after a reserved byte
    constexpr std::uint32_t qp_mask = 0xffffff;
    if (out[Field::udp_dst].low == wire::roce_port && rest.size() >= wire::udp_header_bytes + wire::roce_bth_bytes)
        out[Field::roce_qp].low = load_be<std::uint32_t>(rest.data() + qp_offset) & qp_mask;
}

void read_ipv4(std::span<const std::byte> rest, PacketFields& out) noexcept {
    if (rest.size() < wire::ipv4_header_bytes) return;
    const std::byte* ip = rest.data();
    const auto first = std::to_integer<std::uint32_t>(ip[0]);
    const std::size_t header_bytes = (first & 0xf) * 4;
    if (first >> 4 != 4 || header_bytes < wire::ipv4_header_bytes || header_bytes > rest.size()) return;
    out.shape.network = Network::ipv4;
    out[Field::ipv4_tos].low = std::to_integer<std::uint64_t>(ip[1]);
    out[Field::ipv4_ttl].low = std::to_integer<std::uint64_t>(ip[8]);
    out[Field::ipv4_proto].low = std::to_integer<std::uint64_t>(ip[9]);
    out[Field::ipv4_src].low = load_be<std::uint32_t>(ip + 12);
    out[Field::ipv4_dst].low = load_be<std::uint32_t>(ip + 16);
    constexpr std::uint16_t offset_mask = 0x1fff;
    const bool first_fragment = (load_be<std::uint16_t>(ip + 6) & offset_mask) == 0;
    if (std::to_integer<std::uint8_t>(ip[9]) == wire::ip_protocol_udp && first_fragment)
        read_udp(rest.subspan(header_bytes), out);
}

void read_ipv6(std::span<const std::byte> rest, PacketFields& out) noexcept {
    constexpr std::size_t header_bytes = 40;
    if (rest.size() < header_bytes) return;
    const std::byte* ip = rest.data();
    if (std::to_integer<std::uint32_t>(ip[0]) >> 4 != 6) return;
    out.shape.network = Network::ipv6;
    out[Field::ipv6_proto].low = std::to_integer<std::uint64_t>(ip[6]);
    out[Field::ipv6_hop].low = std::to_integer<std::uint64_t>(ip[7]);
    out[Field::ipv6_src] = address(ip + 8);
    out[Field::ipv6_dst] = address(ip + 24);
    if (std::to_integer<std::uint8_t>(ip[6]) == wire::ip_protocol_udp) read_udp(rest.subspan(header_bytes), out);
}

}  // namespace

PacketFields read_fields(std::span<const std::byte> frame) noexcept {
    PacketFields out;
    if (frame.size() < wire::ethernet_header_bytes) return out;
    const std::byte* at = frame.data();
    out[Field::eth_dst].low = load_be<std::uint64_t>(at) >> 16U;
    out[Field::eth_src].low = std::uint64_t{load_be<std::uint32_t>(at + 6)} << 16U | load_be<std::uint16_t>(at + 10);
    std::uint16_t type = load_be<std::uint16_t>(at + 12);
    out[Field::eth_type].low = type;
    std::span<const std::byte> rest = frame.subspan(wire::ethernet_header_bytes);
    constexpr std::uint8_t tags_told_apart = 3;
    while ((type == wire::ethertype_vlan || type == wire::ethertype_service_vlan) &&
           rest.size() >= wire::vlan_tag_bytes && out.shape.tags < tags_told_apart) {
        const std::uint16_t tci = load_be<std::uint16_t>(rest.data());
        type = load_be<std::uint16_t>(rest.data() + 2);
        if (out.shape.tags < 2) {
            out[out.shape.tags == 0 ? Field::vlan_tci : Field::inner_vlan_tci].low = tci;
            out[out.shape.tags == 0 ? Field::vlan_inner_type : Field::inner_vlan_inner_type].low = type;
        }
        ++out.shape.tags;
        rest = rest.subspan(wire::vlan_tag_bytes);
    }
    if (type == wire::ethertype_ipv4) read_ipv4(rest, out);
    if (type == ethertype_ipv6) read_ipv6(rest, out);
    return out;
}

}  // namespace weir::steer
