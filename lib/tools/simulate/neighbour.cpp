#include "simulate/neighbour.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::simulate {

namespace {

constexpr std::size_t frame_bytes_min = 60;
constexpr std::size_t arp_bytes = 28;
constexpr std::size_t solicitation_bytes = 32;  // RFC 4861 section 4.3 with the source's link-layer address
constexpr std::byte link_layer_of_target{2};    // option of an advertisement, section 4.6.1

using wire::load_be;
using wire::store_be;

std::byte* write_ethernet(const wire::FrameSpec& spec, const port::MacAddress& to, std::uint16_t ethertype,
                          std::byte* at) noexcept {
    std::memcpy(at, to.data(), 6);
    std::memcpy(at + 6, spec.source_mac.data(), 6);
    at += 12;
    for (const auto& [tag, kind] :
         {std::pair(spec.service_vlan, wire::ethertype_service_vlan), std::pair(spec.vlan, wire::ethertype_vlan)}) {
        if (!tag) continue;
        store_be(at, kind);
        store_be(at + 2, *tag);
        at += 4;
    }
    store_be(at, ethertype);
    return at + 2;
}

std::byte* write_arp(const wire::FrameSpec& spec, std::byte* at) noexcept {
    at = write_ethernet(spec, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, wire::ethertype_arp, at);
    store_be(at, std::uint16_t{1});
    store_be(at + 2, wire::ethertype_ipv4);
    at[4] = std::byte{6};
    at[5] = std::byte{4};
    store_be(at + 6, std::uint16_t{1});  // request
    std::memcpy(at + 8, spec.source_mac.data(), 6);
    store_be(at + 14, spec.src);
    std::memset(at + 18, 0, 6);
    store_be(at + 24, spec.dst);
    return at + arp_bytes;
}

/// RFC 8200 section 8.1.
std::uint16_t icmpv6_checksum(const std::byte* ip, std::size_t bytes) noexcept {
    std::uint32_t sum = static_cast<std::uint32_t>(bytes) + wire::ip_protocol_icmpv6;
    for (std::size_t at = 8; at < wire::ipv6_header_bytes + bytes; at += 2) sum += load_be<std::uint16_t>(ip + at);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

std::byte* write_solicitation(const wire::FrameSpec& spec, std::byte* at) noexcept {
    const std::array<std::uint8_t, 16>& target = spec.ipv6->dst;
    // The multicast group of all whose address ends in the same 24 bits (RFC 4291 section 2.7.1).
    std::byte* ip =
        write_ethernet(spec, {0x33, 0x33, 0xff, target[13], target[14], target[15]}, wire::ethertype_ipv6, at);
    std::memset(ip, 0, wire::ipv6_header_bytes + solicitation_bytes);
    ip[0] = std::byte{0x60};
    store_be(ip + 4, static_cast<std::uint16_t>(solicitation_bytes));
    ip[6] = static_cast<std::byte>(wire::ip_protocol_icmpv6);
    ip[7] = std::byte{255};
    std::memcpy(ip + 8, spec.ipv6->src.data(), 16);
    ip[24] = std::byte{0xff};
    ip[25] = std::byte{0x02};
    ip[35] = std::byte{1};
    ip[36] = std::byte{0xff};
    std::memcpy(ip + 37, target.data() + 13, 3);
    std::byte* icmp = ip + wire::ipv6_header_bytes;
    icmp[0] = std::byte{135};
    std::memcpy(icmp + 8, target.data(), 16);
    icmp[24] = std::byte{1};  // the source's link-layer address, in units of 8 bytes
    icmp[25] = std::byte{1};
    std::memcpy(icmp + 26, spec.source_mac.data(), 6);
    store_be(icmp + 2, icmpv6_checksum(ip, solicitation_bytes));
    return icmp + solicitation_bytes;
}

std::optional<port::MacAddress> mac_at(const std::byte* at) noexcept {
    port::MacAddress mac;
    std::memcpy(mac.data(), at, mac.size());
    // Nobody is reached at a group's address, or at none.
    if ((mac[0] & 1) != 0 || mac == port::MacAddress{}) return std::nullopt;
    return mac;
}

/// From an ARP packet of any kind: who sends it says where he is.
std::optional<port::MacAddress> arp_sender(std::uint32_t wanted, std::span<const std::byte> arp) noexcept {
    if (arp.size() < arp_bytes || load_be<std::uint16_t>(arp.data()) != 1 ||
        load_be<std::uint16_t>(arp.data() + 2) != wire::ethertype_ipv4 ||
        load_be<std::uint32_t>(arp.data() + 14) != wanted)
        return std::nullopt;
    return mac_at(arp.data() + 8);
}

std::optional<port::MacAddress> advertised(const std::array<std::uint8_t, 16>& wanted,
                                           std::span<const std::byte> ip) noexcept {
    constexpr std::size_t fixed_bytes = wire::ipv6_header_bytes + 24;
    if (ip.size() < fixed_bytes || ip[6] != static_cast<std::byte>(wire::ip_protocol_icmpv6) ||
        ip[wire::ipv6_header_bytes] != std::byte{136} ||
        std::memcmp(ip.data() + wire::ipv6_header_bytes + 8, wanted.data(), 16) != 0)
        return std::nullopt;
    const std::size_t end =
        std::min(ip.size(), std::size_t{wire::ipv6_header_bytes} + load_be<std::uint16_t>(ip.data() + 4));
    for (std::size_t at = fixed_bytes; at + 8 <= end;) {
        const std::size_t bytes = 8 * std::to_integer<std::size_t>(ip[at + 1]);
        if (bytes == 0) break;
        if (ip[at] == link_layer_of_target) return mac_at(ip.data() + at + 2);
        at += bytes;
    }
    return std::nullopt;
}

}  // namespace

std::size_t ask_neighbour(const wire::FrameSpec& spec, std::span<std::byte> out) noexcept {
    constexpr std::size_t bytes_max = 94;
    if (out.size() < bytes_max) return 0;
    std::byte* end = spec.ipv6 ? write_solicitation(spec, out.data()) : write_arp(spec, out.data());
    const auto bytes = static_cast<std::size_t>(end - out.data());
    if (bytes < frame_bytes_min) std::memset(end, 0, frame_bytes_min - bytes);
    return std::max(bytes, frame_bytes_min);
}

std::optional<port::MacAddress> neighbour_of(const wire::FrameSpec& spec, std::span<const std::byte> frame) noexcept {
    std::size_t at = 12;
    std::uint16_t ethertype = 0;
    for (int tags = 0; tags <= 2; ++tags, at += 4) {
        if (frame.size() < at + 2) return std::nullopt;
        ethertype = load_be<std::uint16_t>(frame.data() + at);
        if (ethertype != wire::ethertype_vlan && ethertype != wire::ethertype_service_vlan) break;
    }
    if (frame.size() < at + 2) return std::nullopt;
    const std::span<const std::byte> packet = frame.subspan(at + 2);
    if (!spec.ipv6) return ethertype == wire::ethertype_arp ? arp_sender(spec.dst, packet) : std::nullopt;
    return ethertype == wire::ethertype_ipv6 ? advertised(spec.ipv6->dst, packet) : std::nullopt;
}

std::optional<port::MacAddress> resolve_neighbour(const wire::FrameSpec& spec, FrameLink& link, double seconds,
                                                  const std::atomic<bool>& stop) {
    using Clock = std::chrono::steady_clock;
    constexpr auto pause = std::chrono::milliseconds(1);
    constexpr auto again = std::chrono::milliseconds(100);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    auto next = Clock::now();
    std::array<std::span<const std::byte>, FrameLink::slots> frames;
    while (!stop.load(std::memory_order_relaxed) && Clock::now() < end) {
        if (Clock::now() >= next) {
            const auto bytes = static_cast<std::uint32_t>(ask_neighbour(spec, link.slot(0)));
            link.send(0, {&bytes, 1});
            next = Clock::now() + again;
        }
        const std::uint32_t count = link.receive(frames);
        for (std::uint32_t i = 0; i < count; ++i)
            if (const auto mac = neighbour_of(spec, frames[i])) return mac;
        if (count == 0) std::this_thread::sleep_for(pause);
    }
    return std::nullopt;
}

}  // namespace weir::simulate
