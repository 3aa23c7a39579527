// Puts Ethernet, IPv4 or IPv6, and UDP headers in front of a payload.
#include "wire/encode.hpp"

#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {

namespace {

std::byte* write_tag(std::byte* at, std::uint16_t ethertype, std::optional<std::uint16_t> control) noexcept {
    if (!control) return at;
    store_be(at, ethertype);
    store_be(at + 2, *control);
    return at + vlan_tag_bytes;
}

void write_ipv4(const FrameSpec& spec, std::uint32_t udp_bytes, std::byte* ip) noexcept {
    ip[0] = std::byte{0x45};
    ip[1] = static_cast<std::byte>(spec.tos);
    store_be(ip + 2, static_cast<std::uint16_t>(ipv4_header_bytes + udp_bytes));
    store_be(ip + 4, spec.identification);
    store_be(ip + 6, spec.dont_fragment ? std::uint16_t{0x4000} : std::uint16_t{0});
    ip[8] = static_cast<std::byte>(spec.ttl);
    ip[9] = static_cast<std::byte>(ip_protocol_udp);
    store_be(ip + 10, std::uint16_t{0});
    store_be(ip + 12, spec.src);
    store_be(ip + 16, spec.dst);
    // The sum is taken over words as they lie in memory, so it is stored as it comes.
    store_le(ip + 10, static_cast<std::uint16_t>(~ipv4_header_sum(ip, ipv4_header_bytes)));
}

void write_ipv6(const FrameSpec& spec, std::uint32_t udp_bytes, std::byte* ip) noexcept {
    store_be(ip, std::uint32_t{6} << 28 | std::uint32_t{spec.tos} << 20);
    store_be(ip + 4, static_cast<std::uint16_t>(udp_bytes));
    ip[6] = static_cast<std::byte>(ip_protocol_udp);
    ip[7] = static_cast<std::byte>(spec.ttl);
    std::memcpy(ip + 8, spec.ipv6->src.data(), 16);
    std::memcpy(ip + 24, spec.ipv6->dst.data(), 16);
}

/// RFC 8200 section 8.1: over the addresses, the length, the protocol and the datagram.
std::uint16_t ipv6_udp_checksum(const std::byte* ip, const std::byte* udp, std::size_t udp_bytes) noexcept {
    std::uint64_t sum = udp_bytes + ip_protocol_udp;
    for (std::size_t at = 8; at < ipv6_header_bytes; at += 2) sum += load_be<std::uint16_t>(ip + at);
    for (std::size_t at = 0; at + 1 < udp_bytes; at += 2) sum += load_be<std::uint16_t>(udp + at);
    if (udp_bytes % 2 != 0) sum += std::to_integer<std::uint64_t>(udp[udp_bytes - 1]) << 8;
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(~sum);  // 0 would mean none
}

}  // namespace

std::uint32_t ip_header_bytes(const FrameSpec& spec) noexcept {
    return spec.ipv6 ? ipv6_header_bytes : ipv4_header_bytes;
}

std::uint32_t frame_header_bytes(const FrameSpec& spec) noexcept {
    return ethernet_header_bytes + (spec.service_vlan ? vlan_tag_bytes : 0) + (spec.vlan ? vlan_tag_bytes : 0) +
           ip_header_bytes(spec) + udp_header_bytes;
}

std::size_t write_frame_headers(const FrameSpec& spec, std::uint32_t payload_bytes, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = frame_header_bytes(spec);
    const std::uint32_t payload_bytes_max = 65535 - (spec.ipv6 ? 0 : ipv4_header_bytes) - udp_header_bytes;
    if (out.size() < bytes || payload_bytes > payload_bytes_max) return 0;
    std::byte* at = out.data();
    std::memcpy(at, spec.destination_mac.data(), 6);
    std::memcpy(at + 6, spec.source_mac.data(), 6);
    at += 12;
    at = write_tag(at, ethertype_service_vlan, spec.service_vlan);
    at = write_tag(at, ethertype_vlan, spec.vlan);
    store_be(at, spec.ipv6 ? ethertype_ipv6 : ethertype_ipv4);
    std::byte* ip = at + 2;
    spec.ipv6 ? write_ipv6(spec, udp_header_bytes + payload_bytes, ip)
              : write_ipv4(spec, udp_header_bytes + payload_bytes, ip);
    std::byte* udp = ip + ip_header_bytes(spec);
    store_be(udp, spec.sport);
    store_be(udp + 2, spec.dport);
    store_be(udp + 4, static_cast<std::uint16_t>(udp_header_bytes + payload_bytes));
    store_be(udp + 6, std::uint16_t{0});
    return bytes;
}

std::size_t write_udp_frame(const FrameSpec& spec, std::span<const std::byte> payload,
                            std::span<std::byte> out) noexcept {
    const std::size_t header_bytes = frame_header_bytes(spec);
    if (out.size() < header_bytes + payload.size()) return 0;
    if (write_frame_headers(spec, static_cast<std::uint32_t>(payload.size()), out) == 0) return 0;
    if (!payload.empty()) std::memcpy(out.data() + header_bytes, payload.data(), payload.size());
    if (spec.ipv6) {
        std::byte* udp = out.data() + header_bytes - udp_header_bytes;
        store_be(udp + 6, ipv6_udp_checksum(udp - ipv6_header_bytes, udp, udp_header_bytes + payload.size()));
    }
    return header_bytes + payload.size();
}

std::vector<std::byte> make_udp_frame(const FrameSpec& spec, std::span<const std::byte> payload) {
    std::vector<std::byte> frame(frame_header_bytes(spec) + payload.size());
    frame.resize(write_udp_frame(spec, payload, frame));
    return frame;
}

}  // namespace weir::wire
