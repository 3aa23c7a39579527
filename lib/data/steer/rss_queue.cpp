#include "steer/rss_queue.hpp"

#include <rte_thash.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace weir::steer {

namespace {

// The verification key of Microsoft's RSS specification, which most drivers have as their default.
constexpr std::array<std::uint8_t, 40> rss_key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                               0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                               0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                               0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

}  // namespace

std::uint16_t rss_queue(const RssAction& action, const PacketFields& packet) noexcept {
    const bool v6 = packet.shape.network == Network::ipv6;
    const auto wants = [&](std::string_view type) {
        return std::ranges::find(action.types, type) != action.types.end();
    };
    const bool ports =
        packet.shape.udp && (action.types.empty() || wants("udp") || wants(v6 ? "ipv6-udp" : "ipv4-udp"));
    const bool addresses = action.types.empty() || ports || wants("ip") || wants(v6 ? "ipv6" : "ipv4");
    if (packet.shape.network == Network::other || !addresses) return action.queues.front();
    std::array<std::uint32_t, 9> words{};
    std::uint32_t count = 0;
    const auto put = [&](const Wide& address) {
        if (v6) {
            words[count++] = static_cast<std::uint32_t>(address.high >> 32U);
            words[count++] = static_cast<std::uint32_t>(address.high);
            words[count++] = static_cast<std::uint32_t>(address.low >> 32U);
        }
        words[count++] = static_cast<std::uint32_t>(address.low);
    };
    put(packet[v6 ? Field::ipv6_src : Field::ipv4_src]);
    put(packet[v6 ? Field::ipv6_dst : Field::ipv4_dst]);
    if (ports)
        words[count++] = static_cast<std::uint32_t>(packet[Field::udp_src].low << 16U | packet[Field::udp_dst].low);
    const std::uint32_t hash = ::rte_softrss(words.data(), count, rss_key.data());
    return action.queues[hash % action.queues.size()];
}

}  // namespace weir::steer
