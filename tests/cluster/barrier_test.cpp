// Settings::barrier: readout nodes that push turn to the next builder together.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "hall.hpp"

namespace weir::cluster::test {
namespace {

TEST(Barrier, NobodyTurnsToTheNextBuilderBeforeAllHaveSent) {
    Hall hall(in_step(true));
    hall.offer(9);
    EXPECT_EQ(hall.on_their_way(), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
    hall.arrive(0);
    hall.arrive(2);
    EXPECT_EQ(hall.on_their_way(), (Pairs{{1, 2}}));
    hall.arrive(1);
    EXPECT_EQ(hall.on_their_way(), (Pairs{{0, 2}, {1, 0}, {2, 1}}));
}

TEST(Barrier, WithoutOneWhoHasSentGoesOn) {
    Hall hall(in_step(false));
    hall.offer(9);
    const Pairs first = hall.on_their_way();
    hall.arrive(0);
    const Pairs then = hall.on_their_way();
    EXPECT_EQ(then.size(), first.size());  // another one of node 0's, and those of the others as before
    EXPECT_NE(then, first);
}

TEST(Barrier, AllBlocksAreBuiltAlsoOfARoundThatIsNotWhole) {
    Hall hall(in_step(true));
    hall.offer(8);
    hall.close();
    for (int parts = 0; parts < 16; ++parts) {
        ASSERT_FALSE(hall.on_their_way().empty()) << parts;
        hall.arrive(hall.on_their_way().begin()->first);
    }
    EXPECT_TRUE(hall.on_their_way().empty());
    EXPECT_EQ(hall.built(), 8U);
}

TEST(Barrier, WhoDiesIsNotWaitedForAndTheNextManagerGoesOn) {
    for (const NodeId dead : {0, 1}) {  // 1 manages
        Hall hall(in_step(true));
        hall.offer(9);
        const NodeId other = dead == 0 ? 1 : 0;
        hall.arrive(other);
        hall.arrive(2);
        EXPECT_EQ(hall.on_their_way().size(), 1U);
        hall.fall(dead);
        for (int parts = 0; parts < 40 && !hall.on_their_way().empty(); ++parts)
            hall.arrive(hall.on_their_way().begin()->first);
        EXPECT_TRUE(hall.on_their_way().empty());
    }
}

TEST(Barrier, ManagersBeginAtThePresentStep) {
    Hall hall(in_step(true));
    hall.offer(9, 30'000);
    EXPECT_EQ(hall.on_their_way().size(), 3U);
    EXPECT_LE(hall.steps_told(), 10U);
    hall.fall(1);  // it managed
    for (int parts = 0; parts < 40 && !hall.on_their_way().empty(); ++parts)
        hall.arrive(hall.on_their_way().begin()->first);
    EXPECT_TRUE(hall.on_their_way().empty());
    EXPECT_LE(hall.steps_told(), 60U);
}

}  // namespace
}  // namespace weir::cluster::test
