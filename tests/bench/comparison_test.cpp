#include "bench/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/some_results.hpp"

namespace weir::bench {
namespace {

using testing::HasSubstr;

Verdict verdict_of(const Results& before, const Results& after) {
    const Comparison comparison = compare(before, after);
    EXPECT_EQ(comparison.points.size(), 1U);
    return comparison.points.front().verdict;
}

const Results usual = some_results({10, 10.1, 9.9, 10.05, 9.95});

TEST(Comparison, AClearChangeIsBetterOrWorse) {
    const Results faster = some_results({11, 11.1, 10.9, 11.05, 10.95});
    EXPECT_EQ(verdict_of(usual, faster), Verdict::better);
    EXPECT_EQ(verdict_of(faster, usual), Verdict::worse);
    EXPECT_FALSE(changed_for_the_worse(compare(usual, faster)));
    EXPECT_TRUE(changed_for_the_worse(compare(faster, usual)));
}

TEST(Comparison, ASureChangeSmallerThanTheWidthIsNone) {
    const Results a = some_results({10, 10.001, 10.002, 10.003});
    const Results b = some_results({10.1, 10.101, 10.102, 10.103});
    EXPECT_EQ(verdict_of(a, b), Verdict::same);
    EXPECT_EQ(compare(a, b, {.alpha = 0.05, .width = 0.005, .bootstrap = {}}).points.front().verdict, Verdict::better);
}

TEST(Comparison, NoiseIsNoChange) {
    EXPECT_EQ(verdict_of(some_results({8, 10, 12, 9, 11}), some_results({8.5, 10.6, 11.9, 9.4, 11.3})), Verdict::same);
}

TEST(Comparison, FewRepeatsSayHowManyItTakes) {
    const Comparison comparison = compare(some_results({10, 10.1, 9.9}), some_results({20, 20.1, 19.9}));
    EXPECT_EQ(comparison.points.front().verdict, Verdict::unsure);
    EXPECT_THAT(comparison.points.front().why, HasSubstr("4+4"));
}

TEST(Comparison, PointsOfOneSideAndPointsWithoutARateAreNoNumbers) {
    Results before = some_results({10, 10, 10, 10});
    Results after = before;
    before.points.push_back(some_point(2048, 5));
    after.points.push_back(some_point(4096, 7));
    before.points.push_back(not_available_point(64, "no such card"));
    after.points.push_back(some_point(64, 1));
    before.points.push_back(some_point(128, 2));
    after.points.push_back(some_point(128, std::nullopt));
    const Comparison comparison = compare(before, after);
    ASSERT_EQ(comparison.points.size(), 5U);
    EXPECT_EQ(comparison.points[0].verdict, Verdict::same);
    EXPECT_EQ(comparison.points[1].verdict, Verdict::only_before);
    EXPECT_EQ(comparison.points[2].verdict, Verdict::not_available);
    EXPECT_EQ(comparison.points[2].why, "before: no such card");
    EXPECT_EQ(comparison.points[3].verdict, Verdict::no_result);
    EXPECT_EQ(comparison.points[3].why, "no rate was found after");
    EXPECT_EQ(comparison.points[4].verdict, Verdict::only_after);
    EXPECT_TRUE(to_json(comparison)["points"][2]["ratio"].is_null());
}

TEST(Comparison, WhatIsGoneIsNamedAndWorseUnlessAllowed) {
    Results before = usual;
    before.points.push_back(some_point(2048, 5));
    for (const auto& [after_point, missing] : {std::pair{std::optional<Point>(), true},
                                               {not_available_point(2048, "no such card"), true},
                                               {some_point(2048, std::nullopt), true},
                                               {some_point(2048, 5), false}}) {
        Results after = usual;
        if (after_point) after.points.push_back(*after_point);
        const Comparison comparison = compare(before, after);
        EXPECT_EQ(comparison.points.back().missing, missing);
        EXPECT_EQ(changed_for_the_worse(comparison), missing);
        EXPECT_EQ(to_json(comparison)["points"].back()["missing"], missing);
        const std::string text = comparison_text(comparison, 200);
        EXPECT_EQ(text.find("Missing after, which counts as worse: udp-socket from sendmmsg, receive, ndr, 2048 B.") !=
                      std::string::npos,
                  missing)
            << text;
        ComparisonRules lenient;
        lenient.allow_missing = true;
        const Comparison allowed = compare(before, after, lenient);
        EXPECT_FALSE(changed_for_the_worse(allowed));
        EXPECT_EQ(
            comparison_text(allowed, 200).find("Missing after, which was allowed: udp-socket") != std::string::npos,
            missing);
    }
}

TEST(Comparison, WhatWasNeverThereIsNotMissing) {
    Results before = usual;
    before.points.push_back(not_available_point(64, "no such card"));
    before.points.push_back(not_available_point(128, "no such card"));
    before.points.push_back(some_point(256, std::nullopt));
    Results after = usual;
    after.points.push_back(not_available_point(64, "no such card"));
    after.points.push_back(some_point(256, std::nullopt));
    EXPECT_FALSE(changed_for_the_worse(compare(before, after)));
}

TEST(Comparison, RepeatsWithoutARateAreLeftOutAndSaidToBe) {
    Results after = usual;
    after.points.push_back(some_point(8240, std::nullopt, 5));
    const Comparison comparison = compare(usual, after);
    EXPECT_EQ(comparison.points.front().verdict, Verdict::same);
    EXPECT_EQ(comparison.points.front().why, "after: 1 of 6 repeats gave no rate");
}

TEST(Comparison, OtherMachinesAreNoted) {
    EXPECT_TRUE(compare(usual, usual).notes.empty());
    Results elsewhere = usual;
    elsewhere.hosts[1].kernel = "6.12.0";
    elsewhere.hosts[1].name = "another";
    const Comparison comparison = compare(usual, elsewhere);
    ASSERT_EQ(comparison.notes.size(), 2U);
    EXPECT_EQ(comparison.notes[0], "the receiver's kernel differs: 6.1.0-23-amd64 before, 6.12.0 after");
}

TEST(Comparison, TextFitsATerminalAndCountsTheVerdicts) {
    Results after = some_results({110.25, 110.75, 109.5, 108.875, 111.375});
    after.points.push_back(some_point(64, 1));
    const std::string text = comparison_text(compare(usual, after));
    EXPECT_LE(longest_line(text), 80U) << text;
    EXPECT_THAT(text, HasSubstr("1 better, 1 only in after"));
    EXPECT_THAT(text, HasSubstr("before min..max: 9.900..10.10 Gb/sec"));
}

TEST(Comparison, JsonHasTheSamplesAndTheVerdict) {
    const nlohmann::json json = to_json(compare(usual, some_results({9, 9.1, 8.9, 9, 9})));
    EXPECT_TRUE(json["worse"]);
    EXPECT_EQ(json["points"][0]["verdict"], "worse");
    EXPECT_EQ(json["points"][0]["before"]["gbps"].size(), 5U);
    EXPECT_DOUBLE_EQ(json["points"][0]["ratio"]["median"], 0.9);
    EXPECT_LT(json["points"][0]["p"], 0.05);
}

}  // namespace
}  // namespace weir::bench
