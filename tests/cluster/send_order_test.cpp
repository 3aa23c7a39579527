#include "cluster/send_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weir::cluster {
namespace {

Settings all_of(std::uint16_t nodes, Order order) {
    Settings settings;
    settings.nodes = nodes;
    settings.order = order;
    for (NodeId node = 0; node < nodes; ++node) settings.readouts.insert(node), settings.builders.insert(node);
    return settings;
}

NodeSet set_of(std::initializer_list<int> nodes) {
    NodeSet set;
    for (const int node : nodes) set.insert(static_cast<NodeId>(node));
    return set;
}

/// Whether in each step no two nodes turn to the same one.
bool never_meet(const Settings& settings, std::uint64_t round) {
    std::vector<std::vector<NodeId>> orders;
    for (NodeId node = 0; node < settings.nodes; ++node)
        orders.push_back(SendOrder(settings, node, settings.readouts, settings.builders).of(round));
    for (std::size_t step = 0; step < orders.front().size(); ++step) {
        std::set<NodeId> met;
        for (const auto& order : orders)
            if (!met.insert(order[step]).second) return false;
    }
    return true;
}

TEST(SendOrder, LinearBeginsAfterItselfAndEndsWithItself) {
    const Settings settings = all_of(5, Order::linear);
    EXPECT_EQ(SendOrder(settings, 3, settings.readouts, settings.builders).of(7), (std::vector<NodeId>{4, 0, 1, 2, 3}));
    EXPECT_EQ(SendOrder(settings, 3, settings.readouts, settings.builders).place_of(7, 0), 1U);
}

TEST(SendOrder, LinearAndListedNeverMeet) {
    Settings settings = all_of(12, Order::linear);
    EXPECT_TRUE(never_meet(settings, 0));
    settings.order = Order::listed;
    settings.list = {7, 0, 3, 11, 1, 5, 2, 9, 10, 4, 6, 8};
    EXPECT_TRUE(never_meet(settings, 3));
    EXPECT_EQ(SendOrder(settings, 11, settings.readouts, settings.builders).of(0).front(), 1);
}

TEST(SendOrder, RandomIsAnotherOrderForEachRoundAndNodeAndTheSameAgain) {
    const Settings settings = all_of(12, Order::random);
    const SendOrder order(settings, 4, settings.readouts, settings.builders);
    EXPECT_NE(order.of(1), order.of(2));
    EXPECT_NE(order.of(1), SendOrder(settings, 5, settings.readouts, settings.builders).of(1));
    EXPECT_EQ(order.of(1), SendOrder(settings, 4, settings.readouts, settings.builders).of(1));
    std::vector<NodeId> sorted = order.of(9);
    EXPECT_EQ(order.place_of(9, sorted[6]), 6U);
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, (std::vector<NodeId>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_FALSE(never_meet(settings, 1));
}

TEST(SendOrder, OnlyPartnersAreTurnedTo) {
    Settings settings = all_of(6, Order::linear);
    settings.builders = set_of({1, 3, 4});
    EXPECT_EQ(SendOrder(settings, 3, settings.readouts, settings.builders).of(0), (std::vector<NodeId>{4, 1, 3}));
    EXPECT_EQ(SendOrder(settings, 0, settings.readouts, settings.builders).of(0), (std::vector<NodeId>{1, 3, 4}));
}

TEST(SendOrder, NodesThatAreNoPartnersThemselvesBeginAtDifferentOnes) {
    Settings settings = all_of(7, Order::linear);
    settings.readouts = set_of({0, 1, 2, 3});
    settings.builders = set_of({4, 5, 6});
    std::vector<NodeId> first;
    for (const NodeId node : {0, 1, 2, 3})
        first.push_back(SendOrder(settings, node, settings.readouts, settings.builders).of(0).front());
    EXPECT_EQ(first, (std::vector<NodeId>{4, 5, 6, 4}));
    EXPECT_EQ(SendOrder(settings, 5, settings.builders, settings.readouts).of(0), (std::vector<NodeId>{1, 2, 3, 0}));
    settings.order = Order::listed;
    settings.list = {6, 5, 4, 3, 2, 1, 0};
    EXPECT_EQ(SendOrder(settings, 2, settings.readouts, settings.builders).of(0), (std::vector<NodeId>{5, 4, 6}));
}

}  // namespace
}  // namespace weir::cluster
