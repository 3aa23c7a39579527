// Decodes RoCEv2 packets and checks their iCRC.
#include "wire/roce.hpp"

#include <isa-l/crc.h>

#include <array>
#include <bit>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {
namespace {

constexpr std::uint32_t reth_bytes = 16;
constexpr std::uint32_t immediate_bytes = 4;
constexpr std::uint32_t deth_bytes = 8;
constexpr std::uint32_t ieth_bytes = 4;
constexpr std::uint32_t atomic_bytes = 28;
constexpr std::uint8_t congestion_notification = 0x81;

enum class Kind : std::uint8_t { unknown, data, response, request, notification };

struct Operation {
    Kind kind = Kind::unknown;
    RoceTransport transport = RoceTransport::other;
    RocePlace place = RocePlace::only;
    std::uint8_t extension_bytes = 0;
    bool is_write = false;
    bool has_reth = false;
    bool has_immediate = false;
    bool has_aeth = false;
};

constexpr Operation data_operation(RoceTransport transport, RocePlace place, bool is_write, bool has_immediate) {
    Operation op{.kind = Kind::data, .transport = transport, .place = place, .is_write = is_write};
    op.has_immediate = has_immediate;
    op.has_reth = is_write && (place == RocePlace::first || place == RocePlace::only);
    op.extension_bytes =
        static_cast<std::uint8_t>((transport == RoceTransport::ud ? deth_bytes : 0) + (op.has_reth ? reth_bytes : 0) +
                                  (has_immediate ? immediate_bytes : 0));
    return op;
}

/// SEND and WRITE, which RC and UC have in common.
constexpr void fill_data(std::array<Operation, 256>& table, RoceTransport transport, std::uint8_t base) {
    for (const bool write : {false, true}) {
        const std::size_t at = base + (write ? 6U : 0U);
        table[at] = data_operation(transport, RocePlace::first, write, false);
        table[at + 1] = data_operation(transport, RocePlace::middle, write, false);
        table[at + 2] = data_operation(transport, RocePlace::last, write, false);
        table[at + 3] = data_operation(transport, RocePlace::last, write, true);
        table[at + 4] = data_operation(transport, RocePlace::only, write, false);
        table[at + 5] = data_operation(transport, RocePlace::only, write, true);
    }
}

/// By opcode (InfiniBand specification, table "BTH OpCode field"). RD (0x40..0x5F) is not here: nothing implements it,
/// and a vendor's dynamically connected transport uses its numbers with other headers.
constexpr std::array<Operation, 256> make_operations() {
    std::array<Operation, 256> table{};
    fill_data(table, RoceTransport::rc, 0x00);
    fill_data(table, RoceTransport::uc, 0x20);
    table[0x64] = data_operation(RoceTransport::ud, RocePlace::only, false, false);
    table[0x65] = data_operation(RoceTransport::ud, RocePlace::only, false, true);
    table[0x16] = data_operation(RoceTransport::rc, RocePlace::last, false, false);  // SEND with Invalidate
    table[0x17] = data_operation(RoceTransport::rc, RocePlace::only, false, false);
    table[0x16].extension_bytes = table[0x17].extension_bytes = ieth_bytes;

    const auto other = [&table](std::size_t opcode, Kind kind, std::uint32_t extension_bytes) {
        table[opcode].kind = kind;
        table[opcode].transport = opcode < 0x20 ? RoceTransport::rc : RoceTransport::other;
        table[opcode].extension_bytes = static_cast<std::uint8_t>(extension_bytes);
        table[opcode].has_aeth = kind == Kind::response && extension_bytes >= roce_aeth_bytes;
    };
    other(0x0c, Kind::request, reth_bytes);  // READ
    table[0x0c].has_reth = true;
    other(0x0d, Kind::response, roce_aeth_bytes);  // READ response first, middle, last, only
    other(0x0e, Kind::response, 0);
    other(0x0f, Kind::response, roce_aeth_bytes);
    other(0x10, Kind::response, roce_aeth_bytes);
    other(0x11, Kind::response, roce_aeth_bytes);      // acknowledge
    other(0x12, Kind::response, roce_aeth_bytes + 8);  // atomic acknowledge
    other(0x13, Kind::request, atomic_bytes);          // compare and swap
    other(0x14, Kind::request, atomic_bytes);          // fetch and add
    other(0x1c, Kind::request, 0);                     // FLUSH
    other(0x1d, Kind::request, 0);                     // ATOMIC WRITE
    other(congestion_notification, Kind::notification, 16);
    return table;
}

constexpr std::array<Operation, 256> operations = make_operations();

/// zlib's CRC-32 of eight bytes FF, which stand for the local route header of a real InfiniBand packet.
constexpr std::uint32_t icrc_seed = 0x2144df1c;

/// The lengths that the place of a packet in its message allows (InfiniBand specification 9.7.4, 9.8.2).
bool length_fits(const Operation& op, const RocePacket& packet, std::uint32_t pad_bytes) noexcept {
    switch (op.place) {
        case RocePlace::first:
        case RocePlace::middle:
            // Exactly one path MTU; all path MTUs are multiples of 4, so there is nothing to pad.
            if (pad_bytes != 0 || packet.bytes < 256 || packet.bytes > roce_mtu_max ||
                !std::has_single_bit(packet.bytes))
                return false;
            return !op.has_reth || packet.dma_length > packet.bytes;
        case RocePlace::last:
            return packet.bytes >= 1 && packet.bytes <= roce_mtu_max;
        case RocePlace::only:
            return packet.bytes <= roce_mtu_max && (!op.has_reth || packet.dma_length == packet.bytes);
    }
    return false;
}

void read_extensions(const Operation& op, const std::byte* at, RocePacket& out) noexcept {
    if (op.transport == RoceTransport::ud) {
        out.qkey = load_be<std::uint32_t>(at);
        out.source_qp = load_be24(at + 5);
        at += deth_bytes;
    }
    if (op.has_reth) {
        out.va = load_be<std::uint64_t>(at);
        out.rkey = load_be<std::uint32_t>(at + 8);
        out.dma_length = load_be<std::uint32_t>(at + 12);
        at += reth_bytes;
    }
    if (op.has_immediate) out.immediate = load_be<std::uint32_t>(at);
}

bool is_ipv6(const std::byte* ip) noexcept {
    return std::to_integer<unsigned>(ip[0]) >> 4 == 6;
}

/// A mix of all bits, in which two addresses of a network, or two pairs of them, do not meet by chance.
std::uint64_t mix(const std::byte* at, std::uint32_t bytes, std::uint64_t mixed = 0) noexcept {
    for (const std::byte* end = at + bytes; at < end; at += 8) {
        mixed = (mixed ^ load_le<std::uint64_t>(at)) * 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
        mixed ^= mixed >> 32;
    }
    return mixed;
}

/// Who talks to whom, and who it is that talks. Two IPv4 addresses fit.
void read_addresses(const std::byte* ip, RocePacket& out) noexcept {
    if (!is_ipv6(ip)) {
        out.address_pair = load_le<std::uint64_t>(ip + 12);
        out.address = load_le<std::uint32_t>(ip + 12);
        return;
    }
    constexpr std::uint32_t address_bytes = 16;
    out.address = mix(ip + 8, address_bytes);
    out.address_pair = mix(ip + 8 + address_bytes, address_bytes, out.address);
}

/// ECN: the two lowest bits of IPv4's TOS or IPv6's traffic class are both set (RFC 3168).
bool has_congestion(const std::byte* ip) noexcept {
    const std::uint32_t class_bits =
        is_ipv6(ip) ? std::to_integer<std::uint32_t>(ip[1]) >> 4 : std::to_integer<std::uint32_t>(ip[1]);
    return (class_bits & 3) == 3;
}

std::uint32_t crc32(std::uint32_t seed, const std::byte* at, std::size_t bytes) noexcept {
    return ::crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(at), bytes);
}

}  // namespace

std::uint64_t roce_address(const std::byte* bytes, bool ipv6) noexcept {
    return ipv6 ? mix(bytes, 16) : load_le<std::uint32_t>(bytes);
}

const std::byte* roce_headers_end(const Datagram& datagram) noexcept {
    if (datagram.payload_bytes == 0) return datagram.payload;
    const auto opcode = std::to_integer<std::uint8_t>(datagram.payload[0]);
    return datagram.payload + roce_bth_bytes + operations[opcode].extension_bytes;
}

// The IP, UDP and base transport headers are copied, and what the path changes, or may change, is set to ones.
std::uint32_t roce_icrc(const std::byte* ip, std::uint32_t bytes) noexcept {
    constexpr std::byte all_ones{0xff};
    std::array<std::byte, ipv6_header_bytes + udp_header_bytes + roce_bth_bytes> head;
    std::uint32_t ip_bytes = ipv4_header_bytes;
    if (is_ipv6(ip)) {
        ip_bytes = ipv6_header_bytes;
        std::memcpy(head.data(), ip, head.size());
        head[0] |= std::byte{0x0f};              // traffic class, upper half
        head[1] = head[2] = head[3] = all_ones;  // traffic class, lower half, and flow label
        head[7] = all_ones;                      // hop limit
    } else {
        std::memcpy(head.data(), ip, ipv4_header_bytes + udp_header_bytes + roce_bth_bytes);
        head[1] = all_ones;              // DSCP and ECN
        head[8] = all_ones;              // time to live
        head[10] = head[11] = all_ones;  // header checksum
    }
    head[ip_bytes + 6] = head[ip_bytes + 7] = all_ones;  // UDP checksum
    head[ip_bytes + udp_header_bytes + 4] = all_ones;    // FECN, BECN, reserved
    const std::uint32_t head_bytes = ip_bytes + udp_header_bytes + roce_bth_bytes;
    const std::uint32_t crc = crc32(icrc_seed, head.data(), head_bytes);
    return crc32(crc, ip + head_bytes, bytes - head_bytes);
}

Verdict decode_roce(const Datagram& datagram, bool check_icrc, RocePacket& out) noexcept {
    const std::byte* bth = datagram.payload;
    out = RocePacket{};
    if (datagram.payload_bytes < roce_bth_bytes + roce_icrc_bytes) return Verdict::malformed_roce_length;
    out.opcode = std::to_integer<std::uint8_t>(bth[0]);
    out.pkey = load_be<std::uint16_t>(bth + 2);
    out.qp = load_be24(bth + 5);
    out.psn = load_be24(bth + 9);
    // The iCRC of a packet with IPv4 options or IPv6 extension headers is not defined alike by all implementations; no
    // sender is known to use them.
    const std::uint32_t network_bytes = (datagram.ipv6 ? ipv6_header_bytes : ipv4_header_bytes) + udp_header_bytes;
    if (bth != datagram.ip + network_bytes) return Verdict::malformed_roce_header;
    if (check_icrc) {
        const std::uint32_t bytes = network_bytes + datagram.payload_bytes - roce_icrc_bytes;
        if (roce_icrc(datagram.ip, bytes) != load_le<std::uint32_t>(datagram.ip + bytes))
            return Verdict::malformed_bad_icrc;
    }

    const Operation& op = operations[out.opcode];
    const auto flags = std::to_integer<std::uint32_t>(bth[1]);
    const std::uint32_t fixed_bytes = roce_bth_bytes + op.extension_bytes + roce_icrc_bytes;
    if ((flags & 0x0f) != 0 || op.kind == Kind::unknown) return Verdict::malformed_roce_header;
    if (datagram.payload_bytes < fixed_bytes) return Verdict::malformed_roce_length;
    out.transport = op.transport;
    out.place = op.place;
    out.is_write = op.is_write;
    out.has_immediate = op.has_immediate;
    out.solicited = (flags & 0x80) != 0;
    out.ack_request = (std::to_integer<std::uint32_t>(bth[8]) & 0x80) != 0;
    out.congestion = has_congestion(datagram.ip);
    read_addresses(datagram.ip, out);
    if (op.kind == Kind::response) {
        if (op.has_aeth) {
            out.syndrome = std::to_integer<std::uint8_t>(bth[roce_bth_bytes]);
            out.msn = load_be24(bth + roce_bth_bytes + 1);
        }
        return Verdict::not_for_us_roce_response;
    }
    read_extensions(op, bth + roce_bth_bytes, out);
    if (op.kind == Kind::request) return Verdict::not_for_us_roce_request;
    if (op.kind == Kind::notification || out.qp <= 1) return Verdict::not_for_us_roce_management;

    const std::uint32_t pad_bytes = (flags >> 4) & 3;
    const std::uint32_t rest = datagram.payload_bytes - fixed_bytes;
    if (pad_bytes > rest) return Verdict::malformed_roce_length;
    out.payload = bth + roce_bth_bytes + op.extension_bytes;
    out.bytes = rest - pad_bytes;
    return length_fits(op, out, pad_bytes) ? ok : Verdict::malformed_roce_length;
}

}  // namespace weir::wire
