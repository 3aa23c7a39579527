// Ethernet, up to two VLAN tags, IPv4 or IPv6, and UDP: a frame becomes a Datagram or a named reason. What runs for
// nearly every packet is inline; the rest is in network.cpp. Not here: putting fragments together
// (port/ip_reassembly.hpp), and the UDP checksum, which would cost a pass over the data that the NIC has already made.
// docs/reference/NETWORK.md says what is followed and what is not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/bytes.hpp"
#include "wire/fragment.hpp"

namespace weir::wire {

inline constexpr std::uint32_t ethernet_header_bytes = 14;
inline constexpr std::uint32_t vlan_tag_bytes = 4;
inline constexpr std::uint32_t ipv4_header_bytes = 20;  ///< without options
inline constexpr std::uint32_t ipv6_header_bytes = 40;  ///< without extension headers
inline constexpr std::uint32_t ipv6_fragment_header_bytes = 8;
inline constexpr std::uint32_t udp_header_bytes = 8;

inline constexpr std::uint16_t ethertype_ipv4 = 0x0800;
inline constexpr std::uint16_t ethertype_ipv6 = 0x86dd;
inline constexpr std::uint16_t ethertype_arp = 0x0806;
inline constexpr std::uint16_t ethertype_roce_v1 = 0x8915;
inline constexpr std::uint16_t ethertype_vlan = 0x8100;          ///< IEEE 802.1Q
inline constexpr std::uint16_t ethertype_service_vlan = 0x88a8;  ///< IEEE 802.1ad
inline constexpr std::uint8_t ip_protocol_icmp = 1;
inline constexpr std::uint8_t ip_protocol_udp = 17;
inline constexpr std::uint8_t ip_protocol_icmpv6 = 58;

// Next header values of IPv6 that are followed (IANA protocol numbers).
inline constexpr std::uint8_t ipv6_hop_by_hop = 0;
inline constexpr std::uint8_t ipv6_routing = 43;
inline constexpr std::uint8_t ipv6_fragment = 44;
inline constexpr std::uint8_t ipv6_authentication = 51;
inline constexpr std::uint8_t ipv6_destination_options = 60;
/// So many extension headers are followed, of so many bytes together: enough for every use that is made of them, and a
/// bound for what a packet can cost and for how much of it must lie in one piece.
inline constexpr std::uint32_t ipv6_extensions_max = 8;
inline constexpr std::uint32_t ipv6_extension_bytes_max = 512;

/// One's complement sum of an IPv4 header (RFC 1071), its checksum field included: 0xFFFF when the header is intact.
/// `bytes` is a multiple of 4, at least 20.
[[nodiscard]] inline std::uint32_t ipv4_header_sum(const std::byte* header, std::uint32_t bytes) noexcept {
    // The sum does not depend on byte order, and 32-bit words are two 16-bit words summed at once.
    std::uint64_t sum = load_le<std::uint32_t>(header + 16);
    const auto first = load_le<std::uint64_t>(header);
    const auto second = load_le<std::uint64_t>(header + 8);
    sum += (first & 0xffffffff) + (first >> 32) + (second & 0xffffffff) + (second >> 32);
    for (std::uint32_t at = ipv4_header_bytes; at < bytes; at += 4) sum += load_le<std::uint32_t>(header + at);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint32_t>(sum);
}

/// What the headers of a datagram that has been checked say, but for the addresses.
inline void describe_udp(const std::byte* ip, std::uint32_t header_bytes, std::uint32_t ip_bytes,
                         std::uint32_t udp_bytes, Datagram& out) noexcept {
    const std::byte* const udp = ip + header_bytes;
    out.payload = udp + udp_header_bytes;
    out.ip = ip;
    out.payload_bytes = udp_bytes - udp_header_bytes;
    out.ip_bytes = ip_bytes;
    out.sport = load_be<std::uint16_t>(udp);
    out.dport = load_be<std::uint16_t>(udp + 2);
    out.fragment = false;
}
inline void describe_ipv4_addresses(const std::byte* ip, Datagram& out) noexcept {
    out.src = load_be<std::uint32_t>(ip + 12);
    out.dst = load_be<std::uint32_t>(ip + 16);
    out.ipv6 = false;
}

/// IPv4 and what it carries; `ip` .. `ip + room` is what follows the Ethernet header, padding included. `cut`: bytes
/// after it were not captured.
[[nodiscard]] Verdict parse_ipv4(const std::byte* ip, std::uint32_t room, bool cut, Datagram& out) noexcept;

/// The shape of nearly every frame: untagged, IPv4 without options and whole, UDP, everything intact. Fills `out` then;
/// otherwise says false, and parse_any_frame says what the frame is. All is looked at before anything is decided, so
/// that there is one branch.
[[nodiscard]] inline bool parse_plain(const std::byte* frame, std::uint32_t captured_bytes, Datagram& out) noexcept {
    if (captured_bytes < ethernet_header_bytes + ipv4_header_bytes + udp_header_bytes) return false;
    const std::byte* const ip = frame + ethernet_header_bytes;
    // Version and length of the header, no piece of a datagram; then the protocol. (DF and the reserved bit may be
    // set.)
    constexpr std::uint64_t shape_mask = 0xff3f'0000'0000'00ff;
    constexpr std::uint64_t shape = 0x45;
    const auto first = load_le<std::uint64_t>(ip);
    const auto second = load_le<std::uint64_t>(ip + 8);
    const auto third = load_le<std::uint32_t>(ip + 16);
    // One's complement: the 16-bit words add up to a multiple of 0xffff. A checksum of 0 says nothing, see parse_ipv4.
    const std::uint64_t sum = (first & 0xffffffff) + (first >> 32) + (second & 0xffffffff) + (second >> 32) + third;
    const bool believed = (sum % 0xffff == 0) | ((second & 0xffff'0000) == 0);
    const std::uint32_t ip_bytes = load_be<std::uint16_t>(ip + 2);
    const std::uint32_t udp_bytes = load_be<std::uint16_t>(ip + ipv4_header_bytes + 4);
    const bool plain = (load_be<std::uint16_t>(ip - 2) == ethertype_ipv4) & ((first & shape_mask) == shape) &
                       ((second >> 8 & 0xff) == ip_protocol_udp) & believed &
                       (ip_bytes <= captured_bytes - ethernet_header_bytes) & (udp_bytes >= udp_header_bytes) &
                       (udp_bytes + ipv4_header_bytes <= ip_bytes);
    if (!plain) [[unlikely]]
        return false;
    describe_udp(ip, ipv4_header_bytes, ip_bytes, udp_bytes, out);
    describe_ipv4_addresses(ip, out);
    return true;
}

/// Pieces of one datagram, at most: 64 KiB in pieces of 512 bytes, as the smallest MTU that IPv4 hosts agree on makes.
inline constexpr std::uint32_t ip_pieces_max = 128;

/// Where a piece (see parse_frame) lies in its datagram, and of which it is a part beside its addresses. RFC 791
/// section 3.1; RFC 8200 section 4.5, whose header lies right before the piece.
struct PiecePlace {
    std::uint32_t identification = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool last = false;
};
[[nodiscard]] inline PiecePlace place_of(const Datagram& piece) noexcept {
    PiecePlace place;
    if (piece.ipv6) {
        const std::byte* const header = piece.payload - ipv6_fragment_header_bytes;
        const std::uint32_t field = load_be<std::uint16_t>(header + 2);
        place = {load_be<std::uint32_t>(header + 4), field & 0xfff8U, 0, (field & 1U) == 0};
    } else {
        const std::uint32_t field = load_be<std::uint16_t>(piece.ip + 6);
        place = {load_be<std::uint16_t>(piece.ip + 4), (field & 0x1fffU) * 8, 0, (field & 0x2000U) == 0};
    }
    place.end = place.begin + piece.payload_bytes;
    return place;
}

/// parse_frame, by the way that knows every case.
[[nodiscard]] Verdict parse_any_frame(const std::byte* frame, std::uint32_t captured_bytes, std::uint32_t wire_bytes,
                                      Datagram& out) noexcept;

/// Reads one Ethernet frame of which `captured_bytes` can be read and which had `wire_bytes` on the wire (equal, except
/// in a capture with a snapshot length). `out` means something only when the answer is `ok`, or malformed_ip_fragment
/// with `out.fragment` set. That is a piece of an IPv4 or IPv6 datagram which can be put together with others: then
/// `ip`, `ip_bytes`, ip_header_bytes() (everything before the piece, so with the fragment header), the addresses and
/// `ipv6` are set, and `payload .. payload + payload_bytes` is the piece itself.
///
/// Up to two VLAN tags are followed, 802.1Q and 802.1ad in any mix; a third is malformed_ethernet: the port is
/// configured in a way that weir does not follow.
///
/// Bytes that are needed and not there give malformed_truncated if the frame was cut (captured < wire), and otherwise
/// the reason of the layer whose length is wrong. Ethernet padding after the IP packet is tolerated, and so are bytes
/// between the end of the UDP datagram and the end of the IP packet: the UDP length decides what is payload, as in the
/// Linux kernel. The order of the checks is that of trust: nothing in an IPv4 header is believed before its checksum.
[[nodiscard]] inline Verdict parse_frame(const std::byte* frame, std::uint32_t captured_bytes, std::uint32_t wire_bytes,
                                         Datagram& out) noexcept {
    if (parse_plain(frame, captured_bytes, out)) [[likely]]
        return ok;
    return parse_any_frame(frame, captured_bytes, wire_bytes, out);
}

}  // namespace weir::wire
