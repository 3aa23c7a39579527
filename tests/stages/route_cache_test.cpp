// What the cache says of a datagram is what steering says of it, whatever was remembered before; else it says nothing.
#include "stages/rx/route_cache.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace weir::stages::test {
namespace {

using steer::Route;
using steer::Rule;
using steer::Steering;
using wire::Datagram;

Datagram datagram_of(std::uint16_t dport, std::uint32_t src = 0x0a010001, std::uint32_t dst = 0x0a010002) {
    Datagram datagram;
    datagram.dport = dport;
    datagram.src = src;
    datagram.dst = dst;
    return datagram;
}

bool same(const Route& a, const Route& b) {
    return a.stream == b.stream && a.owner == b.owner && a.source == b.source;
}

const Route* find(const RouteCache& cache, std::uint8_t port, const Datagram& datagram) {
    return cache.find(port, datagram, datagram.dport);
}

void remember(RouteCache& cache, std::uint8_t port, const Datagram& datagram, const Route& route) {
    cache.remember(port, datagram, datagram.dport, route);
}

void expect_known(const RouteCache& cache, std::uint8_t port, const Datagram& datagram, const Route& route) {
    const Route* found = find(cache, port, datagram);
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(same(*found, route)) << "source " << found->source << " instead of " << route.source;
}

TEST(RouteCache, KnowsNothingAtFirst) {
    const RouteCache cache;
    EXPECT_EQ(find(cache, 0, Datagram{}), nullptr);
    for (std::uint32_t dport = 0; dport <= 0xffff; ++dport)
        EXPECT_EQ(find(cache, 0, datagram_of(static_cast<std::uint16_t>(dport), 0, 0)), nullptr);
}

TEST(RouteCache, KnowsTheSameDatagramAndNoOther) {
    RouteCache cache;
    const Datagram datagram = datagram_of(50001);
    remember(cache, 1, datagram, {3, 2, 7});
    expect_known(cache, 1, datagram, {3, 2, 7});
    EXPECT_EQ(find(cache, 0, datagram), nullptr) << "of another device";
    EXPECT_EQ(find(cache, 255, datagram), nullptr);
    for (std::uint32_t bit = 0; bit < 16; ++bit)
        EXPECT_EQ(find(cache, 1, datagram_of(static_cast<std::uint16_t>(50001U ^ 1U << bit))), nullptr);
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
        EXPECT_EQ(find(cache, 1, datagram_of(50001, datagram.src ^ 1U << bit)), nullptr);
        EXPECT_EQ(find(cache, 1, datagram_of(50001, datagram.src, datagram.dst ^ 1U << bit)), nullptr);
    }
    EXPECT_EQ(find(cache, 1, datagram_of(50001, datagram.dst, datagram.src)), nullptr) << "the way back";
}

TEST(RouteCache, SourcePortAndPayloadDoNotMatter) {
    RouteCache cache;
    Datagram datagram = datagram_of(50001);
    remember(cache, 0, datagram, {0, 0, 5});
    datagram.sport = 4711;
    datagram.payload_bytes = 100;
    expect_known(cache, 0, datagram, {0, 0, 5});
}

TEST(RouteCache, RemembersThatNoRuleMatches) {
    RouteCache cache;
    remember(cache, 0, datagram_of(9), {Steering::none, 0, 0});
    expect_known(cache, 0, datagram_of(9), {Steering::none, 0, 0});
}

/// 512 datagrams whose port, sender and destination count up by these steps.
void expect_known_together(std::uint32_t dport_step, std::uint32_t src_step, std::uint32_t dst_step) {
    RouteCache cache;
    constexpr std::uint32_t count = 512;
    const auto datagram = [&](std::uint32_t i) {
        return datagram_of(static_cast<std::uint16_t>(50000 + i * dport_step), 0x0a010001 + i * src_step,
                           0x0a020001 + i * dst_step);
    };
    for (std::uint32_t i = 0; i < count; ++i) remember(cache, 0, datagram(i), {0, 0, i});
    for (std::uint32_t i = 0; i < count; ++i) expect_known(cache, 0, datagram(i), {0, 0, i});
}

TEST(RouteCache, WhatCountsUpIsKnownTogether) {
    for (std::uint32_t steps = 1; steps < 8; ++steps) {
        SCOPED_TRACE(steps);
        expect_known_together(steps & 1U, steps >> 1U & 1U, steps >> 2U);
    }
}

TEST(RouteCache, OfTwoInOnePlaceTheLaterIsKnown) {
    RouteCache cache;
    const Datagram first = datagram_of(50001);
    remember(cache, 0, first, {0, 0, 1});
    // More senders than there are places: one of them takes the place of the first.
    std::optional<Datagram> other;
    for (std::uint32_t host = 1; !other && host < 1U << 20U; ++host) {
        const Datagram datagram = datagram_of(50001, 0x0a020000 + host);
        remember(cache, 0, datagram, {0, 0, 2});
        if (find(cache, 0, first) == nullptr) other = datagram;
    }
    ASSERT_TRUE(other);
    expect_known(cache, 0, *other, {0, 0, 2});
    remember(cache, 0, first, {0, 0, 1});
    expect_known(cache, 0, first, {0, 0, 1});
    EXPECT_EQ(find(cache, 0, *other), nullptr);
}

/// To this port, of the 32 bits that an IPv4 datagram has its addresses in none.
class OverIpv6 {
public:
    OverIpv6(std::uint16_t dport, std::uint8_t src) {
        header_[23] = static_cast<std::byte>(src);
        datagram_ = datagram_of(dport, 0, 0);
        datagram_.ip = header_.data();
        datagram_.ipv6 = true;
    }
    [[nodiscard]] const Datagram& datagram() const { return datagram_; }

private:
    std::array<std::byte, 40> header_{};
    Datagram datagram_;
};

TEST(RouteCache, KnowsNothingOfIpv6) {
    RouteCache cache;
    const OverIpv6 over_ipv6(50001, 1);
    remember(cache, 0, over_ipv6.datagram(), {1, 0, 1});
    EXPECT_EQ(find(cache, 0, over_ipv6.datagram()), nullptr);
    EXPECT_EQ(find(cache, 0, datagram_of(50001, 0, 0)), nullptr) << "IPv4 from 0.0.0.0 to 0.0.0.0 is another datagram";
    remember(cache, 0, datagram_of(50001, 0, 0), {2, 0, 2});
    EXPECT_EQ(find(cache, 0, over_ipv6.datagram()), nullptr);
    remember(cache, 0, over_ipv6.datagram(), {1, 0, 1});
    const Route* other = find(cache, 0, datagram_of(50001, 0, 0));
    EXPECT_TRUE(other == nullptr || same(*other, {2, 0, 2}));
}

/// Few ports and addresses, so that rules overlap and datagrams come again.
class RandomTraffic {
public:
    explicit RandomTraffic(std::uint64_t seed) : random_(seed) {}

    Steering steering() {
        std::vector<Rule> rules;
        for (std::size_t left = 1 + below(12); left > 0; --left) {
            Rule rule;
            rule.key = dport();
            rule.stream = static_cast<std::uint16_t>(below(8));
            rule.owner = static_cast<std::uint16_t>(below(3));
            rule.source = below(1000);
            for (std::size_t hosts = below(4); hosts > 0; --hosts) add_new(rule.src, host());
            for (std::size_t hosts = below(3); hosts > 0; --hosts) add_new(rule.dst, host());
            if (below(4) == 0) rule.ipv6_src = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
            rule.source_by_address = !rule.src.empty() && below(2) == 0;
            rules.push_back(rule);
        }
        return {rules, {}};
    }
    Datagram datagram() { return datagram_of(dport(), host(), host()); }
    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
    /// Ports that are neighbours, and some that share their places.
    std::uint16_t dport() { return static_cast<std::uint16_t>(7000 + below(6) + 2048 * below(3)); }

private:
    std::uint32_t host() { return below(8) == 0 ? 0 : 0x0a010000 + below(6) + (below(2) << 24U); }
    static void add_new(std::vector<std::uint32_t>& hosts, std::uint32_t host) {
        if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
    }

    std::mt19937_64 random_;
};

/// Sends datagrams to two devices with rules of their own, and asks the cache first, as an rx lcore does. How often it
/// knew the answer; a negative number if it ever knew another one than steering.
int known_of(std::uint64_t seed) {
    RandomTraffic traffic(seed);
    const std::array<Steering, 2> steering{traffic.steering(), traffic.steering()};
    RouteCache cache;
    int known = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto port = static_cast<std::uint8_t>(traffic.below(2));
        const OverIpv6 over_ipv6(traffic.dport(), static_cast<std::uint8_t>(traffic.below(2)));
        const Datagram datagram = traffic.below(8) == 0 ? over_ipv6.datagram() : traffic.datagram();
        const Route route = steering[port].route_udp(datagram);
        if (const Route* found = find(cache, port, datagram); found == nullptr)
            remember(cache, port, datagram, route);
        else if (same(*found, route))
            ++known;
        else
            return -1;
    }
    return known;
}

TEST(RouteCache, SaysWhatSteeringSays) {
    EXPECT_TRUE(rc::check([](std::uint64_t seed) { RC_ASSERT(known_of(seed) > 0); }));
}

}  // namespace
}  // namespace weir::stages::test
