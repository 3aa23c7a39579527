// A builder that is about to go: others get its blocks, as long as one of them stays.
#include <gtest/gtest.h>

#include "hall.hpp"

namespace weir::cluster::test {
namespace {

using Blocks = std::vector<std::uint64_t>;

Settings by_pull() {
    Settings settings = in_step(false);
    settings.strategy = Strategy::pull;
    settings.credits = 100;
    return settings;
}

TEST(Leaving, TheOthersGetTheBlocks) {
    Hall hall(by_pull());
    hall.offer(6);
    EXPECT_EQ(hall.assigned(), (Blocks{2, 2, 2}));
    hall.prepare_to_leave(2);
    hall.offer(6, 6);
    EXPECT_EQ(hall.assigned(), (Blocks{5, 5, 2}));
    EXPECT_TRUE(hall.others_build(2));
}

TEST(Leaving, WhoManagesNextKnows) {
    Hall hall(by_pull());
    hall.prepare_to_leave(2);
    hall.fall(1);  // it managed
    hall.offer(6);
    EXPECT_EQ(hall.assigned(), (Blocks{6, 0, 0}));
}

/// Its builder may hear from the manager alone that a node has gone.
TEST(Leaving, WhoHasGoneIsNotSaidToHaveHadNothing) {
    Hall hall(by_pull());
    const auto bring_all = [&] {
        while (!hall.on_their_way().empty()) hall.arrive(hall.on_their_way().begin()->first);
    };
    hall.offer(6);
    bring_all();
    hall.fall(2, 0);
    hall.offer(6, 6);
    bring_all();
    for (const NodeId node : {0, 1}) {
        EXPECT_EQ(hall.builder_stats(node).node_down[2], 3U) << node;
        EXPECT_EQ(hall.builder_stats(node).not_held[2], 0U) << node;
    }
}

TEST(Leaving, WhereAllAreAboutToGoAllBuild) {
    Hall hall(by_pull());
    hall.prepare_to_leave(2);
    hall.prepare_to_leave(1);
    hall.prepare_to_leave(0);
    EXPECT_FALSE(hall.others_build(2));
    hall.offer(6);
    EXPECT_EQ(hall.assigned(), (Blocks{2, 2, 2}));
}

TEST(Leaving, WhereTheOthersDieItGoesOn) {
    Hall hall(by_pull());
    hall.prepare_to_leave(2);
    hall.fall(0);
    hall.fall(1);
    EXPECT_FALSE(hall.others_build(2));
    hall.offer(6);
    EXPECT_EQ(hall.assigned(), (Blocks{0, 0, 6}));
}

}  // namespace
}  // namespace weir::cluster::test
