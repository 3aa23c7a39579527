// Which builder is given the next block.
#include "cluster/builder_turns.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::cluster::test {
namespace {

/// A readout node, and builders of these weights.
Settings settings_of(const std::vector<std::uint32_t>& weights) {
    Settings settings;
    settings.nodes = static_cast<std::uint16_t>(weights.size() + 1);
    settings.readouts.insert(0);
    settings.weights = {1};
    for (const std::uint32_t weight : weights) {
        settings.builders.insert(static_cast<NodeId>(settings.weights.size()));
        settings.weights.push_back(weight);
    }
    return settings;
}

/// The next turns, a digit each.
std::string turns_of(BuilderTurns& turns, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        const auto builder = turns.next();
        text += builder ? std::to_string(*builder) : "-";
    }
    return text;
}

TEST(BuilderTurns, OfTheSameWeightByTurns) {
    BuilderTurns turns(settings_of({1, 1, 1}));
    for (NodeId node = 0; node < 4; ++node) turns.add(node, 100);
    EXPECT_EQ(turns_of(turns, 9), "123123123");
}

TEST(BuilderTurns, ByTheirWeightsAndEvenly) {
    BuilderTurns three(settings_of({3, 1}));
    for (const NodeId node : {1, 2}) three.add(node, 100);
    EXPECT_EQ(turns_of(three, 12), "112111211121");
    BuilderTurns five(settings_of({5, 1, 1}));
    for (const NodeId node : {1, 2, 3}) five.add(node, 100);
    EXPECT_EQ(turns_of(five, 14), "11123111112311");
}

TEST(BuilderTurns, OfManyWeightsEachGetsItsShare) {
    const std::vector<std::uint32_t> weights{1, 2, 7, 13, 100, 50, 1, 99};
    BuilderTurns turns(settings_of(weights));
    std::uint32_t sum = 0;
    for (NodeId node = 1; node <= weights.size(); ++node) {
        turns.add(node, 1'000'000);
        sum += weights[node - 1U];
    }
    std::vector<std::uint32_t> got(weights.size() + 1);
    for (std::uint32_t i = 0; i < 100 * sum; ++i) ++got[turns.next().value()];
    for (NodeId node = 1; node <= weights.size(); ++node)
        EXPECT_NEAR(got[node], 100 * weights[node - 1U], 2 + weights[node - 1U] / 20) << node;
}

TEST(BuilderTurns, WithoutCreditsItsTurnsGoToTheOthers) {
    BuilderTurns turns(settings_of({3, 1}));
    turns.add(1, 2);
    turns.add(2, 4);
    EXPECT_EQ(turns_of(turns, 8), "112222--");
    EXPECT_TRUE(turns.empty());
    for (int i = 0; i < 100; ++i) turns.give_back(2);
    EXPECT_EQ(turns_of(turns, 5), "22222");
    for (int i = 0; i < 100; ++i) turns.give_back(1);
    EXPECT_EQ(turns_of(turns, 8), "11112111") << "it does not make up for what it has missed";
}

TEST(BuilderTurns, WhoComesBeginsInTheMiddleAndWhoGoesGetsNothing) {
    BuilderTurns turns(settings_of({1, 1, 1}));
    turns.add(1, 100);
    EXPECT_EQ(turns_of(turns, 4), "1111");
    turns.add(2, 100);
    turns.add(3, 100);
    EXPECT_EQ(turns_of(turns, 6), "231231");
    turns.remove(3);
    EXPECT_EQ(turns_of(turns, 4), "2121");
    turns.add(3, 1);
    EXPECT_EQ(turns_of(turns, 5), "23121");
}

TEST(BuilderTurns, WhoIsAboutToGoGetsBlocksOnlyWhereAllAre) {
    BuilderTurns turns(settings_of({1, 1}));
    turns.add(1, 3);
    turns.add(2, 2);
    turns.leaves(1);
    EXPECT_EQ(turns_of(turns, 3), "22-");
    turns.leaves(2);
    EXPECT_EQ(turns_of(turns, 2), "11");
    turns.add(2, 1);  // another life of it
    EXPECT_EQ(turns_of(turns, 2), "2-");
    turns.remove(2);
    EXPECT_EQ(turns_of(turns, 2), "1-");
}

}  // namespace
}  // namespace weir::cluster::test
