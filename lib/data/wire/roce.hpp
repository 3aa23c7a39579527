// One RoCEv2 packet (UDP port 4791): base transport header, extension headers, payload, iCRC. What the packets of a
// queue pair make together is roce/'s business. Facts: InfiniBand Architecture Specification 1.x chapters 5, 7.8
// (iCRC), 9 and Annex A17 (RoCEv2), as implemented by Linux drivers/infiniband/sw/rxe, and checked against real
// captures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "wire/bytes.hpp"
#include "wire/fragment.hpp"

namespace weir::wire {

inline constexpr std::uint16_t roce_port = 4791;
inline constexpr std::uint32_t roce_bth_bytes = 12;
inline constexpr std::uint32_t roce_aeth_bytes = 4;
inline constexpr std::uint32_t roce_icrc_bytes = 4;
inline constexpr std::uint32_t roce_mtu_max = 4096;  ///< the largest path MTU: most payload in one packet
inline constexpr std::uint16_t roce_pkey_default = 0xffff;

/// The first byte of an AETH: what an acknowledgement says. Upper three bits the kind, lower five its value.
inline constexpr std::uint8_t roce_ack_unlimited = 0x1f;  ///< ACK; the credits say that there are none to be counted
inline constexpr std::uint8_t roce_rnr_nak = 0x20;        ///< receiver not ready; the value is a timer code
inline constexpr std::uint8_t roce_nak_sequence = 0x60;
inline constexpr std::uint8_t roce_nak_invalid_request = 0x61;
inline constexpr std::uint8_t roce_nak_remote_access = 0x62;
inline constexpr std::uint8_t roce_nak_remote_operation = 0x63;

enum class RoceTransport : std::uint8_t { rc, uc, rd, ud, other };
enum class RocePlace : std::uint8_t { first, middle, last, only };

/// One SEND or WRITE request packet, or an answer. `qp`, `psn`, `pkey` and `opcode` are set whenever the packet is long
/// enough for a base transport header and an iCRC, whatever the verdict.
struct RocePacket {
    const std::byte* payload = nullptr;
    std::uint32_t bytes = 0;  ///< of payload, without pad and iCRC
    std::uint32_t qp = 0;     ///< destination queue pair, 24 bits
    std::uint32_t psn = 0;    ///< 24 bits
    std::uint8_t opcode = 0;
    RoceTransport transport = RoceTransport::other;
    RocePlace place = RocePlace::only;
    bool is_write = false;
    bool has_immediate = false;
    bool ack_request = false;
    bool solicited = false;
    bool congestion = false;                     ///< the path marked it: ECN says "congestion experienced"
    std::uint8_t syndrome = roce_ack_unlimited;  ///< AETH, on answers
    std::uint16_t pkey = roce_pkey_default;      ///< partition
    std::uint32_t msn = 0;                       ///< AETH, on answers: messages completed, 24 bits
    std::uint32_t immediate = 0;                 ///< big-endian on the wire
    std::uint64_t va = 0;                        ///< RETH, on WRITE FIRST and ONLY (and on a READ request)
    std::uint32_t rkey = 0;                      ///< RETH
    std::uint32_t dma_length = 0;                ///< RETH: bytes of the whole message
    std::uint32_t source_qp = 0;                 ///< DETH, UD only
    std::uint32_t qkey = 0;                      ///< DETH, UD only
    std::uint64_t address_pair = 0;  ///< tells apart who sends to whom: both addresses, or a mix of them (IPv6)
    std::uint64_t address = 0;       ///< of the sender, as roce_address gives it

    bool operator==(const RocePacket&) const = default;
    /// Of a message.
    [[nodiscard]] constexpr bool starts() const noexcept {
        return place == RocePlace::first || place == RocePlace::only;
    }
    [[nodiscard]] constexpr bool ends() const noexcept { return place == RocePlace::last || place == RocePlace::only; }
};

/// An address as one number, to be compared: 4 bytes of IPv4 or 16 of IPv6, in network order.
[[nodiscard]] std::uint64_t roce_address(const std::byte* bytes, bool ipv6) noexcept;

/// The destination queue pair of a datagram to port 4791; nothing where it is too short for that.
[[nodiscard]] inline std::optional<std::uint32_t> roce_queue_pair(const Datagram& datagram) noexcept {
    if (datagram.payload_bytes < roce_bth_bytes) return std::nullopt;
    return load_be24(datagram.payload + 5);
}

/// One after the last header, as the opcode says; that may be behind the end of a packet that is too short.
[[nodiscard]] const std::byte* roce_headers_end(const Datagram& datagram) noexcept;

/// Decodes the UDP payload of a datagram to port 4791 (the port is not looked at). Answers:
///  - ok: a SEND or WRITE request, every field of `out` is meaningful;
///  - not_for_us_roce_response: acknowledgements, read and atomic responses; syndrome and msn are set where there is an
///    AETH;
///  - not_for_us_roce_request: READ, atomic and flush requests;
///  - not_for_us_roce_management: to queue pair 0 or 1, and congestion notifications;
///  - malformed_bad_icrc, malformed_roce_header, malformed_roce_length. With the last, `transport` other than `other`
///    says that the headers were whole and only the payload has a length that its place does not allow: every field is
///    set then, for those who answer such a request.
/// With `check_icrc`, nothing else in the packet is believed before its iCRC (the lengths needed to find it excepted),
/// so a damaged packet is bad_icrc whichever bit was hit.
[[nodiscard]] Verdict decode_roce(const Datagram& datagram, bool check_icrc, RocePacket& out) noexcept;

/// The iCRC of a RoCEv2 packet as a number (stored little-endian on the wire): over the IP header at `ip` (IPv4 of 20
/// bytes without options, or IPv6 of 40 without extension headers, as its version says) and everything after it,
/// `bytes` in all, the iCRC itself not among them; at least 40, or 60. Reads, never writes.
[[nodiscard]] std::uint32_t roce_icrc(const std::byte* ip, std::uint32_t bytes) noexcept;

}  // namespace weir::wire
