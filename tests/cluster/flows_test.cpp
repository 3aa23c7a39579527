// The network of scripts/simulate beside one that is solved anew, and exactly, whenever a flow begins or ends.
#include "../../bench/cluster/flow/flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace weir::cluster::bench {
namespace {

constexpr double link_bytes_per_ns = 12.5;
constexpr std::uint64_t part_bytes = 1U << 20U;

struct Part {
    Route route;
    core::TimeNs begins = 0;
};
using Ends = std::vector<double>;

/// Max-min fair: again and again the link that leaves its flows least decides what these get.
std::map<std::size_t, double> fair_rates(const std::vector<Part>& parts, const std::map<std::size_t, double>& left,
                                         std::size_t links) {
    std::map<std::size_t, double> rates;
    std::vector<double> room(links, link_bytes_per_ns);
    while (rates.size() < left.size()) {
        std::vector<int> open(links);
        for (const auto& [part, bytes] : left)
            for (std::uint32_t i = 0; i < parts[part].route.count && !rates.contains(part); ++i)
                ++open[parts[part].route.links[i]];
        std::size_t narrowest = links;
        for (std::size_t link = 0; link < links; ++link)
            if (open[link] > 0 && (narrowest == links || room[link] / open[link] < room[narrowest] / open[narrowest]))
                narrowest = link;
        const double rate = room[narrowest] / open[narrowest];
        for (const auto& [part, bytes] : left) {
            const Route& route = parts[part].route;
            const auto* const end = route.links.begin() + route.count;
            if (rates.contains(part) || std::find(route.links.begin(), end, narrowest) == end) continue;
            rates[part] = rate;
            for (std::uint32_t i = 0; i < route.count; ++i) room[route.links[i]] -= rate;
        }
    }
    return rates;
}

Ends exact_ends(const std::vector<Part>& parts, std::size_t links) {
    Ends ends(parts.size());
    std::map<std::size_t, double> left;
    double now = 0;
    for (std::size_t next = 0; next < parts.size() || !left.empty();) {
        const auto rates = fair_rates(parts, left, links);
        double until =
            next < parts.size() ? static_cast<double>(parts[next].begins) : std::numeric_limits<double>::infinity();
        std::size_t ending = parts.size();
        for (const auto& [part, bytes] : left) {
            const double end = now + bytes / rates.at(part);
            if (end < until) until = end, ending = part;
        }
        for (auto& [part, bytes] : left) bytes -= rates.at(part) * (until - now);
        now = until;
        if (ending == parts.size()) {
            left[next++] = static_cast<double>(part_bytes);
        } else {
            ends[ending] = now;
            left.erase(ending);
        }
    }
    return ends;
}

Ends flow_ends(const std::vector<Part>& parts, std::size_t links) {
    Ends ends(parts.size());
    Flows flows({.links = links, .bytes_per_ns = link_bytes_per_ns, .tolerance = 0.05});
    std::map<FlowId, std::size_t> under_way;
    core::TimeNs now = 0;
    for (std::size_t next = 0;;) {
        const auto end = flows.next_end(now);
        if (next < parts.size() && (!end || parts[next].begins <= *end)) {
            now = parts[next].begins;
            under_way[flows.begin(parts[next].route, part_bytes, now)] = next;
            ++next;
        } else if (end) {
            now = *end;
            ends[under_way.at(flows.end(now))] = static_cast<double>(now);
        } else {
            return ends;
        }
    }
}

TEST(Flows, TakeAsLongAsWhenRatesAreExactlyFair) {
    const FatTree tree(32, 8, {});
    std::mt19937_64 random(7);
    std::vector<Part> parts;
    core::TimeNs now = 0;
    while (parts.size() < 400) {
        const auto from = static_cast<NodeId>(random() % 32);
        const auto to = static_cast<NodeId>(random() % 32);
        now += static_cast<core::TimeNs>(random() % 10'000);
        if (from != to) parts.push_back({tree.route(from, to), now});
    }
    const Ends exact = exact_ends(parts, tree.links());
    const Ends found = flow_ends(parts, tree.links());
    double taken = 0;
    double wanted = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto begin = static_cast<double>(parts[i].begins);
        EXPECT_NEAR((found[i] - begin) / (exact[i] - begin), 1, 0.1) << "part " << i;
        taken += found[i] - begin;
        wanted += exact[i] - begin;
    }
    EXPECT_NEAR(taken / wanted, 1, 0.005);
}

TEST(Flows, OneAloneHasItsLinks) {
    const FatTree tree(32, 8, {});
    const Ends ends = flow_ends({{tree.route(0, 31), 0}}, tree.links());
    EXPECT_NEAR(ends[0], static_cast<double>(part_bytes) / link_bytes_per_ns, 1);
}

TEST(Flows, ShareALinkAndHaveItAgainWhenTheOtherHasEnded) {
    const FatTree tree(32, 8, {});
    const core::TimeNs half = static_cast<core::TimeNs>(part_bytes) * 2 / 25;
    // The second begins when the first has half of its part: half a part at half the rate, then half a part alone.
    const Ends ends = flow_ends({{tree.route(0, 9), 0}, {tree.route(0, 18), half / 2}}, tree.links());
    EXPECT_NEAR(ends[0], 1.5 * static_cast<double>(half), 2);
    EXPECT_NEAR(ends[1], 2.0 * static_cast<double>(half), 2);
}

TEST(Flows, NodesThatTurnToTheirNextOneTogetherDoNotMeetInTheSwitches) {
    const FatTree tree(64, 8, {});
    for (NodeId away = 1; away < 64; ++away) {
        std::vector<int> uses(tree.links());
        for (NodeId from = 0; from < 64; ++from) {
            const Route route = tree.route(from, static_cast<NodeId>((from + away) % 64));
            for (std::uint32_t i = 0; i < route.count; ++i) ++uses[route.links[i]];
        }
        EXPECT_EQ(*std::ranges::max_element(uses), 1) << away;
    }
}

TEST(FatTree, RefusesPlacesThatAreNoOrderOfTheNodes) {
    EXPECT_THROW(FatTree(4, 2, {0, 1, 2, 2}), std::invalid_argument);
    EXPECT_THROW(FatTree(4, 3, {}), std::invalid_argument);
}

}  // namespace
}  // namespace weir::cluster::bench
