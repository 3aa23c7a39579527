#include "bench/report_html.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "bench/html_text.hpp"
#include "bench/result_table.hpp"
#include "bench/some_results.hpp"

namespace weir::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t times(const std::string& text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
}

/// Every element that is opened is closed, in order, and no attribute of a picture is something else than a number.
void expect_sound(const std::string& html) {
    static const std::regex element("<(/?)([a-z][a-z0-9]*)[^>]*?(/?)>");
    std::vector<std::string> open;
    const std::string body = html.substr(html.find("<body>"));
    for (std::sregex_iterator it(body.begin(), body.end(), element); it != std::sregex_iterator(); ++it) {
        if ((*it)[3].length() > 0) continue;
        if ((*it)[1].length() == 0) {
            open.push_back((*it)[2]);
            continue;
        }
        if (open.empty() || open.back() == "html") break;
        ASSERT_EQ(open.back(), (*it)[2]);
        open.pop_back();
    }
    EXPECT_TRUE(open.empty());
    static const std::regex drawn(" (?:d|x|y|x1|y1|width|height|viewBox)=\"([^\"]*)\"");
    for (std::sregex_iterator it(body.begin(), body.end(), drawn); it != std::sregex_iterator(); ++it)
        EXPECT_EQ((*it)[1].str().find_first_not_of("0123456789.- MLlahvz"), std::string::npos) << (*it)[1];
}

Results many() {
    Results results = some_results({9.5, 10.5, 10});
    results.points.push_back(some_point(2048, 7.25));
    results.points.push_back(some_point(4096, std::nullopt));
    results.points.push_back(not_available_point(9000, "larger than the MTU"));
    results.points[0].trials.push_back(some_trial(10, 0.9, "it fell behind its schedule"));
    return results;
}

TEST(ReportHtml, HasEveryCellOfTheTables) {
    const Results results = many();
    const std::string html = report_html(results);
    expect_sound(html);
    const std::vector<PointGroup> groups = group_points(results);
    for (const Table& table : {result_table(groups), load_table(groups), trial_table(groups)})
        for (const Row& row : table.rows) {
            for (const std::string& cell : row.cells) EXPECT_THAT(html, HasSubstr(escaped(cell)));
            for (const std::string& note : row.notes) EXPECT_THAT(html, HasSubstr(escaped(note)));
        }
    EXPECT_THAT(html, HasSubstr("12 of 13 trials were valid."));
}

TEST(ReportHtml, ARateWithoutAnUpperBoundIsALowerLimit) {
    Results results = some_results({10});
    EXPECT_THAT(report_html(results), Not(HasSubstr("≥")));
    results.points[0].upper_gbps.reset();
    const std::string html = report_html(results);
    EXPECT_THAT(html, HasSubstr("<td class=\"n\">≥ 10.00</td>"));
    EXPECT_THAT(html, HasSubstr("<p class=\"faint\">≥: the search found no upper bound"));
    EXPECT_THAT(html, HasSubstr("8240 B: ≥ 10.00 Gb/s"));
    expect_sound(html);
}

TEST(ReportHtml, NeedsNothingElse) {
    const std::string html = report_html(many());
    for (const char* other : {"<script", "src=", "href=", "url(", "@import"}) EXPECT_THAT(html, Not(HasSubstr(other)));
    EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(ReportHtml, WhatOthersWroteIsEscaped) {
    Results results = many();
    const std::string evil = "<script>\"x\" & 'y'</script>";
    results.title = results.link = results.command = results.started = evil;
    results.hosts[0].name = evil;
    results.hosts[0].remarks = {evil};
    for (Point& point : results.points) {
        point.transport = point.sender = point.depth = point.goal = evil;
        for (TrialRecord& trial : point.trials) trial.why = evil;
    }
    results.points.back().not_available = evil;
    const std::string html = report_html(results);
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_GE(times(html, "&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;&lt;/script&gt;"), 8U);
    expect_sound(html);
}

TEST(ReportHtml, InvalidTrialsAreCrossesAndHaveNoLossRatio) {
    const std::string html = report_html(many());
    EXPECT_EQ(times(html, "class=\"hollow "), 2U);  // the trial, and the legend
    EXPECT_THAT(html, HasSubstr("invalid trial, not counted"));
    EXPECT_EQ(times(html, "<td class=\"n\">invalid</td>"), 1U);
    EXPECT_THAT(html, Not(HasSubstr("0.90")));
}

TEST(ReportHtml, ASmallLossIsNoZero) {
    Results results = some_results({10});
    results.points[0].trials = {some_trial(10, 0), some_trial(10.1, 1.3e-7)};
    const std::string html = report_html(results);
    EXPECT_THAT(html, HasSubstr("(1.3e-07)"));
    EXPECT_THAT(html, HasSubstr("lost 1.3e-07"));
}

TEST(ReportHtml, WhateverTheResultsAreThePicturesAreSound) {
    expect_sound(report_html(Results{}));
    EXPECT_THAT(report_html(Results{}), HasSubstr("Nothing was measured."));
    Results none = some_results({});
    none.points = {not_available_point(64, "no card"), some_point(128, std::nullopt)};
    expect_sound(report_html(none));
    Results invalid = some_results({10});
    for (TrialRecord& trial : invalid.points[0].trials) trial = some_trial(10, 0.5, "late");
    expect_sound(report_html(invalid));
    EXPECT_THAT(report_html(invalid), HasSubstr("NOT USABLE"));
    for (const double odd : {0.0, -1.0, 1e-300, 1e300, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
        Results results = some_results({10});
        Point& point = results.points[0];
        point.conditional_gbps = point.lower_gbps = point.upper_gbps = point.sender_cpu_s_per_gb = odd;
        point.latency = Latency{odd, odd, odd, odd};
        for (TrialRecord& trial : point.trials) trial.intended_gbps = trial.loss_ratio = odd;
        expect_sound(report_html(results));
        point.bytes = 0;
        expect_sound(report_html(results));
    }
}

}  // namespace
}  // namespace weir::bench
