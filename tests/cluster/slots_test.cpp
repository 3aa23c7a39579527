// Settings::slot_ns: readout nodes that push turn to the next builder when their clocks say so.
#include <gtest/gtest.h>

#include <vector>

#include "hall.hpp"

namespace weir::cluster::test {
namespace {

constexpr core::TimeNs slot = 100'000;

Settings by_time() {
    Settings settings = in_step(false);
    settings.slot_ns = slot;
    return settings;
}

TEST(Slots, EachSendsOnePartASlotAndNoTwoToTheSame) {
    Hall hall(by_time());
    hall.offer(9);
    EXPECT_TRUE(hall.on_their_way().empty());
    std::vector<Pairs> seen;
    for (int i = 3; i < 6; ++i) {
        hall.tick(i * slot);
        hall.tick(i * slot + 1);  // has had its part
        seen.push_back(hall.on_their_way());
        EXPECT_EQ(hall.parts_on_their_way(), seen.back().size());
        while (!hall.on_their_way().empty()) hall.arrive(hall.on_their_way().begin()->first);
    }
    EXPECT_EQ(seen, (std::vector<Pairs>{{{0, 1}, {1, 2}, {2, 0}}, {{0, 2}, {1, 0}, {2, 1}}, {}}))
        << "the third is for each itself";
}

TEST(Slots, WhoIsLateWaitsForItsNextTurn) {
    Hall hall(by_time());
    hall.offer(9);
    hall.tick(3 * slot + slot / 2 + 1);
    EXPECT_TRUE(hall.on_their_way().empty());
    hall.tick(4 * slot + slot / 2);
    EXPECT_EQ(hall.on_their_way(), (Pairs{{0, 2}, {1, 0}, {2, 1}}));
}

TEST(Slots, ABuilderThatTakesNothingCostsTheOthersNothing) {
    Hall hall(by_time());
    hall.offer(90);
    std::uint64_t built = 0;
    for (int i = 3; i < 300; ++i) {
        hall.tick(i * slot);
        for (const auto& [from, to] : hall.on_their_way())
            if (to != 2) hall.arrive(from, to);
        hall.pass(slot);
        built = hall.built();
    }
    EXPECT_GT(built, 50U);
    for (const auto& [from, to] : hall.on_their_way()) EXPECT_EQ(to, 2);
    EXPECT_LE(hall.parts_on_their_way(), 2 * 3U) << "3 for each builder at most, of the 4 that it has room for";
}

TEST(Slots, AClockThatIsSetBackCostsNothing) {
    Hall hall(by_time());
    hall.offer(9);
    hall.tick(1000 * slot);
    for (int i = 0; i < 60; ++i) {
        hall.tick(i * slot);
        while (!hall.on_their_way().empty()) hall.arrive(hall.on_their_way().begin()->first);
    }
    EXPECT_EQ(hall.built(), 9U);
}

}  // namespace
}  // namespace weir::cluster::test
