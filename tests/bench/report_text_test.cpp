#include "bench/report_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "bench/number_text.hpp"
#include "bench/some_results.hpp"

namespace weir::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NumberText, WhatIsNotZeroNeverLooksLikeIt) {
    EXPECT_EQ(loss_text(1.3e-7), "1.3e-07");
    EXPECT_EQ(loss_text(0), "0");
    EXPECT_EQ(loss_text(0.0014), "0.0014");
    EXPECT_EQ(loss_text(0.4), "0.40");
    for (double ratio = 1; ratio > 1e-300; ratio /= 7.3) {
        EXPECT_NE(std::stod(loss_text(ratio)), 0) << ratio;
        EXPECT_NEAR(std::stod(loss_text(ratio)) / ratio, 1, 0.06) << ratio;
    }
}

TEST(NumberText, DigitsThatCount) {
    EXPECT_EQ(number_text(98.7654), "98.77");
    EXPECT_EQ(number_text(0.012346), "0.01235");
    EXPECT_EQ(number_text(123456.0), "123456");
    EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "?");
    EXPECT_EQ(number_text(std::optional<double>{}), "");
}

TEST(ReportText, RepeatsAreOneRowOfMedianAndSpread) {
    const std::string text = report_text(some_results({9.5, 10.5, 10}));
    EXPECT_THAT(text, HasSubstr("8240      10.00 9.500..10.50  0.1517"));
    EXPECT_THAT(text, HasSubstr("bounds: 9.500..10.55 Gb/sec; lost just above: kernel (0.0020)"));
    EXPECT_THAT(text, HasSubstr("9 of 9 trials were valid."));
    EXPECT_THAT(text, HasSubstr("goal ndr: no loss"));
    EXPECT_LE(longest_line(text), 80U) << text;
}

TEST(ReportText, AWideTerminalHasItAllInOneRow) {
    const std::string text = report_text(some_results({9.5, 10.5}), 200);
    EXPECT_THAT(text, HasSubstr("udp-socket  sendmmsg  receive"));
    EXPECT_THAT(text, HasSubstr("9.500..10.55  kernel (0.0020)"));
}

TEST(ReportText, WhatWasNotFoundIsAWord) {
    Results results = some_results({});
    results.points.push_back(some_point(2048, std::nullopt));
    results.points.push_back(not_available_point(8240,
                                                 "RoCE packets end at 4096 bytes, so that this size of a packet "
                                                 "cannot be sent over this transport at all"));
    const std::string text = report_text(results);
    EXPECT_THAT(text, HasSubstr("2048   no result\n"));
    EXPECT_THAT(text, HasSubstr("irregular: there was loss at every load"));
    EXPECT_THAT(text, HasSubstr("8240        n.a.\n"));
    EXPECT_THAT(text, HasSubstr("n.a.: RoCE packets end at 4096"));
    EXPECT_LE(longest_line(text), 80U) << text;
}

TEST(ReportText, ARateWithoutAnUpperBoundIsALowerLimit) {
    Results results = some_results({10});
    EXPECT_THAT(report_text(results), Not(HasSubstr("≥")));
    results.points[0].upper_gbps.reset();
    results.points[0].irregular = "no more could be offered";
    const std::string text = report_text(results);
    EXPECT_THAT(text, HasSubstr("8240    ≥ 10.00 ≥ 0.1517"));
    EXPECT_THAT(text, HasSubstr("≥: the search found no upper bound"));
}

TEST(ReportText, AMedianThatRepeatsWithoutAnUpperBoundCannotRaiseHasNoMark) {
    Results results = some_results({9, 10, 11});
    results.points[2].upper_gbps.reset();
    EXPECT_THAT(report_text(results), Not(HasSubstr("≥")));
    results.points[1].upper_gbps.reset();
    EXPECT_THAT(report_text(results), HasSubstr("≥ 10.00"));
}

TEST(ReportText, InvalidTrialsAreCountedAndSayNothingElse) {
    Results results = some_results({10});
    results.points[0].trials.push_back(some_trial(10.01, 0.9, "it fell behind its schedule"));
    const std::string text = report_text(results);
    EXPECT_THAT(text, HasSubstr("1 of 4 trials invalid, not counted"));
    EXPECT_THAT(text, HasSubstr("3 of 4 trials were valid."));
    EXPECT_THAT(text, HasSubstr("kernel (0.0020)"));
    EXPECT_THAT(text, Not(HasSubstr("0.90")));
}

TEST(ReportText, WhereMostTrialsAreInvalidThatIsSaidBeforeAnyNumber) {
    Results results = some_results({10});
    EXPECT_THAT(report_text(results), Not(HasSubstr("NOT USABLE")));
    const std::size_t valid = results.points[0].trials.size();
    for (std::size_t i = 0; i < valid; ++i)
        results.points[0].trials.push_back(some_trial(10.01, 0.9, i == 0 ? "the machine paused" : "late"));
    EXPECT_THAT(report_text(results), Not(HasSubstr("NOT USABLE")));
    results.points[0].trials.push_back(some_trial(10.01, 0.9, "late"));
    const std::string text = report_text(results, 200);
    const std::string said = fmt::format("NOT USABLE: {} of {} trials are invalid, {} of them for this: late.",
                                         valid + 1, 2 * valid + 1, valid);
    ASSERT_THAT(text, HasSubstr(said));
    EXPECT_LT(text.find(said), text.find("trials invalid, not counted"));
}

TEST(ReportText, AGivenLoadHasItsLoss) {
    Results results = some_results({});
    Point point = some_point(8240, std::nullopt);
    point.goal = "at";
    point.irregular.clear();
    point.trials = {some_trial(5, 1.3e-7), some_trial(5, 1.3e-7), some_trial(6, 0, "it fell behind its schedule")};
    results.points.push_back(point);
    const std::string text = report_text(results, 120);
    EXPECT_THAT(text, HasSubstr("5.000         1.3e-07"));
    EXPECT_THAT(text, HasSubstr("6.000  no valid trial"));
    EXPECT_THAT(text, HasSubstr("2 of 2"));
}

TEST(ReportText, BurstsHaveATableOfTheirOwn) {
    Results results = some_results({});
    results.points.push_back(some_point(8240, 4));
    results.points[0].goal = "back-to-back";
    results.points[0].ceiling_gbps = 8;
    results.points[0].bursts = {.packets = {100, 130}, .implied_s = 0.002, .corrected_s = 0.001, .trials = {}};
    EXPECT_THAT(report_text(results, 120), HasSubstr("  115   100..130     8.000          2.00       1.00"));
    results.points[0].bursts.reached_most = true;
    results.points[0].lower_gbps.reset();
    const std::string text = report_text(results, 120);
    EXPECT_THAT(text, HasSubstr("\u2265 115"));
    EXPECT_THAT(text, HasSubstr("no rate"));
}

TEST(ReportText, ControlCharactersDoNotReachTheTerminal) {
    Results results = some_results({10});
    results.hosts[0].name = "evil\x1b[2Jhost";
    EXPECT_THAT(report_text(results), Not(HasSubstr("\x1b")));
}

TEST(ReportText, NothingIsSaidToBeNothing) {
    EXPECT_THAT(report_text(Results{}), HasSubstr("Nothing was measured."));
}

}  // namespace
}  // namespace weir::bench
