#include "wire/decapsulation.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {
namespace {

constexpr std::uint32_t address_bytes = 12;  ///< of an Ethernet header, both
constexpr std::uint32_t not_there = 0xffff'ffff;

/// A frame on its way in, from its Ethernet header on.
struct Outer {
    const std::byte* frame = nullptr;
    std::uint32_t captured_bytes = 0;
    std::uint32_t wire_bytes = 0;

    [[nodiscard]] bool cut() const noexcept { return captured_bytes < wire_bytes; }
    [[nodiscard]] std::uint16_t short_at(std::uint32_t at) const noexcept { return load_be<std::uint16_t>(frame + at); }
    [[nodiscard]] std::uint32_t byte_at(std::uint32_t at) const noexcept {
        return std::to_integer<std::uint32_t>(frame[at]);
    }
};

/// What an outer layer has inside.
struct Inside {
    enum class Is : std::uint8_t { nothing, frame, ip };
    Is is = Is::nothing;   ///< nothing: this is no layer to take off, or the packet ends here
    Verdict verdict = ok;  ///< the packet ends here
    Tunnel by = Tunnel::gre;
    std::uint32_t at = 0;              ///< where it begins
    std::uint32_t captured_bytes = 0;  ///< from there on
    std::uint32_t wire_bytes = 0;
};

Inside ends(Verdict verdict) noexcept {
    return {.verdict = verdict};
}

/// It lies between `at` and `end`, all of which can be read.
Inside between(Inside::Is is, Tunnel by, std::uint32_t at, std::uint32_t end) noexcept {
    return {.is = is, .by = by, .at = at, .captured_bytes = end - at, .wire_bytes = end - at};
}

/// Where the type of the frame lies, behind its tags; not_there: not to be read, or more tags than are followed.
std::uint32_t type_place(const Outer& outer) noexcept {
    std::uint32_t at = ethernet_header_bytes - 2;
    for (std::uint32_t tags = 0; tags < 3; ++tags, at += vlan_tag_bytes) {
        if (outer.captured_bytes < at + 2) return not_there;
        const std::uint16_t type = outer.short_at(at);
        if (type != ethertype_vlan && type != ethertype_service_vlan) return at;
    }
    return not_there;
}

/// Not only by its first bits: these are anything where something else is.
bool is_ipv4(const std::byte* ip, std::uint32_t captured_bytes, std::uint32_t wire_bytes) noexcept {
    if (captured_bytes < ipv4_header_bytes) return false;
    const std::uint32_t first = std::to_integer<std::uint32_t>(ip[0]);
    const std::uint32_t header_bytes = (first & 0xf) * 4;
    return first >> 4 == 4 && header_bytes >= ipv4_header_bytes && header_bytes <= captured_bytes &&
           load_be<std::uint16_t>(ip + 2) <= wire_bytes && ipv4_header_sum(ip, header_bytes) == 0xffff;
}
bool is_ipv6(const std::byte* ip, std::uint32_t captured_bytes, std::uint32_t wire_bytes) noexcept {
    return captured_bytes >= ipv6_header_bytes && std::to_integer<std::uint32_t>(ip[0]) >> 4 == 6 &&
           std::uint32_t{load_be<std::uint16_t>(ip + 4)} + ipv6_header_bytes <= wire_bytes;
}

/// An Ethernet header, and after it what it says: IP, or ARP for IPv4.
bool is_frame(const Outer& outer) noexcept {
    const std::uint32_t place = type_place(outer);
    if (place == not_there) return false;
    const std::uint32_t at = place + 2;
    const std::byte* const after = outer.frame + at;
    switch (outer.short_at(place)) {
        case ethertype_ipv4:
            return is_ipv4(after, outer.captured_bytes - at, outer.wire_bytes - at);
        case ethertype_ipv6:
            return is_ipv6(after, outer.captured_bytes - at, outer.wire_bytes - at);
        case ethertype_arp:
            return outer.captured_bytes - at >= 8 && load_be<std::uint32_t>(after) == 0x0001'0800;
        default:
            return false;
    }
}
/// The same, from `at` on.
bool frame_at(const Outer& outer, std::uint32_t at) noexcept {
    return outer.captured_bytes > at && is_frame({outer.frame + at, outer.captured_bytes - at, outer.wire_bytes - at});
}

/// RFC 3032: 4 bytes for each label, of which the last says so. `at`: after the type.
Inside mpls_at(const Outer& outer, std::uint32_t at) noexcept {
    constexpr std::uint32_t labels_max = 16;
    constexpr std::uint32_t label_bytes = 4;
    for (std::uint32_t labels = 0, bottom = 0; bottom == 0; ++labels, at += label_bytes) {
        if (labels == labels_max) return ends(Verdict::malformed_encapsulation);
        if (outer.captured_bytes < at + label_bytes)
            return ends(outer.cut() ? Verdict::malformed_truncated : Verdict::malformed_encapsulation);
        bottom = outer.byte_at(at + 2) & 1U;
    }
    const std::uint32_t captured = outer.captured_bytes - at;
    const std::uint32_t wire = outer.wire_bytes - at;
    const std::byte* const after = outer.frame + at;
    // RFC 4385 and 4448: four bits of 0 tell a control word from IP, and the next twelve are 0.
    const bool word = captured > label_bytes && load_be<std::uint16_t>(after) == 0;
    const bool ip = is_ipv4(after, captured, wire) || is_ipv6(after, captured, wire);
    const bool frame = frame_at(outer, at);
    const bool frame_after_word = word && frame_at(outer, at + label_bytes);
    if (ip + frame + frame_after_word != 1)
        return ends(outer.cut() && captured < ethernet_header_bytes + ipv6_header_bytes
                        ? Verdict::malformed_truncated
                        : Verdict::not_for_us_encapsulated);
    const std::uint32_t skip = frame_after_word ? label_bytes : 0;
    return {.is = ip ? Inside::Is::ip : Inside::Is::frame,
            .by = Tunnel::mpls,
            .at = at + skip,
            .captured_bytes = captured - skip,
            .wire_bytes = wire - skip};
}

/// `at`: after the GRE header; type 0x88be or 0x22eb.
Inside erspan_at(const Outer& outer, std::uint32_t at, std::uint32_t end, bool type_3, bool has_sequence) noexcept {
    constexpr std::uint32_t bytes_2 = 8;
    constexpr std::uint32_t bytes_3 = 12;
    constexpr std::uint32_t bytes_platform = 8;
    const Outer rest{outer.frame, end, end};
    const std::uint32_t version = at < end ? outer.byte_at(at) >> 4 : 0;
    // Type I has no header, and no sequence number. Without one it may also be type II, from somebody who leaves it
    // out.
    if (!type_3 && !has_sequence && (version != 1 || frame_at(rest, at) || !frame_at(rest, at + bytes_2)))
        return between(Inside::Is::frame, Tunnel::erspan, at, end);
    const std::uint32_t bytes = type_3 ? bytes_3 : bytes_2;
    if (end - at < bytes || version != (type_3 ? 2 : 1)) return ends(Verdict::malformed_encapsulation);
    Inside inside = between(Inside::Is::frame, Tunnel::erspan, at + bytes, end);
    constexpr std::uint32_t mirror_cut = 0x04;  // T
    const bool cut = (outer.byte_at(at + 2) & mirror_cut) != 0;
    if (type_3) {
        // P, five bits of what the frame is, six of hardware, D, two of granularity, and O: eight bytes more.
        const std::uint32_t flags = outer.short_at(at + 10);
        const std::uint32_t kind = flags >> 10 & 0x1fU;
        if (kind != 0 && kind != 2) return ends(Verdict::not_for_us_encapsulated);
        if (kind == 2) inside.is = Inside::Is::ip;
        if ((flags & 1U) != 0) {
            if (inside.captured_bytes < bytes_platform) return ends(Verdict::malformed_encapsulation);
            inside = between(inside.is, Tunnel::erspan, inside.at + bytes_platform, end);
        }
    }
    // By how much, it does not say.
    if (cut) ++inside.wire_bytes;
    return inside;
}

/// `at`: where the GRE header begins; the packet ends at `end`, and can be read up to there.
Inside gre_at(const Outer& outer, std::uint32_t at, std::uint32_t end, Tunnels tunnels) noexcept {
    constexpr std::uint16_t ethernet = 0x6558;
    constexpr std::uint16_t erspan = 0x88be;
    constexpr std::uint16_t erspan_3 = 0x22eb;
    constexpr std::uint32_t header_bytes = 4;
    if (end - at < header_bytes) return ends(Verdict::malformed_encapsulation);
    const std::uint32_t flags = outer.short_at(at);
    const std::uint16_t type = outer.short_at(at + 2);
    const bool is_erspan = type == erspan || type == erspan_3;
    const bool is_gre = type == ethernet || type == ethertype_ipv4 || type == ethertype_ipv6;
    if (!(is_erspan && tunnels.has(Tunnel::erspan)) && !(is_gre && tunnels.has(Tunnel::gre))) return {};
    // Version 0, and none of the routing of RFC 1701, whose length nobody knows.
    constexpr std::uint32_t unknown = 0x4007;
    if ((flags & unknown) != 0) return ends(Verdict::malformed_encapsulation);
    const bool has_sequence = (flags & 0x1000U) != 0;
    const std::uint32_t bytes =
        header_bytes + ((flags & 0x8000U) != 0 ? 4 : 0) + ((flags & 0x2000U) != 0 ? 4 : 0) + (has_sequence ? 4 : 0);
    if (end - at < bytes) return ends(Verdict::malformed_encapsulation);
    if (is_erspan) return erspan_at(outer, at + bytes, end, type == erspan_3, has_sequence);
    return between(type == ethernet ? Inside::Is::frame : Inside::Is::ip, Tunnel::gre, at + bytes, end);
}

/// An IP packet of another protocol than UDP and ICMP, whose headers and length are right: parse_frame said so.
Inside of_ip_protocol(const Outer& outer, Tunnels tunnels) noexcept {
    constexpr std::uint32_t gre = 47;
    const std::uint32_t place = type_place(outer);
    if (place == not_there) return {};
    const std::uint32_t at = place + 2;
    if (outer.short_at(place) == ethertype_ipv6) {
        if (outer.byte_at(at + 6) != gre) return {};
        return gre_at(outer, at + ipv6_header_bytes, at + ipv6_header_bytes + outer.short_at(at + 4), tunnels);
    }
    if (outer.byte_at(at + 9) != gre) return {};
    constexpr std::uint32_t more_and_offset = 0x3fff;
    if ((outer.short_at(at + 6) & more_and_offset) != 0) return ends(Verdict::ip_fragment_encapsulated);
    return gre_at(outer, at + (outer.byte_at(at) & 0xfU) * 4, at + outer.short_at(at + 2), tunnels);
}

Inside of_udp(const Outer& outer, const Datagram& datagram) noexcept {
    constexpr std::uint32_t header_bytes = 8;
    constexpr std::uint32_t has_network = 0x08;  // I: must be set
    if (datagram.dport != vxlan_port && datagram.dport != vxlan_port_of_linux) return {};
    const auto at = static_cast<std::uint32_t>(datagram.payload - outer.frame);
    if (datagram.payload_bytes < header_bytes || (outer.byte_at(at) & has_network) == 0)
        return ends(Verdict::malformed_encapsulation);
    return between(Inside::Is::frame, Tunnel::vxlan, at + header_bytes, at + datagram.payload_bytes);
}

Inside of_ethertype(const Outer& outer) noexcept {
    constexpr std::uint16_t mpls = 0x8847;
    constexpr std::uint16_t mpls_upstream = 0x8848;  // RFC 5332
    const std::uint32_t place = type_place(outer);
    if (place == not_there) return {};
    const std::uint16_t type = outer.short_at(place);
    return type == mpls || type == mpls_upstream ? mpls_at(outer, place + 2) : Inside{};
}

/// The outermost layer of a frame that parse_frame calls `verdict`.
Inside inside_of(const Outer& outer, Verdict verdict, const Datagram& datagram, Tunnels tunnels) noexcept {
    switch (verdict) {
        case ok:
            return tunnels.has(Tunnel::vxlan) ? of_udp(outer, datagram) : Inside{};
        case Verdict::not_for_us_ip_protocol:
            return of_ip_protocol(outer, tunnels);
        case Verdict::not_for_us_ethertype:
            return tunnels.has(Tunnel::mpls) ? of_ethertype(outer) : Inside{};
        default:
            return {};
    }
}

/// Of an IP packet without Ethernet header: one is written before it. Returns where it begins.
std::uint32_t write_header(std::byte* frame, std::uint32_t ip_at) noexcept {
    const std::uint32_t at = ip_at - ethernet_header_bytes;
    std::memmove(frame + at, frame, address_bytes);
    const bool ipv6 = std::to_integer<std::uint32_t>(frame[ip_at]) >> 4 == 6;
    store_be<std::uint16_t>(frame + at + address_bytes, ipv6 ? ethertype_ipv6 : ethertype_ipv4);
    return at;
}

constexpr core::CounterFamily decapsulated{"packets_decapsulated", "tunnel",
                                           "Packets that came inside of others, by what was taken off."};

}  // namespace

constinit const std::array<core::CounterInfo, tunnel_count> tunnel_counters = core::make_counter_table<Tunnel>({
    {Tunnel::erspan, "erspan",
     "Packets that came in ERSPAN, as a switch mirrors to a remote address, and from which it was taken off. "
     "As many as `received` where nothing else comes to the port.",
     core::Fate::none, &decapsulated},
    {Tunnel::vxlan, "vxlan", "Packets that came in VXLAN, and from which it was taken off.", core::Fate::none,
     &decapsulated},
    {Tunnel::mpls, "mpls", "Packets that came with MPLS labels, and from which these were taken off.", core::Fate::none,
     &decapsulated},
    {Tunnel::gre, "gre", "Packets that came in GRE, as Ethernet or as IP, and from which it was taken off.",
     core::Fate::none, &decapsulated},
});

std::optional<Tunnel> tunnel_of(Encapsulation by) noexcept {
    switch (by) {
        case Encapsulation::gre:
        case Encapsulation::ethernet_in_gre:
            return Tunnel::gre;
        case Encapsulation::erspan_1:
        case Encapsulation::erspan_2:
        case Encapsulation::erspan_3:
            return Tunnel::erspan;
        case Encapsulation::mpls:
            return Tunnel::mpls;
        case Encapsulation::vxlan:
            return Tunnel::vxlan;
        case Encapsulation::ip_in_ip:
        case Encapsulation::old_service_vlan:
        case Encapsulation::geneve:
            return std::nullopt;
    }
    return std::nullopt;
}

Decapsulated decapsulate(std::byte* frame, std::uint32_t captured_bytes, std::uint32_t wire_bytes,
                         Tunnels tunnels) noexcept {
    Decapsulated out{.captured_bytes = captured_bytes, .wire_bytes = wire_bytes};
    for (;;) {
        std::byte* const at = frame + out.front_bytes;
        const Outer outer{at, out.captured_bytes, out.wire_bytes};
        Datagram datagram;
        const Verdict verdict = parse_frame(at, outer.captured_bytes, outer.wire_bytes, datagram);
        const Inside inside = inside_of(outer, verdict, datagram, tunnels);
        out.verdict = inside.verdict;
        if (inside.is == Inside::Is::nothing) {
            const bool others = verdict == Verdict::not_for_us_arp || verdict == Verdict::not_for_us_icmp;
            if (out.layers > 0 && others) out.verdict = verdict;
            return out;
        }
        if (out.layers == tunnel_layers_max) {
            out.verdict = Verdict::malformed_nested;
            return out;
        }
        out.by[out.layers++] = inside.by;
        out.captured_bytes = inside.captured_bytes;
        out.wire_bytes = inside.wire_bytes;
        std::uint32_t skip = inside.at;
        // Without a first byte nothing says which IP it would be; what is left is too short for any frame.
        if (inside.is == Inside::Is::ip && inside.captured_bytes > 0) {
            skip = write_header(at, inside.at);
            out.captured_bytes += ethernet_header_bytes;
            out.wire_bytes += ethernet_header_bytes;
        }
        out.front_bytes += skip;
    }
}

}  // namespace weir::wire
