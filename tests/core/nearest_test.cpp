#include "core/nearest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace weir::core;

TEST(Nearest, ClosestNamesComeFirstAndFarOnesNotAtAll) {
    const std::vector<std::string> names{"replay", "run", "send", "inspect", "explain"};
    EXPECT_EQ(closest("replya", names, 3).at(0), "replay");
    EXPECT_EQ(closest("inspct", names, 3).at(0), "inspect");
    EXPECT_TRUE(closest("zzzzzzzzzz", names, 3).empty());
    EXPECT_TRUE(closest("run", {}, 3).empty());
}

TEST(Nearest, SimilarNamesShareWordsOrAreAFewLettersAway) {
    const std::vector<std::string> names{"packets.dropped.late",       "packets.dropped.malformed.bad_icrc",
                                         "events.incomplete.timeout",  "packets.dropped.no_room",
                                         "packets.dropped.queue_full", "device.missed",
                                         "packets.not_for_us.roce_v1", "events"};
    EXPECT_EQ(similar_names("droped.late", names).at(0), "packets.dropped.late");
    EXPECT_EQ(similar_names("icrc", names).at(0), "packets.dropped.malformed.bad_icrc");
    EXPECT_EQ(similar_names("timeout.incomplete", names).at(0), "events.incomplete.timeout");
    EXPECT_EQ(similar_names("full_queue", names).at(0), "packets.dropped.queue_full");
    EXPECT_EQ(similar_names("misssed", names).at(0), "device.missed");
    EXPECT_EQ(similar_names("event", names).at(0), "events");
    EXPECT_TRUE(similar_names("lost", names).empty());
    EXPECT_TRUE(similar_names("zzzzzzzzzz", names).empty());
    EXPECT_TRUE(similar_names("", names).empty());
}

}  // namespace
