// What a RoCEv2 responder sends back: acknowledgements of every kind and congestion notifications. An answer goes where
// its request came from: the headers of the request are turned round, VLAN tags and all.
//
// Facts: AETH and CNP as in docs/reference/ROCE_ANSWERS.md; that the answer keeps the request's UDP source port and
// partition, and leaves the AckReq bit clear, from captures of Linux soft-RoCE and of ConnectX adapters. Both check
// nothing else of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/fragment.hpp"
#include "wire/roce.hpp"

namespace weir::wire {

struct RoceAnswer {
    enum class Kind : std::uint8_t {
        acknowledge,  ///< opcode 0x11 with an AETH: ACK, RNR NAK or NAK, as `syndrome` says
        congestion,   ///< opcode 0x81, with BECN set: the path marks the peer's packets
    };
    Kind kind = Kind::acknowledge;
    std::uint8_t syndrome = roce_ack_unlimited;
    std::uint16_t pkey = roce_pkey_default;
    std::uint32_t qp = 0;   ///< of the peer
    std::uint32_t psn = 0;  ///< 24 bits; not used by congestion
    std::uint32_t msn = 0;  ///< 24 bits; likewise
};

/// Ethernet, two VLAN tags, IPv6, UDP, BTH, 16 bytes of a congestion notification, iCRC: no answer is longer.
inline constexpr std::uint32_t roce_answer_bytes_max = 14 + 2 * 4 + 40 + 8 + 12 + 16 + 4;

/// Writes the frame of an answer to the request that lies in `frame` and parsed as `request`; returns its bytes,
/// without Ethernet padding. 0 when `out` is too small, or when the request has IPv4 options or IPv6 extension headers.
/// `out` may not overlap the request.
[[nodiscard]] std::size_t write_roce_answer(const std::byte* frame, const Datagram& request, const RoceAnswer& answer,
                                            std::span<std::byte> out) noexcept;

}  // namespace weir::wire
