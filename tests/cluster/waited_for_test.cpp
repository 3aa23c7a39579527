// Which builder a readout node without room is told to wait for.
#include <gtest/gtest.h>

#include "hall.hpp"

namespace weir::cluster::test {
namespace {

constexpr core::TimeNs second = core::ns_per_s;

void bring_all(Hall& hall) {
    while (!hall.on_their_way().empty()) hall.arrive(hall.on_their_way().begin()->first);
}

/// What was settled last may have been told before the next block was given to anybody.
TEST(WaitedFor, TheBuilderOfTheOldestBlockAlsoIfItWasGivenOutLater) {
    Hall hall(in_step(false));
    hall.offer(3);
    bring_all(hall);
    hall.pass(second);
    EXPECT_FALSE(hall.waited_for(0));  // all are written
    hall.keep_back(1);                 // it is given block 3, so that no more is settled
    hall.offer(9, 3);
    bring_all(hall);
    hall.pass(second);
    for (NodeId node = 0; node < node_count; ++node) EXPECT_EQ(hall.waited_for(node), 1) << node;
}

/// The others wait for its step, also where the oldest block is with one of them.
TEST(WaitedFor, InStepTheBuilderThatTakesNoParts) {
    for (const NodeId standing : {0, 1, 2}) {
        Hall hall(in_step(true));
        hall.offer(9);
        const auto to_it = [&] {
            for (const auto& [from, to] : hall.on_their_way())
                if (to != standing) return false;
            return true;
        };
        while (!to_it())
            for (const auto& [from, to] : hall.on_their_way())
                if (to != standing) hall.arrive(from);
        ASSERT_FALSE(hall.on_their_way().empty());
        for (int looks = 0; looks < 3; ++looks) hall.pass(second);
        for (NodeId node = 0; node < node_count; ++node) EXPECT_EQ(hall.waited_for(node), standing) << node;
        bring_all(hall);
        hall.pass(second);
        for (NodeId node = 0; node < node_count; ++node) EXPECT_FALSE(hall.waited_for(node)) << node;
    }
}

TEST(WaitedFor, InStepTheNextManagerIsTold) {
    Hall hall(in_step(true));
    hall.offer(9);
    EXPECT_EQ(hall.on_their_way(), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
    hall.arrive(0);
    for (int looks = 0; looks < 3; ++looks) hall.pass(second);
    hall.fall(1);  // it managed
    while (hall.on_their_way().begin()->first == 0) hall.arrive(0);
    for (int looks = 0; looks < 3; ++looks) hall.pass(second);
    EXPECT_EQ(hall.waited_for(0), 0);
    EXPECT_EQ(hall.waited_for(2), 0);
}

}  // namespace
}  // namespace weir::cluster::test
