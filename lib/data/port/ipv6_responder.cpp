#include "port/ipv6_responder.hpp"

#include <algorithm>
#include <cstring>

#include "wire/network.hpp"

namespace weir::port {

namespace {

using wire::ipv6_header_bytes;
using wire::load_be;
using wire::store_be;

constexpr std::byte echo_request{128};
constexpr std::byte echo_reply{129};
constexpr std::byte neighbour_solicitation{135};
constexpr std::byte neighbour_advertisement{136};
constexpr std::size_t echo_bytes_min = 8;
constexpr std::size_t solicitation_bytes_min = 24;
constexpr std::size_t advertisement_bytes = 32;  // with the target's link-layer address
constexpr std::byte hop_limit_of_neighbours{255};

/// RFC 8200 section 8.1: the one's complement sum over addresses, length, protocol and the message; 0xFFFF if the
/// message holds its right checksum.
std::uint16_t icmpv6_sum(const std::byte* ip, std::size_t bytes) noexcept {
    std::uint64_t sum = bytes + wire::ip_protocol_icmpv6;
    for (std::size_t at = 8; at < ipv6_header_bytes; at += 2) sum += load_be<std::uint16_t>(ip + at);
    const std::byte* icmp = ip + ipv6_header_bytes;
    for (std::size_t at = 0; at + 1 < bytes; at += 2) sum += load_be<std::uint16_t>(icmp + at);
    if (bytes % 2 != 0) sum += std::to_integer<std::uint64_t>(icmp[bytes - 1]) << 8U;
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
    return static_cast<std::uint16_t>(sum);
}

void write_checksum(std::byte* ip, std::size_t bytes) noexcept {
    std::byte* icmp = ip + ipv6_header_bytes;
    store_be(icmp + 2, std::uint16_t{0});
    store_be(icmp + 2, static_cast<std::uint16_t>(~icmpv6_sum(ip, bytes)));
}

bool is_multicast_mac(const std::byte* mac) noexcept {
    return (mac[0] & std::byte{1}) != std::byte{0};
}
bool is_unspecified(const std::byte* address) noexcept {
    return std::all_of(address, address + 16, [](std::byte value) { return value == std::byte{0}; });
}
bool is_own(const std::byte* address, const PortAddress& own) noexcept {
    return std::memcmp(address, own.ipv6.data(), own.ipv6.size()) == 0;
}

/// ff02::1:ff00:0/104 and the last three bytes of the address (RFC 4291 section 2.7.1).
bool is_solicited_node(const std::byte* address, const PortAddress& own) noexcept {
    constexpr std::array<std::uint8_t, 13> prefix{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    return std::memcmp(address, prefix.data(), prefix.size()) == 0 &&
           std::memcmp(address + prefix.size(), own.ipv6.data() + prefix.size(), 3) == 0;
}

/// Headers of the reply, up to the ICMPv6 message: from the own address, with the tags of the frame.
std::byte* write_headers(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                         const std::byte* to_mac, const std::byte* to, std::size_t icmp_bytes, std::byte hop_limit,
                         std::byte* reply) noexcept {
    std::memcpy(reply, to_mac, 6);
    std::memcpy(reply + 6, own.mac.data(), 6);
    std::memcpy(reply + 12, frame.data() + 12, head - 12);
    std::byte* ip = reply + head;
    store_be(ip, std::uint32_t{6} << 28U);
    store_be(ip + 4, static_cast<std::uint16_t>(icmp_bytes));
    ip[6] = static_cast<std::byte>(wire::ip_protocol_icmpv6);
    ip[7] = hop_limit;
    std::memcpy(ip + 8, own.ipv6.data(), 16);
    std::memcpy(ip + 24, to, 16);
    return ip;
}

/// No option of a solicitation may be empty, and one without a sender names no sender's link-layer address.
bool options_are_good(const std::byte* options, std::size_t bytes, bool unspecified) noexcept {
    constexpr std::byte source_link_layer{1};
    while (bytes > 0) {
        const std::size_t length = bytes < 2 ? 0 : std::to_integer<std::size_t>(options[1]) * 8;
        if (length == 0 || length > bytes || (unspecified && options[0] == source_link_layer)) return false;
        options += length;
        bytes -= length;
    }
    return true;
}

std::size_t answer_solicitation(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                                std::size_t icmp_bytes, std::span<std::byte> reply) noexcept {
    const std::byte* ip = frame.data() + head;
    const std::byte* icmp = ip + ipv6_header_bytes;
    const std::size_t reply_bytes = head + ipv6_header_bytes + advertisement_bytes;
    const bool unspecified = is_unspecified(ip + 8);
    const bool to_us = is_solicited_node(ip + 24, own) || (is_own(ip + 24, own) && !unspecified);
    if (icmp_bytes < solicitation_bytes_min || ip[7] != hop_limit_of_neighbours || !is_own(icmp + 8, own) || !to_us ||
        reply.size() < reply_bytes ||
        !options_are_good(icmp + solicitation_bytes_min, icmp_bytes - solicitation_bytes_min, unspecified))
        return 0;
    // Who has no address yet asks whether this one is free: everybody gets to know that it is not.
    constexpr std::array<std::byte, 6> everybody_mac{std::byte{0x33}, std::byte{0x33}, {}, {}, {}, std::byte{1}};
    std::array<std::byte, 16> everybody{std::byte{0xff}, std::byte{0x02}};
    everybody[15] = std::byte{1};
    std::byte* out = write_headers(frame, head, own, unspecified ? everybody_mac.data() : frame.data() + 6,
                                   unspecified ? everybody.data() : ip + 8, advertisement_bytes,
                                   hop_limit_of_neighbours, reply.data());
    std::byte* message = out + ipv6_header_bytes;
    message[0] = neighbour_advertisement;
    message[1] = std::byte{0};
    constexpr std::uint32_t solicited = 0x40000000;
    constexpr std::uint32_t override_old = 0x20000000;
    store_be(message + 4, (unspecified ? 0 : solicited) | override_old);
    std::memcpy(message + 8, own.ipv6.data(), 16);
    message[24] = std::byte{2};  // target link-layer address, 8 bytes
    message[25] = std::byte{1};
    std::memcpy(message + 26, own.mac.data(), 6);
    write_checksum(out, advertisement_bytes);
    return reply_bytes;
}

std::size_t answer_echo(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                        std::size_t icmp_bytes, std::span<std::byte> reply) noexcept {
    const std::byte* ip = frame.data() + head;
    const std::size_t reply_bytes = head + ipv6_header_bytes + icmp_bytes;
    const bool for_us = std::memcmp(frame.data(), own.mac.data(), 6) == 0 && is_own(ip + 24, own);
    if (icmp_bytes < echo_bytes_min || !for_us || is_unspecified(ip + 8) || reply.size() < reply_bytes) return 0;
    constexpr std::byte hop_limit{64};
    std::byte* out = write_headers(frame, head, own, frame.data() + 6, ip + 8, icmp_bytes, hop_limit, reply.data());
    std::memcpy(out + ipv6_header_bytes, ip + ipv6_header_bytes, icmp_bytes);
    out[ipv6_header_bytes] = echo_reply;
    write_checksum(out, icmp_bytes);
    return reply_bytes;
}

}  // namespace

std::size_t answer_ipv6(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                        std::span<std::byte> reply) noexcept {
    if (!own.has_ipv6 || frame.size() < head + ipv6_header_bytes + echo_bytes_min) return 0;
    const std::byte* ip = frame.data() + head;
    const std::size_t icmp_bytes = load_be<std::uint16_t>(ip + 4);
    // A sender that is a multicast address, or ours, could make a reply go in circles.
    const bool sender_usable = !is_multicast_mac(frame.data() + 6) && ip[8] != std::byte{0xff} && !is_own(ip + 8, own);
    if (std::to_integer<unsigned>(ip[0]) >> 4U != 6 ||
        std::to_integer<std::uint8_t>(ip[6]) != wire::ip_protocol_icmpv6 || icmp_bytes < echo_bytes_min ||
        head + ipv6_header_bytes + icmp_bytes > frame.size() || !sender_usable || icmpv6_sum(ip, icmp_bytes) != 0xffff)
        return 0;
    const std::byte* icmp = ip + ipv6_header_bytes;
    if (icmp[1] != std::byte{0}) return 0;
    if (icmp[0] == neighbour_solicitation) return answer_solicitation(frame, head, own, icmp_bytes, reply);
    return icmp[0] == echo_request ? answer_echo(frame, head, own, icmp_bytes, reply) : 0;
}

}  // namespace weir::port
