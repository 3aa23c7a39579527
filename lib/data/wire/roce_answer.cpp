#include "wire/roce_answer.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::wire {
namespace {

constexpr std::uint8_t opcode_acknowledge = 0x11;
constexpr std::uint8_t opcode_congestion = 0x81;
constexpr std::uint32_t congestion_bytes = 16;  ///< reserved, zero
constexpr std::uint32_t mac_bytes = 6;
constexpr std::byte time_to_live{64};

/// Keeps the class of the request. A mark of the path is not sent back: the transport stays ECN-capable, no more.
std::uint32_t answer_class(std::uint32_t request_class) noexcept {
    return (request_class & 3) == 3 ? (request_class & ~3U) | 2U : request_class;
}

void write_ipv4(const std::byte* from, std::uint32_t total_bytes, std::byte* ip) noexcept {
    std::memset(ip, 0, ipv4_header_bytes);
    ip[0] = std::byte{0x45};
    ip[1] = static_cast<std::byte>(answer_class(std::to_integer<std::uint32_t>(from[1])));
    store_be(ip + 2, static_cast<std::uint16_t>(total_bytes));
    ip[6] = std::byte{0x40};  // never fragmented
    ip[8] = time_to_live;
    ip[9] = std::byte{ip_protocol_udp};
    std::memcpy(ip + 12, from + 16, 4);
    std::memcpy(ip + 16, from + 12, 4);
    store_le(ip + 10, static_cast<std::uint16_t>(~ipv4_header_sum(ip, ipv4_header_bytes)));
}

void write_ipv6(const std::byte* from, std::uint32_t payload_bytes, std::byte* ip) noexcept {
    const std::uint32_t word = load_be<std::uint32_t>(from);
    store_be(ip, 0x60000000U | answer_class(word >> 20 & 0xff) << 20 | (word & 0xfffff));
    store_be(ip + 4, static_cast<std::uint16_t>(payload_bytes));
    ip[6] = std::byte{ip_protocol_udp};
    ip[7] = time_to_live;
    std::memcpy(ip + 8, from + 24, 16);
    std::memcpy(ip + 24, from + 8, 16);
}

}  // namespace

std::size_t write_roce_answer(const std::byte* frame, const Datagram& request, const RoceAnswer& answer,
                              std::span<std::byte> out) noexcept {
    const bool congestion = answer.kind == RoceAnswer::Kind::congestion;
    const auto link_bytes = static_cast<std::uint32_t>(request.ip - frame);
    const std::uint32_t ip_bytes = request.ipv6 ? ipv6_header_bytes : ipv4_header_bytes;
    const std::uint32_t udp_bytes =
        udp_header_bytes + roce_bth_bytes + (congestion ? congestion_bytes : roce_aeth_bytes) + roce_icrc_bytes;
    if (request.ip_header_bytes() != ip_bytes || link_bytes + ip_bytes + udp_bytes > out.size()) return 0;

    std::memcpy(out.data(), frame + mac_bytes, mac_bytes);
    std::memcpy(out.data() + mac_bytes, frame, mac_bytes);
    std::memcpy(out.data() + 2 * mac_bytes, frame + 2 * mac_bytes, link_bytes - 2 * mac_bytes);
    std::byte* ip = out.data() + link_bytes;
    request.ipv6 ? write_ipv6(request.ip, udp_bytes, ip) : write_ipv4(request.ip, ip_bytes + udp_bytes, ip);
    std::byte* udp = ip + ip_bytes;
    store_be(udp, request.sport);
    store_be(udp + 2, roce_port);
    store_be(udp + 4, static_cast<std::uint16_t>(udp_bytes));
    store_be(udp + 6, std::uint16_t{0});

    std::byte* bth = udp + udp_header_bytes;
    std::memset(bth, 0, udp_bytes - udp_header_bytes);
    bth[0] = std::byte{congestion ? opcode_congestion : opcode_acknowledge};
    store_be(bth + 2, answer.pkey);
    constexpr std::byte backward_notification{0x40};
    if (congestion) bth[4] = backward_notification;
    store_be24(bth + 5, answer.qp);
    if (!congestion) {
        store_be24(bth + 9, answer.psn);
        bth[roce_bth_bytes] = static_cast<std::byte>(answer.syndrome);
        store_be24(bth + roce_bth_bytes + 1, answer.msn);
    }
    std::byte* icrc = udp + udp_bytes - roce_icrc_bytes;
    store_le(icrc, roce_icrc(ip, static_cast<std::uint32_t>(icrc - ip)));
    return link_bytes + ip_bytes + udp_bytes;
}

}  // namespace weir::wire
