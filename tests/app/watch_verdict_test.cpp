#include "watch_verdict.hpp"

#include <gtest/gtest.h>

#include "watch_numbers.hpp"
#include "watched.hpp"

namespace weir::app {
namespace {

using Level = WatchVerdict::Level;

TEST(WatchVerdict, NothingLostNeedsAllPlaces) {
    nlohmann::json document = watched_run();
    EXPECT_EQ(watch_verdict(document).level, Level::ok);
    EXPECT_EQ(watch_verdict(document).headline, "Nothing lost");
    for (std::size_t place = 0; place < 4; ++place) {
        nlohmann::json other = document;
        other["where"][place]["packets"] = nullptr;
        EXPECT_EQ(watch_verdict(other).level, Level::unknown);
        other["where"][place]["packets"] = 1;
        EXPECT_EQ(watch_verdict(other).level, Level::lost);
    }
    document["where"] = nlohmann::json::array();
    EXPECT_EQ(watch_verdict(document).level, Level::unknown);
    document.erase("where");
    EXPECT_EQ(watch_verdict(document).level, Level::unknown);
}

TEST(WatchVerdict, TheLargestLossOfNowIsTheHeadline) {
    nlohmann::json document = watched_run();
    document["losses"] = {{{"cause", "queue_full"}, {"packets", 900}, {"place", "weir"}, {"per_s", 1.5}},
                          {{"cause", "missing"}, {"packets", 10}, {"place", "way"}, {"per_s", 12}}};
    WatchVerdict verdict = watch_verdict(document);
    EXPECT_EQ(verdict.level, Level::losing);
    EXPECT_EQ(verdict.headline, "Losing data: 12 packets/s missing, on the way");
    EXPECT_EQ(verdict.detail, "Also 1.5 packets/s queue full, in weir.");
    for (nlohmann::json& loss : document["losses"]) loss["per_s"] = 0;
    verdict = watch_verdict(document);
    EXPECT_EQ(verdict.level, Level::lost);
    EXPECT_EQ(verdict.headline, "Lost in this run: 900 packets queue full, in weir");
}

TEST(WatchVerdict, ADeviceIsTheCardOrTheKernelInFrontOfIt) {
    nlohmann::json document = watched_run();
    document["losses"] = {{{"cause", "device"}, {"packets", 9}, {"place", "device"}, {"per_s", 0}}};
    document["where"][1]["packets"] = 9;
    EXPECT_EQ(watch_verdict(document).headline, "Lost in this run: 9 packets dropped by the device, in the NIC");
    document["where"][1]["packets"] = 0;
    document["where"][2]["packets"] = 9;
    EXPECT_EQ(watch_verdict(document).headline, "Lost in this run: 9 packets dropped by the device, in the kernel");
}

TEST(WatchVerdict, ASinkThatFailsLosesData) {
    nlohmann::json document = watched_run();
    document["pipeline"]["sinks"][0]["error"] = "No space left on device";
    document["pipeline"]["sinks"][0]["lost"] = 1;
    EXPECT_EQ(watch_verdict(document).headline, "Losing data: 1 event not written, in the sink events");
    EXPECT_EQ(watch_verdict(document).detail, "No space left on device");
}

/// It said "No run", where the page named the lost blocks.
TEST(WatchVerdict, ANodeThatManagesSaysWhatIsLost) {
    nlohmann::json document{{"status", {{"state", "running"}, {"error", ""}}}, {"run", nullptr}};
    document["cluster"] = {{"nodes", {{{"name", "ru0"}, {"up", true}}, {{"name", "bu0"}, {"up", false}}}},
                           {"lost_blocks", {{"builder_down", 1}, {"nothing_held", 1}}},
                           {"manager", {{"manages", true}, {"assigned", 20}, {"assigned_again", 0}}}};
    WatchVerdict verdict = watch_verdict(document);
    EXPECT_EQ(verdict.level, Level::lost);
    EXPECT_EQ(verdict.headline, "2 blocks lost whole");
    EXPECT_EQ(verdict.detail, "20 blocks given out.");
    document["cluster"]["lost_blocks"] = {{"builder_down", 0}, {"nothing_held", 0}};
    EXPECT_EQ(watch_verdict(document).headline, "Not here: bu0");
    document["cluster"]["nodes"][1]["spare"] = true;
    EXPECT_EQ(watch_verdict(document).headline, "No node is missing, and this one manages");
    document["cluster"]["nodes"][1] = {{"name", "bu0"}, {"up", true}, {"spare", false}};
    EXPECT_EQ(watch_verdict(document).headline, "No node is missing, and this one manages");
    document["status"]["error"] = "no network";
    EXPECT_EQ(watch_verdict(document).headline, "No run: no network");
}

TEST(WatchVerdict, WhatNeverCameIsNoGoodNews) {
    nlohmann::json document = watched_run();
    document["ledger"]["packets"]["received"] = 0;
    EXPECT_EQ(watch_verdict(document).headline, "Nothing has come yet");
    document["run"] = nullptr;
    EXPECT_EQ(watch_verdict(document).level, Level::idle);
    EXPECT_EQ(watch_verdict(document).detail, "Run 6 before: 100 events; no packet lost.");
    nlohmann::json& run = document["runs"][0];
    run.update({{"lossless", "unknown"}, {"stop_reason", "config/events"}});
    EXPECT_EQ(watch_verdict(document).detail,
              "Run 6 before: 100 events, ended by config/events; whether packets were lost is not known.");
    run.update({{"lossless", "no"}, {"stop_reason", ""}, {"missing_packets", 7}});  // the device dropped them
    EXPECT_EQ(watch_verdict(document).detail, "Run 6 before: 100 events; 0 packets lost in weir, 7 missing.");
    run["missing_packets"] = 0;
    EXPECT_EQ(watch_verdict(document).detail, "Run 6 before: 100 events; data was lost.");
    document["status"]["error"] = "the disk is full";
    EXPECT_EQ(watch_verdict(document).headline, "No run: the disk is full");
}

TEST(WatchVerdict, WordsCannotChangeATerminal) {
    nlohmann::json document = watched_run();
    document["name"] = "a\x1b[2Jb\x7f\n";
    EXPECT_EQ(watch_words(document, "/name"), "a?[2Jb? ");
    EXPECT_EQ(watch_words(document, "/nothing/there"), "");
}

TEST(WatchNumbers, AsThePageWritesThem) {
    EXPECT_EQ(watch_count(1234567), "1,234,567");
    EXPECT_EQ(watch_count(123), "123");
    EXPECT_EQ(watch_count(nullptr), "unknown");
    EXPECT_EQ(watch_rate(401812.4, "packets/s"), "402 k packets/s");
    EXPECT_EQ(watch_rate(3139.2, "events/s"), "3,139 events/s");
    EXPECT_EQ(watch_rate(12.0, ""), "12");
    EXPECT_EQ(watch_rate(999900, ""), "1 M");
    EXPECT_EQ(watch_bytes(391873204224), "392 GB");
    EXPECT_EQ(watch_bytes(12), "12 B");
    EXPECT_EQ(watch_percent(0.001), "< 1 %");
    EXPECT_EQ(watch_percent(0.513), "51 %");
    EXPECT_EQ(watch_duration(200.4), "3 min 20 s");
    EXPECT_EQ(watch_duration(0.0003), "300 us");
    EXPECT_EQ(watch_duration(7.41 * 3600), "7 h 24 min");
}

}  // namespace
}  // namespace weir::app
