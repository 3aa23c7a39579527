// Which part of a cluster goes on where its network falls apart.
#include <gtest/gtest.h>

#include "cluster/quorum.hpp"

namespace weir::cluster::test {
namespace {

/// What the first node of two readout nodes and two builders sees; it manages, and so does the third.
class QuorumTest : public testing::Test {
protected:
    static constexpr Incarnation life = 7;

    void SetUp() override {
        settings_.readouts.insert(0), settings_.readouts.insert(1);
        settings_.builders.insert(2), settings_.builders.insert(3);
        settings_.managers.insert(0), settings_.managers.insert(2);
        for (NodeId node = 0; node < 4; ++node) peers_.set_up(node, life), first_.up(node), last_.up(node);
    }
    void lose(NodeId node, Ending ending) {
        first_.down(node, ending), last_.down(node, ending);
        peers_.set_gone(node, life);
    }

    Settings settings_{.nodes = 4};
    Peers peers_{4};
    Quorum first_{settings_, 0, peers_};
    Quorum last_{settings_, 3, peers_};
};

TEST_F(QuorumTest, MoreThanHalfOrHalfWithTheFirst) {
    EXPECT_TRUE(first_.holds());
    lose(1, Ending::silent);
    EXPECT_TRUE(first_.holds());
    lose(2, Ending::silent);
    EXPECT_TRUE(first_.holds());  // 0 and 3
    lose(3, Ending::silent);
    EXPECT_FALSE(first_.holds());
    EXPECT_TRUE(first_.is_lost());
    peers_.set_up(3, life + 1);
    first_.up(3);
    EXPECT_TRUE(first_.holds());
}

TEST_F(QuorumTest, HalfWithoutTheFirstWaits) {
    lose(0, Ending::silent);
    EXPECT_TRUE(last_.holds());
    lose(1, Ending::silent);
    EXPECT_FALSE(last_.holds());  // 2 and 3
    EXPECT_EQ(last_.count(true).here, 2U);
    EXPECT_EQ(last_.count(true).counted, 4U);
}

TEST_F(QuorumTest, WhoHasEndedDoesNotCount) {
    lose(0, Ending::over);
    lose(1, Ending::over);
    lose(2, Ending::over);
    EXPECT_TRUE(last_.holds());
    EXPECT_EQ(last_.count(false).counted, 1U);
}

TEST_F(QuorumTest, WhoIsQuietIsNotHereButNotLost) {
    first_.quiet(1, true), first_.quiet(2, true), first_.quiet(3, true);
    EXPECT_FALSE(first_.holds());
    EXPECT_FALSE(first_.is_lost());
    first_.quiet(3, false);
    EXPECT_TRUE(first_.holds());
}

/// Else each of two parts could count the spares that it has, and not those of the other one.
TEST_F(QuorumTest, SparesDoNotCountWhereverTheyAre) {
    settings_.spares.insert(2), settings_.spares.insert(3);
    EXPECT_EQ(first_.count(false).counted, 2U);
    lose(2, Ending::silent), lose(3, Ending::silent);
    EXPECT_TRUE(first_.holds());
    EXPECT_EQ(first_.count(false).here, 2U);
    lose(0, Ending::silent);
    EXPECT_FALSE(last_.holds()) << "1 is half of those that count, and not the first";
}

TEST_F(QuorumTest, SparesCountWhereNobodyElseIsLeft) {
    settings_.quorum = QuorumOf::managers;
    settings_.spares.insert(2), settings_.spares.insert(3);
    settings_.managers.insert(3);
    lose(0, Ending::over);
    EXPECT_EQ(last_.count(false).counted, 2U);
    lose(2, Ending::silent);
    EXPECT_FALSE(last_.holds());
}

/// It is told before this node's own network finds it silent.
TEST_F(QuorumTest, WhomOthersTakeForDeadCountsUntilThisNodeKnowsHow) {
    for (const NodeId node : {1, 2, 3}) {
        first_.quiet(node, true);
        peers_.set_gone(node, life);
    }
    EXPECT_FALSE(first_.holds());
    for (const NodeId node : {1, 2, 3}) first_.down(node, Ending::over);
    EXPECT_TRUE(first_.holds());
}

TEST_F(QuorumTest, CountsTheNodesOfTheSettings) {
    lose(2, Ending::silent), lose(3, Ending::silent), lose(0, Ending::silent);
    settings_.quorum = QuorumOf::readouts;
    EXPECT_FALSE(last_.holds());  // 1, and not the first
    settings_.quorum = QuorumOf::managers;
    EXPECT_FALSE(last_.holds());
    EXPECT_EQ(last_.count(true).counted, 2U);
    settings_.quorum = QuorumOf::none;
    EXPECT_TRUE(last_.holds());
    EXPECT_FALSE(last_.is_lost());
}

}  // namespace
}  // namespace weir::cluster::test
