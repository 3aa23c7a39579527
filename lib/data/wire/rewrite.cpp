// See rewrite.hpp.
#include "wire/rewrite.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::wire {

namespace {

constexpr std::uint8_t ip_protocol_tcp = 6;

/// The one's complement sum of what changed, to be taken over into a checksum that covers it: RFC 1624, equation 3.
class ChecksumChange {
public:
    /// Bytes that begin at an even distance from where the checksum begins to count; an even number of them.
    void replace(const std::byte* old, const std::byte* fresh, std::size_t bytes) noexcept {
        for (std::size_t at = 0; at + 2 <= bytes; at += 2)
            sum_ += (~std::uint32_t{load_be<std::uint16_t>(old + at)} & 0xffffU) + load_be<std::uint16_t>(fresh + at);
    }
    void apply(std::byte* checksum) const noexcept {
        std::uint64_t sum = sum_ + (~std::uint32_t{load_be<std::uint16_t>(checksum)} & 0xffffU);
        while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
        store_be(checksum, static_cast<std::uint16_t>(~sum));
    }

private:
    std::uint64_t sum_ = 0;
};

template <std::size_t size>
bool put(std::byte* at, const std::optional<std::array<std::uint8_t, size>>& value,
         ChecksumChange* change = nullptr) noexcept {
    if (!value || std::memcmp(at, value->data(), size) == 0) return false;
    if (change != nullptr) change->replace(at, reinterpret_cast<const std::byte*>(value->data()), size);
    std::memcpy(at, value->data(), size);
    return true;
}

/// An IP packet, as far as rewriting needs to know it.
struct IpPacket {
    std::byte* ip = nullptr;
    std::uint32_t header_bytes = 0;  ///< with options, or extension headers
    std::uint32_t bytes = 0;
    std::uint8_t protocol = 0;
    bool ipv6 = false;
    bool fragment = false;
    bool has_transport_header = true;  ///< no later fragment

    [[nodiscard]] std::byte* transport() const noexcept { return ip + header_bytes; }
    [[nodiscard]] std::uint32_t transport_bytes() const noexcept { return bytes - header_bytes; }
};

bool read_ipv4(std::byte* ip, std::uint32_t room, IpPacket& out) noexcept {
    if (room < ipv4_header_bytes || std::to_integer<unsigned>(ip[0]) >> 4U != 4) return false;
    out.ip = ip;
    out.header_bytes = (std::to_integer<std::uint32_t>(ip[0]) & 0xfU) * 4;
    out.bytes = load_be<std::uint16_t>(ip + 2);
    if (out.header_bytes < ipv4_header_bytes || out.header_bytes > out.bytes || out.bytes > room) return false;
    out.protocol = std::to_integer<std::uint8_t>(ip[9]);
    const std::uint32_t field = load_be<std::uint16_t>(ip + 6);
    out.fragment = (field & 0x3fffU) != 0;
    out.has_transport_header = (field & 0x1fffU) == 0;
    return true;
}

bool read_ipv6(std::byte* ip, std::uint32_t room, IpPacket& out) noexcept {
    if (room < ipv6_header_bytes || std::to_integer<unsigned>(ip[0]) >> 4U != 6) return false;
    out.ip = ip;
    out.ipv6 = true;
    out.header_bytes = ipv6_header_bytes;
    out.bytes = ipv6_header_bytes + load_be<std::uint16_t>(ip + 4);
    if (out.bytes > room) return false;
    out.protocol = std::to_integer<std::uint8_t>(ip[6]);
    for (std::uint32_t i = 0; i < ipv6_extensions_max && out.has_transport_header; ++i) {
        const std::byte* const header = ip + out.header_bytes;
        const bool is_fragment = out.protocol == ipv6_fragment;
        if (!is_fragment && out.protocol != ipv6_hop_by_hop && out.protocol != ipv6_routing &&
            out.protocol != ipv6_destination_options)
            break;
        if (out.transport_bytes() < ipv6_fragment_header_bytes) return false;
        const std::uint32_t bytes =
            is_fragment ? ipv6_fragment_header_bytes : (std::to_integer<std::uint32_t>(header[1]) + 1) * 8;
        if (bytes > out.transport_bytes()) return false;
        if (is_fragment) {
            out.fragment = true;
            out.has_transport_header = (load_be<std::uint16_t>(header + 2) & 0xfff8U) == 0;
        }
        out.protocol = std::to_integer<std::uint8_t>(header[0]);
        out.header_bytes += bytes;
    }
    return true;
}

/// Where the iCRC is, if this is a RoCEv2 packet that can have one that is defined: without IP options or extensions.
std::byte* icrc_of(const IpPacket& packet) noexcept {
    const std::uint32_t plain = packet.ipv6 ? ipv6_header_bytes : ipv4_header_bytes;
    if (packet.protocol != ip_protocol_udp || packet.fragment || packet.header_bytes != plain) return nullptr;
    constexpr std::uint32_t least = udp_header_bytes + roce_bth_bytes + roce_icrc_bytes;
    if (packet.transport_bytes() < least || load_be<std::uint16_t>(packet.transport() + 2) != roce_port) return nullptr;
    const std::uint32_t udp_bytes = load_be<std::uint16_t>(packet.transport() + 4);
    if (udp_bytes < least || udp_bytes > packet.transport_bytes() || udp_bytes % 2 != 0) return nullptr;
    return packet.transport() + udp_bytes - roce_icrc_bytes;
}

std::uint32_t icrc_for(const IpPacket& packet, const std::byte* icrc) noexcept {
    return roce_icrc(packet.ip, static_cast<std::uint32_t>(icrc - packet.ip));
}

/// Where the checksum is that covers addresses; null if there is none here.
std::byte* checksum_of(const IpPacket& packet) noexcept {
    if (!packet.has_transport_header) return nullptr;
    const auto at = [&](std::uint32_t offset) {
        return packet.transport_bytes() >= offset + 2 ? packet.transport() + offset : nullptr;
    };
    switch (packet.protocol) {
        case ip_protocol_udp: {
            std::byte* const checksum = at(6);
            return checksum != nullptr && load_be<std::uint16_t>(checksum) != 0 ? checksum : nullptr;
        }
        case ip_protocol_tcp:
            return at(16);
        case ip_protocol_icmpv6:
            return packet.ipv6 ? at(2) : nullptr;
        default:
            return nullptr;
    }
}

bool put_addresses(const Rewrite& rewrite, const IpPacket& packet, ChecksumChange& change) noexcept {
    if (packet.ipv6) {
        const bool source = put(packet.ip + 8, rewrite.src_ipv6, &change);
        return put(packet.ip + 24, rewrite.dst_ipv6, &change) || source;
    }
    // No checksum at all is what a capture on the sending host shows when the NIC was to fill it in.
    std::byte* const checksum = packet.ip + 10;
    const bool absent =
        load_be<std::uint16_t>(checksum) == 0 && ipv4_header_sum(packet.ip, packet.header_bytes) != 0xffff;
    const bool source = put(packet.ip + 12, rewrite.src_ipv4, &change);
    const bool changed = put(packet.ip + 16, rewrite.dst_ipv4, &change) || source;
    if (changed && !absent) change.apply(checksum);
    return changed;
}

bool put_port(const Rewrite& rewrite, const IpPacket& packet, ChecksumChange& change) noexcept {
    if (packet.protocol != ip_protocol_udp || !packet.has_transport_header ||
        packet.transport_bytes() < udp_header_bytes)
        return false;
    std::byte* const at = packet.transport() + 2;
    const std::uint16_t port = rewrite.port_for(load_be<std::uint16_t>(at));
    return put(at, std::optional(std::array{static_cast<std::uint8_t>(port >> 8U), static_cast<std::uint8_t>(port)}),
               &change);
}

void rewrite_ip(const Rewrite& rewrite, const IpPacket& packet, Rewritten& out) noexcept {
    std::byte* const icrc = icrc_of(packet);
    const bool icrc_right = icrc != nullptr && icrc_for(packet, icrc) == load_le<std::uint32_t>(icrc);
    std::byte* const checksum = checksum_of(packet);
    ChecksumChange change;
    const bool addresses = put_addresses(rewrite, packet, change);
    const bool port = put_port(rewrite, packet, change);
    if (!addresses && !port) return;
    out.changed = true;
    out.icrc = icrc_right;
    out.icrc_wrong = icrc != nullptr && !icrc_right;
    if (icrc_right) {
        std::array<std::byte, roce_icrc_bytes> fresh;
        store_le(fresh.data(), icrc_for(packet, icrc));
        change.replace(icrc, fresh.data(), fresh.size());
        std::ranges::copy(fresh, icrc);
    }
    if (checksum == nullptr) return;
    change.apply(checksum);
    // Of UDP 0 says that there is none.
    if (packet.protocol == ip_protocol_udp && load_be<std::uint16_t>(checksum) == 0)
        checksum[0] = checksum[1] = std::byte{0xff};
}

}  // namespace

std::uint16_t Rewrite::port_for(std::uint16_t port) const noexcept {
    for (const Port& rule : dst_ports)
        if (rule.from == port || rule.from == 0) return rule.to;
    return port;
}

Rewritten rewrite_frame(const Rewrite& rewrite, std::span<std::byte> frame) noexcept {
    Rewritten out;
    if (frame.size() < ethernet_header_bytes) return out;
    const bool destination = put(frame.data(), rewrite.dst_mac);
    out.changed = put(frame.data() + 6, rewrite.src_mac) || destination;
    if (!rewrite.beyond_ethernet()) return out;
    constexpr std::uint32_t tags_max = 2;
    std::uint32_t at = ethernet_header_bytes;
    std::uint16_t ethertype = load_be<std::uint16_t>(frame.data() + at - 2);
    for (std::uint32_t tags = 0; ethertype == ethertype_vlan || ethertype == ethertype_service_vlan; ++tags) {
        at += vlan_tag_bytes;
        if (tags == tags_max || frame.size() < at) return out;
        ethertype = load_be<std::uint16_t>(frame.data() + at - 2);
    }
    IpPacket packet;
    const auto room = static_cast<std::uint32_t>(frame.size() - at);
    if (ethertype == ethertype_ipv4)
        out.unreadable = !read_ipv4(frame.data() + at, room, packet);
    else if (ethertype == ethertype_ipv6)
        out.unreadable = !read_ipv6(frame.data() + at, room, packet);
    if (packet.ip != nullptr && !out.unreadable) rewrite_ip(rewrite, packet, out);
    return out;
}

}  // namespace weir::wire
