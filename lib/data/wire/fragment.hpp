// The two plain structs between wire bytes and assembly: a datagram as the network layers describe it, and the fragment
// that a format makes of it. Nothing after decode looks at format bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/units.hpp"
#include "wire/packet_counter.hpp"

namespace weir::wire {

/// A decoder's answer. `ok` sends the fragment on; anything else is the counter in which the packet ends.
using Verdict = PacketCounter;
inline constexpr Verdict ok = Verdict::in_flight;

/// One UDP datagram inside one frame. Pointers borrow from the frame. All lengths have been checked against the frame:
/// `payload .. payload + payload_bytes` and `ip .. ip + ip_bytes` can be read.
struct Datagram {
    const std::byte* payload = nullptr;  ///< first byte after the UDP header
    const std::byte* ip = nullptr;       ///< first byte of the IPv4 or IPv6 header (the iCRC covers it)
    std::uint32_t payload_bytes = 0;     ///< UDP length - 8; Ethernet padding is not part of it
    std::uint32_t ip_bytes = 0;          ///< of the IP packet: IPv4 total length; IPv6 40 + payload length
    std::uint32_t src = 0;               ///< IPv4 source address, host byte order; IPv6: 0, see ipv6_src
    std::uint32_t dst = 0;               ///< IPv4 destination address, host byte order; IPv6: 0, see ipv6_dst
    std::uint16_t sport = 0;
    std::uint16_t dport = 0;
    std::uint8_t lane = 0;  ///< UDP interface within the module, 0 or 1; set only where a format asks for it
    bool ipv6 = false;
    bool fragment = false;  ///< see parse_frame: a piece of a datagram

    /// From `ip` to the UDP header, or to the piece: with IPv4 options or IPv6 extension headers.
    [[nodiscard]] std::uint32_t ip_header_bytes() const noexcept {
        return static_cast<std::uint32_t>(payload - ip) - (fragment ? 0 : 8);
    }
    /// The 16 bytes of an address, network byte order; only if `ipv6`.
    [[nodiscard]] const std::byte* ipv6_src() const noexcept { return ip + 8; }
    [[nodiscard]] const std::byte* ipv6_dst() const noexcept { return ip + 24; }
};

/// What one packet contributes to one message. Kept small: a whole burst of them is written, then read.
struct Fragment {
    const std::byte* payload = nullptr;  ///< first payload byte (detector header stripped)
    std::uint64_t number = 0;            ///< event number as carried, `FormatContext::number_bits` wide
    std::uint32_t offset = 0;            ///< of the payload in its message, bytes
    std::uint32_t bytes = 0;             ///< of payload in this packet
    std::uint32_t total = 0;             ///< bytes of the whole message, if total_known
    std::uint32_t header_source = 0;     ///< source id in the header, for source_by = "header"
    const std::byte* header = nullptr;   ///< detector header, kept (first 64 bytes at most) with the message
    std::uint16_t header_bytes = 0;
    /// Which host it came from: 0 is the one that the source's first packet came from. Set after the decoder.
    std::uint8_t sender = 0;
    bool total_known : 1 = false;
    /// Its sequence number says that this is no copy of a packet that has been here. Set after the decoder.
    bool fresh : 1 = false;
    /// Its place in its message is that of `sequence` among the message's packets: `offset` says nothing. `total` is
    /// how many packets they are, or 0 if that is not known. Heartbeats (`control`) between them have it, too.
    bool in_sequence : 1 = false;
    /// Which interface of its module it came from, where one source has two, which have addresses of their own.
    std::uint8_t lane : 1 = 0;
    std::uint32_t sequence = 0;  ///< the source's packet counter, `FormatContext::sequence_bits` wide if it has one
};

}  // namespace weir::wire
