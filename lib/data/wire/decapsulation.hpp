// Takes off what a mirror or a switch has put around the detectors' frames: ERSPAN, VXLAN, MPLS, GRE. For ports that
// are asked to (`decapsulate`); encapsulation.hpp only names what nobody asked to be taken off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/counters.hpp"
#include "wire/encapsulation.hpp"
#include "wire/fragment.hpp"

namespace weir::wire {

/// What can be taken off; also what is counted of it.
enum class Tunnel : std::uint8_t { erspan, vxlan, mpls, gre, count_ };
inline constexpr std::size_t tunnel_count = core::count_of<Tunnel>;
/// Their names are those of the configuration, too.
extern const std::array<core::CounterInfo, tunnel_count> tunnel_counters;
using TunnelTally = core::Tally<Tunnel>;
[[nodiscard]] inline std::string_view name_of(Tunnel tunnel) noexcept {
    return tunnel_counters[static_cast<std::size_t>(tunnel)].name;
}

[[nodiscard]] constexpr Tunnel tunnel_at(std::size_t index) noexcept {
    return static_cast<Tunnel>(index);
}

/// A set of them.
class Tunnels {
public:
    constexpr Tunnels() = default;
    [[nodiscard]] static constexpr Tunnels all() noexcept {
        Tunnels out;
        out.bits_ = (1U << tunnel_count) - 1;
        return out;
    }
    constexpr void add(Tunnel tunnel) noexcept { bits_ |= bit(tunnel); }
    constexpr void add(Tunnels tunnels) noexcept { bits_ |= tunnels.bits_; }
    [[nodiscard]] constexpr bool has(Tunnel tunnel) const noexcept { return (bits_ & bit(tunnel)) != 0; }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    bool operator==(const Tunnels&) const = default;

private:
    static constexpr std::uint8_t bit(Tunnel tunnel) noexcept {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(tunnel));
    }
    std::uint8_t bits_ = 0;
};

/// What would take it off; nothing where weir does not.
[[nodiscard]] std::optional<Tunnel> tunnel_of(Encapsulation by) noexcept;

/// A mirror of an overlay network has two; more is no network that anybody meant.
inline constexpr std::uint32_t tunnel_layers_max = 2;
/// From the beginning of a frame: decapsulate() reads no further, whatever lies inside.
inline constexpr std::uint32_t decapsulation_reads_max = 2048;

struct Decapsulated {
    /// Anything but `ok` is the counter in which the packet ends here. ARP and ICMP do when they came from inside:
    /// they are others' conversations, and nobody is to answer them.
    Verdict verdict = ok;
    std::uint8_t layers = 0;                     ///< taken off; 0: the frame is as it was
    std::array<Tunnel, tunnel_layers_max> by{};  ///< the outer one first
    std::uint32_t front_bytes = 0;               ///< the frame inside begins after these
    std::uint32_t captured_bytes = 0;            ///< of the frame inside
    std::uint32_t wire_bytes = 0;                ///< of the frame inside; more than captured if it was cut
};

/// Of an Ethernet frame, as for parse_frame, the one inside. What carries it is read as follows; of anything else
/// nothing is taken off.
///
/// - erspan: in GRE over IPv4 or IPv6 (draft-foschiano-erspan-03). 0x88be is type II with its 8 bytes, or type I
///   without any where GRE has no sequence number; 0x22eb type III, 12 bytes, or 20 with a platform's own. A frame that
///   the mirror cut (its T bit) is a cut one here.
/// - gre: RFC 2784 and 2890, with Ethernet (0x6558), IPv4, IPv6 (RFC 7676). The GRE checksum is skipped, as UDP's is.
/// - vxlan: RFC 7348, UDP port 4789, or 8472, which Linux used before there was a number.
/// - mpls: label stacks of RFC 3032 on Ethernet, with IP, or with Ethernet (RFC 4448) with or without a control word.
///   Nothing in a label says which, so that is taken for what it can only be, with an IPv4 header checksum that is
///   right.
///
/// Where an IP packet is inside without an Ethernet header, one is written over the 14 bytes before it, with the outer
/// addresses: `frame` may be written to up to where the frame inside begins, and is otherwise left alone.
[[nodiscard]] Decapsulated decapsulate(std::byte* frame, std::uint32_t captured_bytes, std::uint32_t wire_bytes,
                                       Tunnels tunnels) noexcept;

}  // namespace weir::wire
