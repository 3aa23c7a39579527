#include "port/arp_responder.hpp"

#include <algorithm>
#include <cstring>

#include "port/ipv6_responder.hpp"
#include "wire/network.hpp"

namespace weir::port {

namespace {

constexpr std::size_t frame_bytes_min = 60;  // IEEE 802.3, without the FCS
constexpr std::size_t arp_bytes = 28;
constexpr std::size_t ip_header_bytes = wire::ipv4_header_bytes;
constexpr std::size_t icmp_header_bytes = 8;
using wire::ethertype_arp;
constexpr std::uint16_t ethertype_ip = wire::ethertype_ipv4;

std::uint8_t get8(const std::byte* at) noexcept {
    return std::to_integer<std::uint8_t>(*at);
}
std::uint16_t get16(const std::byte* at) noexcept {
    return wire::load_be<std::uint16_t>(at);
}
std::uint32_t get32(const std::byte* at) noexcept {
    return wire::load_be<std::uint32_t>(at);
}
void put16(std::byte* at, std::uint16_t value) noexcept {
    wire::store_be(at, value);
}
void put32(std::byte* at, std::uint32_t value) noexcept {
    wire::store_be(at, value);
}

// RFC 1071. Over bytes that hold their own checksum the result is 0.
std::uint16_t internet_checksum(const std::byte* bytes, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (; count > 1; bytes += 2, count -= 2) {
        sum += get16(bytes);
    }
    if (count == 1) {
        sum += static_cast<std::uint64_t>(get8(bytes)) << 8;
    }
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(~sum);
}

bool is_multicast(const std::byte* mac) noexcept {
    return (get8(mac) & 1) != 0;
}
bool equals(const std::byte* mac, const MacAddress& own) noexcept {
    return std::memcmp(mac, own.data(), own.size()) == 0;
}
bool is_broadcast(const std::byte* mac) noexcept {
    return std::all_of(mac, mac + 6, [](std::byte value) { return value == std::byte{0xff}; });
}

void put_arp(std::byte* arp, std::uint16_t operation, const PortAddress& sender, const std::byte* target_mac,
             std::uint32_t target_ip) noexcept {
    put16(arp, 1);  // Ethernet
    put16(arp + 2, ethertype_ip);
    arp[4] = std::byte{6};
    arp[5] = std::byte{4};
    put16(arp + 6, operation);
    std::memcpy(arp + 8, sender.mac.data(), 6);
    put32(arp + 14, sender.ip);
    std::memcpy(arp + 18, target_mac, 6);
    put32(arp + 24, target_ip);
}

std::size_t answer_arp(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                       std::span<std::byte> reply) noexcept {
    const std::byte* arp = frame.data() + head;
    if (frame.size() < head + arp_bytes || reply.size() < frame_bytes_min || get16(arp) != 1 ||
        get16(arp + 2) != ethertype_ip || get8(arp + 4) != 6 || get8(arp + 5) != 4 || get16(arp + 6) != 1) {
        return 0;
    }
    // One's own announcement coming back, or a sender whose address nobody could be reached at.
    if (get32(arp + 24) != own.ip || get32(arp + 14) == own.ip || is_multicast(arp + 8)) {
        return 0;
    }
    std::fill_n(reply.data(), frame_bytes_min, std::byte{0});
    std::memcpy(reply.data(), arp + 8, 6);
    std::memcpy(reply.data() + 6, own.mac.data(), 6);
    std::memcpy(reply.data() + 12, frame.data() + 12, head - 12);
    put_arp(reply.data() + head, 2, own, arp + 8, get32(arp + 14));
    return frame_bytes_min;
}

bool is_echo_request(std::span<const std::byte> packet, const PortAddress& own) noexcept {
    if (packet.size() < ip_header_bytes + icmp_header_bytes) {
        return false;
    }
    const std::byte* ip = packet.data();
    const std::size_t total_bytes = get16(ip + 2);
    if (get8(ip) != 0x45 || total_bytes < ip_header_bytes + icmp_header_bytes || total_bytes > packet.size()) {
        return false;
    }
    const bool fragment = (get16(ip + 6) & 0x3fff) != 0;
    const std::uint32_t src = get32(ip + 12);
    // A reply to a broadcast, multicast, loopback or unspecified address could flood others: RFC 1122 section 3.2.1.3.
    const std::uint8_t network = get8(ip + 12);
    const bool src_usable = network != 0 && network != 127 && network < 224 && src != own.ip;
    if (fragment || get8(ip + 9) != 1 || get32(ip + 16) != own.ip || !src_usable ||
        internet_checksum(ip, ip_header_bytes) != 0) {
        return false;
    }
    const std::byte* icmp = ip + ip_header_bytes;
    return get8(icmp) == 8 && get8(icmp + 1) == 0 && internet_checksum(icmp, total_bytes - ip_header_bytes) == 0;
}

std::size_t answer_echo(std::span<const std::byte> frame, std::size_t head, const PortAddress& own,
                        std::span<std::byte> reply) noexcept {
    if (!equals(frame.data(), own.mac) || is_multicast(frame.data() + 6) ||
        !is_echo_request(frame.subspan(head), own)) {
        return 0;
    }
    const std::size_t total_bytes = get16(frame.data() + head + 2);
    const std::size_t reply_bytes = std::max(frame_bytes_min, head + total_bytes);
    if (reply.size() < reply_bytes) {
        return 0;
    }
    std::fill_n(reply.data(), reply_bytes, std::byte{0});
    std::memcpy(reply.data(), frame.data(), head + total_bytes);
    std::memcpy(reply.data(), frame.data() + 6, 6);
    std::memcpy(reply.data() + 6, own.mac.data(), 6);
    std::byte* ip = reply.data() + head;
    ip[8] = std::byte{64};
    std::memcpy(ip + 16, frame.data() + head + 12, 4);
    put32(ip + 12, own.ip);
    put16(ip + 10, 0);
    put16(ip + 10, internet_checksum(ip, ip_header_bytes));
    std::byte* icmp = ip + ip_header_bytes;
    icmp[0] = std::byte{0};
    put16(icmp + 2, 0);
    put16(icmp + 2, internet_checksum(icmp, total_bytes - ip_header_bytes));
    return reply_bytes;
}

}  // namespace

std::size_t answer(std::span<const std::byte> frame, const PortAddress& own, std::span<std::byte> reply) noexcept {
    std::size_t head = 14;
    if (frame.size() < head) {
        return 0;
    }
    std::uint16_t ethertype = get16(frame.data() + 12);
    for (int tags = 0; tags < 2; ++tags) {
        const bool tagged = ethertype == wire::ethertype_vlan || ethertype == wire::ethertype_service_vlan;
        if (!tagged || frame.size() < head + wire::vlan_tag_bytes) {
            break;
        }
        head += wire::vlan_tag_bytes;
        ethertype = get16(frame.data() + head - 2);
    }
    if (ethertype == wire::ethertype_ipv6) {
        return answer_ipv6(frame, head, own, reply);
    }
    if (own.ip == 0) {
        return 0;
    }
    if (ethertype == ethertype_arp && (is_broadcast(frame.data()) || equals(frame.data(), own.mac))) {
        return answer_arp(frame, head, own, reply);
    }
    return ethertype == ethertype_ip ? answer_echo(frame, head, own, reply) : 0;
}

std::size_t announce(const PortAddress& own, std::span<std::byte> frame) noexcept {
    if (frame.size() < frame_bytes_min) {
        return 0;
    }
    std::fill_n(frame.data(), frame_bytes_min, std::byte{0});
    std::fill_n(frame.data(), 6, std::byte{0xff});
    std::memcpy(frame.data() + 6, own.mac.data(), 6);
    put16(frame.data() + 12, ethertype_arp);
    constexpr std::array<std::byte, 6> nobody{};
    put_arp(frame.data() + 14, 1, own, nobody.data(), own.ip);
    return frame_bytes_min;
}

}  // namespace weir::port
