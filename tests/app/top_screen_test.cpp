#include "top_screen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watched.hpp"

namespace weir::app {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t columns_of_line(const TopLine& line) {
    std::size_t columns = 0;
    for (const TopSpan& span : line)
        for (const char c : span.text) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    return columns;
}

TEST(TopScreen, HasWhatOneLooksFor) {
    const std::string text = top_text(top_screen(watched_run(), {}));
    for (const char* words :
         {"det on daq1", "running  run 7  2 min 0 s", "ok Nothing lost",
          "in the kernel            0  no kernel between",
          "402 k packets/s  26.5 Gb/s  3,139 events/s  3.2 GB/s to disk  lost 0 /s", "limit: work0: busy 97 %",
          "warning: something (LOSSES.md#late)", "rx0      lcore 2  [######......]  51 %",
          "!work0   lcore 4  [############]  97 %", "build0   lcore 3  [###///......]  25 %", "memory 50 %",
          "longest poll 310 us", "rings:  events0 90 % (full 3 times)",
          "sink events: 93,121 written, 392 GB, 3.3 TB free, 7 h 24 min left", "3 sources, all fine"})
        EXPECT_THAT(text, HasSubstr(words));
    EXPECT_THAT(text, Not(HasSubstr("free0")));
}

TEST(TopScreen, IsNeverLargerThanItsView) {
    nlohmann::json document = watched_run();
    document["name"] = "dét-" + std::string(300, 'x');
    document["findings"][0]["text"] = std::string(500, 'y');
    for (std::size_t i = 0; i < 1000; ++i) {
        document["sources"]["label"][i] = "a source with a rather long label that goes on and on " + std::to_string(i);
        for (const char* name : {"packets", "missing", "per_s", "last_seen_s"}) document["sources"][name][i] = 1;
        document["sources"]["lagging"][i] = i == 613;
    }
    for (const std::size_t width : {0UL, 1UL, 20UL, 40UL, 80UL, 200UL})
        for (const std::size_t height : {1UL, 2UL, 5UL, 10UL, 24UL, 50UL}) {
            TopView view;
            view.width = width;
            view.height = height;
            view.first_source = 990;
            const TopScreen screen = top_screen(document, view);
            EXPECT_EQ(screen.lines.size(), height);
            for (const TopLine& line : screen.lines) EXPECT_LE(columns_of_line(line), std::max<std::size_t>(width, 20));
        }
}

TEST(TopScreen, SmallTerminalShowsAtLeastSomeSources) {
    TopView view;
    view.height = 24;
    const TopScreen screen = top_screen(watched_run(), view);
    EXPECT_GE(screen.source_rows, 3U);
    EXPECT_THAT(top_text(screen), HasSubstr("q quit"));
}

TEST(TopScreen, SourcesAreSorted) {
    nlohmann::json document = watched_run();
    document["sources"]["lagging"][2] = true;
    document["sources"]["missing"][1] = 4;
    const auto order = [&](TopOrder by) {
        TopView view;
        view.order = by;
        const std::string text = top_text(top_screen(document, view));
        std::string found;
        for (std::size_t at = text.find("det0 udp "); at != std::string::npos; at = text.find("det0 udp ", at + 1))
            found += text[at + 9];
        return found;
    };
    EXPECT_EQ(order(TopOrder::trouble), "321");
    EXPECT_EQ(order(TopOrder::rate), "231");
    EXPECT_EQ(order(TopOrder::number), "123");
}

TEST(TopScreen, LossesAreSaidAndMarked) {
    nlohmann::json document = watched_run();
    document["losses"] = {{{"cause", "late"}, {"packets", 12}, {"place", "weir"}, {"per_s", 0.5}}};
    document["where"][3]["packets"] = 12;
    document["where"][1]["packets"] = nullptr;
    const std::string text = top_text(top_screen(document, {}));
    for (const char* words : {"!! Losing data: 0.5 packets/s late, in weir", "lost: late 12 (0.5 /s)", "!  in weir",
                              "?  in the NIC         unknown"})
        EXPECT_THAT(text, HasSubstr(words));
}

TEST(TopScreen, WhatIsNotHeardIsNotShownAsTrue) {
    TopView view;
    view.trouble = "nobody answers";
    view.heard_s_ago = 12;
    const std::string text = top_text(top_screen(watched_run(), view));
    EXPECT_THAT(text, HasSubstr("Not known: last heard 12 s ago"));
    EXPECT_THAT(text, HasSubstr("It was: Nothing lost. nobody answers"));
    EXPECT_THAT(text, Not(HasSubstr("ok ")));
}

TEST(TopScreen, TakesWhateverADocumentIs) {
    for (
        const char* text :
        {"{}",
         R"({"run": 3, "where": 4, "losses": "x", "sources": [1], "pipeline": {"stages": {"a": 1}, "rings": 5, "levels": []}})",
         R"({"run": {}, "sources": {"label": [1, null], "lagging": "x"}, "findings": [3], "where": [null]})"})
        EXPECT_NO_THROW(static_cast<void>(top_screen(nlohmann::json::parse(text), {}))) << text;
}

}  // namespace
}  // namespace weir::app
