#include "wire/encapsulation.hpp"

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {
namespace {

constexpr std::uint16_t ethertype_mpls = 0x8847;
constexpr std::uint16_t ethertype_mpls_upstream = 0x8848;
constexpr std::uint8_t protocol_ipv4 = 4;
constexpr std::uint8_t protocol_ipv6 = 41;
constexpr std::uint8_t protocol_gre = 47;

std::uint16_t short_at(std::span<const std::byte> frame, std::size_t at) noexcept {
    return load_be<std::uint16_t>(frame.data() + at);
}

/// RFC 2784 and 2890; ERSPAN as in draft-foschiano-erspan-03. `at`: where the GRE header begins.
Encapsulated gre_at(std::span<const std::byte> frame, std::size_t at) noexcept {
    constexpr std::uint16_t ethernet = 0x6558;
    constexpr std::uint16_t erspan = 0x88be;
    constexpr std::uint16_t erspan_iii = 0x22eb;
    if (frame.size() < at + 4) return {};
    const std::uint16_t flags = short_at(frame, at);
    const std::uint16_t type = short_at(frame, at + 2);
    if ((flags & 7U) != 0) return {};  // another version: PPTP
    const bool has_sequence = (flags & 0x1000U) != 0;
    const std::size_t header =
        4 + ((flags & 0xc000U) != 0 ? 4U : 0U) + ((flags & 0x2000U) != 0 ? 4U : 0U) + (has_sequence ? 4U : 0U);
    const auto front = [&](std::size_t more) { return static_cast<std::uint16_t>(at + header + more); };
    if (type == ethernet) return {Encapsulation::ethernet_in_gre, front(0)};
    if (type == erspan && !has_sequence) return {Encapsulation::erspan_1, front(0)};
    if (type == erspan) return {Encapsulation::erspan_2, front(8)};
    if (type != erspan_iii) return {};
    // The last bit of the 12-byte header says that 8 bytes of the platform follow.
    const bool longer = frame.size() >= at + header + 12 && (short_at(frame, at + header + 10) & 1U) != 0;
    return {Encapsulation::erspan_3, front(longer ? 20 : 12)};
}

std::optional<Encapsulated> of_protocol(std::uint8_t protocol, std::span<const std::byte> frame,
                                        std::size_t at) noexcept {
    if (protocol == protocol_gre) return gre_at(frame, at);
    if (protocol == protocol_ipv4 || protocol == protocol_ipv6) return Encapsulated{Encapsulation::ip_in_ip, 0};
    return std::nullopt;
}

}  // namespace

const char* name_of(Encapsulation by) noexcept {
    switch (by) {
        case Encapsulation::gre:
            return "GRE";
        case Encapsulation::ethernet_in_gre:
            return "Ethernet over GRE (NVGRE)";
        case Encapsulation::erspan_1:
            return "ERSPAN I over GRE";
        case Encapsulation::erspan_2:
            return "ERSPAN II over GRE";
        case Encapsulation::erspan_3:
            return "ERSPAN III over GRE";
        case Encapsulation::ip_in_ip:
            return "IP in IP";
        case Encapsulation::mpls:
            return "MPLS";
        case Encapsulation::old_service_vlan:
            return "QinQ with the tag 0x9100";
        case Encapsulation::vxlan:
            return "VXLAN";
        case Encapsulation::geneve:
            return "Geneve";
    }
    return "";
}

std::optional<Encapsulated> encapsulation_of(std::span<const std::byte> frame) noexcept {
    if (frame.size() < ethernet_header_bytes) return std::nullopt;
    std::size_t at = ethernet_header_bytes;
    std::uint16_t type = short_at(frame, at - 2);
    for (int tags = 0; tags < 2 && (type == ethertype_vlan || type == ethertype_service_vlan); ++tags) {
        at += vlan_tag_bytes;
        if (frame.size() < at) return std::nullopt;
        type = short_at(frame, at - 2);
    }
    switch (type) {
        case ethertype_mpls:
        case ethertype_mpls_upstream:
            return Encapsulated{Encapsulation::mpls, 0};
        case 0x9100:  // before IEEE 802.1ad
        case 0x9200:
            return Encapsulated{Encapsulation::old_service_vlan, 0};
        case ethertype_ipv4: {
            if (frame.size() < at + ipv4_header_bytes) return std::nullopt;
            const std::size_t header = (std::to_integer<std::size_t>(frame[at]) & 0xfU) * 4;
            return of_protocol(std::to_integer<std::uint8_t>(frame[at + 9]), frame, at + header);
        }
        case ethertype_ipv6:
            if (frame.size() < at + ipv6_header_bytes) return std::nullopt;
            return of_protocol(std::to_integer<std::uint8_t>(frame[at + 6]), frame, at + ipv6_header_bytes);
        default:
            return std::nullopt;
    }
}

std::optional<Encapsulated> encapsulation_of_udp(std::uint16_t port, std::span<const std::byte> payload,
                                                 std::uint32_t payload_at) noexcept {
    constexpr std::size_t header_bytes = 8;  // of both, RFC 7348 and RFC 8926, without options
    if (payload.size() < header_bytes) return std::nullopt;
    const auto first = std::to_integer<std::uint32_t>(payload[0]);
    if ((port == vxlan_port || port == vxlan_port_of_linux) && (first & 0x08U) != 0)
        return Encapsulated{Encapsulation::vxlan, static_cast<std::uint16_t>(payload_at + header_bytes)};
    if (port == 6081 && first >> 6U == 0 && load_be<std::uint16_t>(payload.data() + 2) == 0x6558)
        return Encapsulated{Encapsulation::geneve,
                            static_cast<std::uint16_t>(payload_at + header_bytes + 4 * (first & 0x3fU))};
    return std::nullopt;
}

}  // namespace weir::wire
