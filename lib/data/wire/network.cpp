// Every case of a frame: VLAN tags, IPv4 with options, IPv6 with its extension headers, pieces of datagrams, and what
// is wrong with it.
#include "wire/network.hpp"

namespace weir::wire {
namespace {

/// What of an IPv6 packet lies before the part that UDP, or anything else, begins with.
struct Ipv6Chain {
    Verdict verdict = ok;
    std::uint8_t next = 0;             ///< of the last header that was followed
    std::uint32_t bytes = 0;           ///< of all headers
    const std::byte* piece = nullptr;  ///< the fragment header, if the packet is a piece of a datagram
};

/// Bytes of the extension header `kind` at `at`: RFC 8200 section 4, RFC 4302 for authentication.
std::uint32_t extension_bytes(std::uint8_t kind, const std::byte* at) noexcept {
    const auto length = std::to_integer<std::uint32_t>(at[1]);
    return kind == ipv6_authentication ? (length + 2) * 4 : (length + 1) * 8;
}

bool is_extension(std::uint8_t kind) noexcept {
    return kind == ipv6_hop_by_hop || kind == ipv6_routing || kind == ipv6_destination_options ||
           kind == ipv6_authentication || kind == ipv6_fragment;
}

/// Follows the headers of a packet of `ip_bytes`, all of which can be read.
Ipv6Chain follow(const std::byte* ip, std::uint32_t ip_bytes) noexcept {
    Ipv6Chain chain{ok, std::to_integer<std::uint8_t>(ip[6]), ipv6_header_bytes, nullptr};
    for (std::uint32_t count = 0; is_extension(chain.next); ++count) {
        constexpr std::uint32_t extension_bytes_min = 8;
        const std::byte* at = ip + chain.bytes;
        if (count == ipv6_extensions_max || ip_bytes - chain.bytes < extension_bytes_min) {
            chain.verdict = Verdict::malformed_ip_header;
            return chain;
        }
        const bool fragment = chain.next == ipv6_fragment;
        const std::uint32_t bytes = fragment ? ipv6_fragment_header_bytes : extension_bytes(chain.next, at);
        chain.next = std::to_integer<std::uint8_t>(at[0]);
        if (bytes > ip_bytes - chain.bytes || chain.bytes + bytes > ipv6_header_bytes + ipv6_extension_bytes_max) {
            chain.verdict = Verdict::malformed_ip_header;
            return chain;
        }
        chain.bytes += bytes;
        // A fragment header on a whole datagram (RFC 6946) is no more than a header to skip.
        constexpr std::uint16_t offset_and_more = 0xfff9;
        if (fragment && (load_be<std::uint16_t>(at + 2) & offset_and_more) != 0) {
            chain.piece = at;
            return chain;
        }
    }
    return chain;
}

/// The UDP header at `ip + header_bytes` in an IP packet of `ip_bytes` that has been checked; fills `out`, but for the
/// addresses.
Verdict parse_udp(const std::byte* ip, std::uint32_t header_bytes, std::uint32_t ip_bytes, Datagram& out) noexcept {
    const std::uint32_t ip_payload_bytes = ip_bytes - header_bytes;
    if (ip_payload_bytes < udp_header_bytes) return Verdict::malformed_udp_length;
    const std::uint32_t udp_bytes = load_be<std::uint16_t>(ip + header_bytes + 4);
    if (udp_bytes < udp_header_bytes || udp_bytes > ip_payload_bytes) return Verdict::malformed_udp_length;
    describe_udp(ip, header_bytes, ip_bytes, udp_bytes, out);
    return ok;
}

/// A piece of a datagram: `bytes` of it, to lie at `offset`. malformed_ip_fragment either way; with `out.fragment`
/// where the piece can be a part of something.
Verdict parse_fragment(const std::byte* ip, std::uint32_t header_bytes, std::uint32_t ip_bytes, std::uint32_t offset,
                       bool more, Datagram& out) noexcept {
    const std::uint32_t bytes = ip_bytes - header_bytes;
    // All but the last are multiples of 8 bytes, and no datagram is longer than a length can say: that of IPv4 is with
    // the header.
    const std::uint32_t bytes_max = 65535 - (out.ipv6 ? 0 : header_bytes);
    out.fragment = bytes > 0 && (!more || bytes % 8 == 0) && offset + bytes <= bytes_max;
    out.ip = ip;
    out.ip_bytes = ip_bytes;
    out.payload = ip + header_bytes;
    out.payload_bytes = bytes;
    return Verdict::malformed_ip_fragment;
}

/// IPv6, its extension headers and what it carries; arguments as for parse_ipv4.
Verdict parse_ipv6(const std::byte* ip, std::uint32_t room, bool cut, Datagram& out) noexcept {
    if (room < ipv6_header_bytes) return cut ? Verdict::malformed_truncated : Verdict::malformed_ip_header;
    if (std::to_integer<std::uint32_t>(ip[0]) >> 4 != 6) return Verdict::malformed_ip_header;
    const std::uint32_t ip_bytes = ipv6_header_bytes + load_be<std::uint16_t>(ip + 4);
    if (ip_bytes > room) return cut ? Verdict::malformed_truncated : Verdict::malformed_ip_length;
    const Ipv6Chain chain = follow(ip, ip_bytes);
    if (chain.verdict != ok) return chain.verdict;
    // In a later piece nothing says what follows further extension headers: the datagram's first piece will.
    const bool may_be_udp = chain.next == ip_protocol_udp || (chain.piece != nullptr && is_extension(chain.next));
    if (!may_be_udp)
        return chain.next == ip_protocol_icmpv6 ? Verdict::not_for_us_icmp : Verdict::not_for_us_ip_protocol;
    out.src = out.dst = 0;
    out.ipv6 = true;
    if (chain.piece == nullptr) return parse_udp(ip, chain.bytes, ip_bytes, out);
    const std::uint32_t field = load_be<std::uint16_t>(chain.piece + 2);
    return parse_fragment(ip, chain.bytes, ip_bytes, field & 0xfff8U, (field & 1U) != 0, out);
}

/// A frame whose ethertype is not IPv4: VLAN tags, IPv6, and what is not for us.
Verdict parse_other_frame(const std::byte* frame, std::uint32_t captured_bytes, bool cut, Datagram& out) noexcept {
    constexpr std::uint32_t tags_max = 2;
    std::uint32_t at = ethernet_header_bytes;
    std::uint16_t ethertype = load_be<std::uint16_t>(frame + at - 2);
    for (std::uint32_t tags = 0; ethertype == ethertype_vlan || ethertype == ethertype_service_vlan; ++tags) {
        if (tags == tags_max) return Verdict::malformed_ethernet;
        at += vlan_tag_bytes;
        if (captured_bytes < at) return cut ? Verdict::malformed_truncated : Verdict::malformed_ethernet;
        ethertype = load_be<std::uint16_t>(frame + at - 2);
    }
    switch (ethertype) {
        case ethertype_ipv4:
            return parse_ipv4(frame + at, captured_bytes - at, cut, out);
        case ethertype_ipv6:
            return parse_ipv6(frame + at, captured_bytes - at, cut, out);
        case ethertype_arp:
            return Verdict::not_for_us_arp;
        case ethertype_roce_v1:
            return Verdict::not_for_us_roce_v1;
        default:
            return Verdict::not_for_us_ethertype;
    }
}

}  // namespace

Verdict parse_ipv4(const std::byte* ip, std::uint32_t room, bool cut, Datagram& out) noexcept {
    if (room < ipv4_header_bytes) return cut ? Verdict::malformed_truncated : Verdict::malformed_ip_header;
    const std::uint32_t first = std::to_integer<std::uint32_t>(ip[0]);
    const std::uint32_t header_bytes = (first & 0xf) * 4;
    if (first >> 4 != 4 || header_bytes < ipv4_header_bytes) return Verdict::malformed_ip_header;
    if (room < header_bytes) return cut ? Verdict::malformed_truncated : Verdict::malformed_ip_header;
    // A checksum of 0 is what a capture on the sending host shows when the NIC was to fill it in. (An intact header
    // whose checksum happens to be 0 passes both ways.)
    if (load_le<std::uint16_t>(ip + 10) != 0 && ipv4_header_sum(ip, header_bytes) != 0xffff)
        return Verdict::malformed_ip_checksum;
    const std::uint32_t total_bytes = load_be<std::uint16_t>(ip + 2);
    if (total_bytes < header_bytes) return Verdict::malformed_ip_length;
    if (total_bytes > room) return cut ? Verdict::malformed_truncated : Verdict::malformed_ip_length;
    const auto protocol = std::to_integer<std::uint8_t>(ip[9]);
    if (protocol != ip_protocol_udp)
        return protocol == ip_protocol_icmp ? Verdict::not_for_us_icmp : Verdict::not_for_us_ip_protocol;
    constexpr std::uint32_t more_fragments = 0x2000;
    constexpr std::uint32_t fragment_offset = 0x1fff;
    describe_ipv4_addresses(ip, out);
    const std::uint32_t field = load_be<std::uint16_t>(ip + 6);
    if ((field & (more_fragments | fragment_offset)) != 0)
        return parse_fragment(ip, header_bytes, total_bytes, (field & fragment_offset) * 8,
                              (field & more_fragments) != 0, out);
    return parse_udp(ip, header_bytes, total_bytes, out);
}

Verdict parse_any_frame(const std::byte* frame, std::uint32_t captured_bytes, std::uint32_t wire_bytes,
                        Datagram& out) noexcept {
    const bool cut = captured_bytes < wire_bytes;
    if (captured_bytes < ethernet_header_bytes) return cut ? Verdict::malformed_truncated : Verdict::malformed_ethernet;
    if (load_be<std::uint16_t>(frame + ethernet_header_bytes - 2) != ethertype_ipv4)
        return parse_other_frame(frame, captured_bytes, cut, out);
    return parse_ipv4(frame + ethernet_header_bytes, captured_bytes - ethernet_header_bytes, cut, out);
}

}  // namespace weir::wire
