// Puts Ethernet, IPv4 and UDP headers in front of a payload.
#include "wire/encode.hpp"

#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {

std::uint32_t frame_header_bytes(const FrameSpec& spec) noexcept {
    return ethernet_header_bytes + (spec.vlan ? vlan_tag_bytes : 0) + ipv4_header_bytes + udp_header_bytes;
}

std::size_t write_frame_headers(const FrameSpec& spec, std::uint32_t payload_bytes, std::span<std::byte> out) noexcept {
    const std::uint32_t bytes = frame_header_bytes(spec);
    constexpr std::uint32_t payload_bytes_max = 65535 - ipv4_header_bytes - udp_header_bytes;
    if (out.size() < bytes || payload_bytes > payload_bytes_max) return 0;
    std::byte* at = out.data();
    std::memcpy(at, spec.destination_mac.data(), 6);
    std::memcpy(at + 6, spec.source_mac.data(), 6);
    at += 12;
    if (spec.vlan) {
        store_be(at, ethertype_vlan);
        store_be(at + 2, *spec.vlan);
        at += vlan_tag_bytes;
    }
    store_be(at, ethertype_ipv4);
    std::byte* ip = at + 2;
    ip[0] = std::byte{0x45};
    ip[1] = static_cast<std::byte>(spec.tos);
    store_be(ip + 2, static_cast<std::uint16_t>(ipv4_header_bytes + udp_header_bytes + payload_bytes));
    store_be(ip + 4, spec.identification);
    store_be(ip + 6, spec.dont_fragment ? std::uint16_t{0x4000} : std::uint16_t{0});
    ip[8] = static_cast<std::byte>(spec.ttl);
    ip[9] = static_cast<std::byte>(ip_protocol_udp);
    store_be(ip + 10, std::uint16_t{0});
    store_be(ip + 12, spec.src);
    store_be(ip + 16, spec.dst);
    // The sum is taken over words as they lie in memory, so it is stored as it comes.
    store_le(ip + 10, static_cast<std::uint16_t>(~ipv4_header_sum(ip, ipv4_header_bytes)));
    std::byte* udp = ip + ipv4_header_bytes;
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
    return header_bytes + payload.size();
}

std::vector<std::byte> make_udp_frame(const FrameSpec& spec, std::span<const std::byte> payload) {
    std::vector<std::byte> frame(frame_header_bytes(spec) + payload.size());
    frame.resize(write_udp_frame(spec, payload, frame));
    return frame;
}

}  // namespace weir::wire
