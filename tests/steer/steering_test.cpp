#include "steer/steering.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "core/hot_thread.hpp"

namespace {

using weir::steer::Route;
using weir::steer::Rule;
using weir::steer::Steering;
using weir::wire::Datagram;

constexpr std::uint32_t host(std::uint32_t last) {
    return 0x0a010000 + last;  // 10.1.0.x
}

Rule rule(std::uint32_t key, std::uint16_t stream, std::uint32_t source = 0) {
    Rule made;
    made.key = key;
    made.stream = stream;
    made.source = source;
    made.owner = static_cast<std::uint16_t>(stream + 100);
    return made;
}

Datagram to_port(std::uint16_t port, std::uint32_t src = host(10), std::uint32_t dst = host(2)) {
    Datagram datagram;
    datagram.dport = port;
    datagram.src = src;
    datagram.dst = dst;
    return datagram;
}

weir::steer::Ipv6Address ipv6_host(std::uint8_t last) {
    return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

/// An IPv6 header, of which steering reads the addresses, and the datagram around it.
class OverIpv6 {
public:
    explicit OverIpv6(std::uint16_t port, std::uint8_t src = 10, std::uint8_t dst = 2) {
        std::memcpy(header_.data() + 8, ipv6_host(src).data(), 16);
        std::memcpy(header_.data() + 24, ipv6_host(dst).data(), 16);
        datagram_.ip = header_.data();
        datagram_.ipv6 = true;
        datagram_.dport = port;
    }
    [[nodiscard]] const Datagram& datagram() const { return datagram_; }

private:
    std::array<std::byte, 40> header_{};
    Datagram datagram_;
};

/// A base transport header to a queue pair, and the datagram around it.
class ToQueuePair {
public:
    explicit ToQueuePair(std::uint32_t qp, std::uint32_t src = host(10), std::uint32_t bytes = 12) {
        header_[5] = static_cast<std::byte>(qp >> 16);
        header_[6] = static_cast<std::byte>(qp >> 8);
        header_[7] = static_cast<std::byte>(qp);
        datagram_ = to_port(weir::wire::roce_port, src);
        datagram_.payload = header_.data();
        datagram_.payload_bytes = bytes;
    }
    [[nodiscard]] const Datagram& datagram() const { return datagram_; }

private:
    std::array<std::byte, 12> header_{};
    Datagram datagram_;
};

void expect_route(const Route& route, std::uint16_t stream, std::uint32_t source) {
    EXPECT_EQ(route.stream, stream);
    if (stream == Steering::none) return;
    EXPECT_EQ(route.source, source);
    EXPECT_EQ(route.owner, stream + 100);
}

TEST(Steering, FindsTheStreamByPort) {
    const Steering steering({rule(50001, 0, 0), rule(50002, 0, 1), rule(65535, 1, 2), rule(1, 2, 3)}, {});
    expect_route(steering.route_udp(to_port(50001)), 0, 0);
    expect_route(steering.route_udp(to_port(50002)), 0, 1);
    expect_route(steering.route_udp(to_port(65535)), 1, 2);
    expect_route(steering.route_udp(to_port(1)), 2, 3);
    for (const std::uint16_t other : {0, 2, 50000, 50003, 65534})
        expect_route(steering.route_udp(to_port(other)), Steering::none, 0);
}

TEST(Steering, WithoutRulesMatchesNothing) {
    const Steering steering({}, {});
    expect_route(steering.route_udp(to_port(4791)), Steering::none, 0);
    expect_route(steering.route_roce(ToQueuePair(0).datagram()), Steering::none, 0);
    EXPECT_FALSE(steering.is_roce(to_port(4791)));
}

TEST(Steering, FiltersBySourceAndDestinationAddress) {
    Rule both = rule(7000, 3, 4);
    both.src = {host(10), host(11)};
    both.dst = {host(2), host(3)};
    const Steering steering({both}, {});
    expect_route(steering.route_udp(to_port(7000, host(10), host(2))), 3, 4);
    expect_route(steering.route_udp(to_port(7000, host(11), host(3))), 3, 4);
    expect_route(steering.route_udp(to_port(7000, host(12), host(2))), Steering::none, 0);
    expect_route(steering.route_udp(to_port(7000, host(10), host(4))), Steering::none, 0);
}

TEST(Steering, TheFirstRuleThatMatchesWins) {
    Rule first = rule(7000, 0, 0);
    first.src = {host(10)};
    Rule second = rule(7000, 1, 1);
    second.src = {host(10), host(11)};
    const Rule rest = rule(7000, 2, 2);
    const Steering steering({first, second, rule(7001, 5, 5), rest}, {});
    expect_route(steering.route_udp(to_port(7000, host(10))), 0, 0);
    expect_route(steering.route_udp(to_port(7000, host(11))), 1, 1);
    expect_route(steering.route_udp(to_port(7000, host(12))), 2, 2);
    // In another order the general one takes everything.
    const Steering turned({rest, second, first}, {});
    expect_route(turned.route_udp(to_port(7000, host(10))), 2, 2);
}

TEST(Steering, AnAddressCanBeTheSource) {
    Rule by_address = rule(7000, 1, 20);
    by_address.src = {host(30), host(10), host(20)};
    by_address.source_by_address = true;
    const Steering steering({by_address}, {});
    expect_route(steering.route_udp(to_port(7000, host(30))), 1, 20);
    expect_route(steering.route_udp(to_port(7000, host(10))), 1, 21);
    expect_route(steering.route_udp(to_port(7000, host(20))), 1, 22);
    expect_route(steering.route_udp(to_port(7000, host(40))), Steering::none, 0);
}

TEST(Steering, ARuleWithAddressesOfOneKindDoesNotMatchTheOther) {
    Rule v6_only = rule(7000, 0, 0);
    v6_only.ipv6_src = {ipv6_host(10)};
    Rule v4_only = rule(7001, 0, 0);
    v4_only.dst = {0};  // what an IPv6 datagram has in this place
    const Steering steering({v6_only, v4_only, rule(7000, 1, 1), rule(7001, 1, 1)}, {v6_only});
    expect_route(steering.route_udp(to_port(7000)), 1, 1);
    expect_route(steering.route_roce(ToQueuePair(7000).datagram()), Steering::none, 0);
    expect_route(steering.route_udp(OverIpv6(7001).datagram()), 1, 1);
}

TEST(Steering, IPv6AddressesFilterAndNumberSources) {
    Rule filter = rule(7000, 0, 0);
    filter.ipv6_src = {ipv6_host(10), ipv6_host(11)};
    filter.ipv6_dst = {ipv6_host(2)};
    Rule by_address = rule(7001, 1, 20);
    by_address.source_by_address = true;
    by_address.src = {host(30), host(31)};
    by_address.src_places = {0, 2};
    by_address.ipv6_src = {ipv6_host(40), ipv6_host(41)};
    by_address.ipv6_src_places = {1, 3};
    const Steering steering({filter, by_address}, {});
    expect_route(steering.route_udp(OverIpv6(7000, 10).datagram()), 0, 0);
    expect_route(steering.route_udp(OverIpv6(7000, 11).datagram()), 0, 0);
    expect_route(steering.route_udp(OverIpv6(7000, 12).datagram()), Steering::none, 0);
    expect_route(steering.route_udp(OverIpv6(7000, 10, 3).datagram()), Steering::none, 0);
    expect_route(steering.route_udp(to_port(7001, host(30))), 1, 20);
    expect_route(steering.route_udp(OverIpv6(7001, 40).datagram()), 1, 21);
    expect_route(steering.route_udp(to_port(7001, host(31))), 1, 22);
    expect_route(steering.route_udp(OverIpv6(7001, 41).datagram()), 1, 23);
    expect_route(steering.route_udp(OverIpv6(7001, 42).datagram()), Steering::none, 0);
}

TEST(Steering, FindsTheStreamByQueuePair) {
    Rule first = rule(0xabcdef, 0, 0);
    first.src = {host(10)};
    const Steering steering({rule(4791, 9, 9)}, {first, rule(0x11, 1, 1), rule(0xabcdef, 2, 2)});
    EXPECT_TRUE(steering.is_roce(to_port(4791)));
    EXPECT_FALSE(steering.is_roce(to_port(4790)));
    expect_route(steering.route_roce(ToQueuePair(0xabcdef, host(10)).datagram()), 0, 0);
    expect_route(steering.route_roce(ToQueuePair(0xabcdef, host(11)).datagram()), 2, 2);
    expect_route(steering.route_roce(ToQueuePair(0x11).datagram()), 1, 1);
    // All three bytes count.
    for (const std::uint32_t other : {0xabcdeeU, 0xabccefU, 0xaacdefU, 0x10U, 0x110000U})
        expect_route(steering.route_roce(ToQueuePair(other).datagram()), Steering::none, 0);
}

TEST(Steering, AHeaderThatIsCutShortHasNoQueuePair) {
    const Steering steering({}, {rule(0x11, 1, 1)});
    expect_route(steering.route_roce(ToQueuePair(0x11, host(10), 11).datagram()), Steering::none, 0);
}

// Under the malloc trap this aborts if anything allocates.
TEST(Steering, DoesNotAllocate) {
    Rule by_address = rule(7000, 1, 20);
    by_address.src = {host(10)};
    by_address.source_by_address = true;
    const Steering steering({by_address}, {rule(0x11, 1, 1)});
    const ToQueuePair packet(0x11);
    weir::core::hot_thread(true);
    const Route udp = steering.route_udp(to_port(7000));
    const Route roce = steering.route_roce(packet.datagram());
    weir::core::hot_thread(false);
    expect_route(udp, 1, 20);
    expect_route(roce, 1, 1);
}

}  // namespace
