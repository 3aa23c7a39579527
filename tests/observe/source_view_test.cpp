// Which source stands out among the others.
#include "observe/source_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace weir::observe;

std::vector<bool> lagging(const std::vector<SourcePace>& sources, double since_s = 100) {
    return lagging_sources(sources, since_s, 1.0);
}

TEST(LaggingSources, TheOneOfAThousandIsFoundByItsRate) {
    std::vector<SourcePace> sources(1000, SourcePace{0, 200, 0.0});
    for (std::size_t i = 0; i < sources.size(); ++i) sources[i].packets += i % 7;  // never quite alike
    sources[613].packets = 90;
    const std::vector<bool> found = lagging(sources);
    EXPECT_EQ(std::ranges::count(found, true), 1);
    EXPECT_TRUE(found[613]);
    sources[613].packets = 110;
    EXPECT_EQ(std::ranges::count(lagging(sources), true), 0) << "more than half is not far enough behind";
}

TEST(LaggingSources, FewPacketsSayNothing) {
    EXPECT_EQ(lagging({{0, 19, 0.0}, {0, 19, 0.0}, {0, 3, 0.0}}), std::vector<bool>(3, false));
    EXPECT_EQ(lagging({{0, 40, 0.0}, {0, 40, 0.0}, {0, 3, 0.0}}), (std::vector<bool>{false, false, true}));
}

TEST(LaggingSources, OneThatSendsLessByItsNatureIsHeldAgainstItsKind) {
    EXPECT_EQ(lagging({{0, 12800, 0.0}, {0, 12800, 0.0}, {1, 100, 0.0}}), std::vector<bool>(3, false));
    EXPECT_EQ(lagging({{0, 12800, 0.0}, {0, 12800, 0.0}, {1, 100, 0.0}, {1, 40, 0.0}}),
              (std::vector<bool>{false, false, false, true}));
}

TEST(LaggingSources, ASilentOneStandsOutWhileOthersGoOn) {
    EXPECT_EQ(lagging({{0, 5, 0.1}, {0, 5, 0.2}, {0, 0, 1.3}}), (std::vector<bool>{false, false, true}));
    EXPECT_EQ(lagging({{0, 5, 0.1}, {0, 5, 0.2}, {0, 0, 0.9}}), std::vector<bool>(3, false)) << "not for long enough";
    EXPECT_EQ(lagging({{0, 0, 50.0}, {0, 0, 50.1}, {0, 0, 50.2}}), std::vector<bool>(3, false)) << "nobody sends";
    EXPECT_EQ(lagging({{0, 5, 0.0}, {0, 0, 7.0}}), (std::vector<bool>{false, true})) << "one of two";
}

TEST(LaggingSources, OneThatNeverCameIsMissedWhenTheOthersHaveSentForAWhile) {
    const std::vector<SourcePace> sources{{0, 5, 0.0}, {0, 5, 0.1}, {0, 0, {}}};
    EXPECT_EQ(lagging(sources, 0.5), std::vector<bool>(3, false));
    EXPECT_EQ(lagging(sources, 2), (std::vector<bool>{false, false, true}));
    EXPECT_EQ(lagging({{0, 0, {}}, {0, 0, {}}}, 0), std::vector<bool>(2, false)) << "nobody has sent yet";
    EXPECT_EQ(lagging({{0, 0, {}}}, 0), std::vector<bool>(1, false)) << "there is nobody to compare it with";
}

}  // namespace
