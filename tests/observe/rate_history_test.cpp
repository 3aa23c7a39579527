// The last minutes of a run, second by second.
#include "observe/rate_history.hpp"

#include <gtest/gtest.h>

#include "set_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::EventCounter;
using weir::wire::PacketCounter;

TEST(RateHistory, HasAPointPerSecondWithTheRatesOfThatSecond) {
    RateHistory history;
    Ledger ledger;
    for (int tenth = 0; tenth <= 30; ++tenth) {
        ledger.received = static_cast<std::uint64_t>(tenth) * 100;
        ledger.received_bytes = ledger.received * 1000;
        set(ledger, EventCounter::complete, static_cast<std::uint64_t>(tenth));
        history.look(ledger, 0.1 * tenth + 1e-9 * tenth);
    }
    const auto& json = history.json();
    ASSERT_EQ(json["time_s"].size(), 3U);
    EXPECT_EQ(json["step_s"], 1);
    EXPECT_NEAR(json["time_s"][0].get<double>(), 1, 1e-6);
    for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(json["packets_per_s"][i].get<double>(), 1000, 1e-3);
        EXPECT_NEAR(json["gbps"][i].get<double>(), 0.008, 1e-6);
        EXPECT_NEAR(json["events_per_s"][i].get<double>(), 10, 1e-3);
    }
    EXPECT_TRUE(json["lost_per_s"].empty());
}

TEST(RateHistory, HasLossesByCauseAsLongAsTheOthers) {
    RateHistory history;
    Ledger ledger;
    history.look(ledger, 0);
    history.look(ledger, 1);
    set(ledger, PacketCounter::late, 30);
    history.look(ledger, 3);
    ledger.sources = {{0, 38}};  // those that came late among them
    history.look(ledger, 4);
    ledger.sources = {{0, 32}};  // some of them came after all
    history.look(ledger, 5);
    const auto& lost = history.json()["lost_per_s"];
    EXPECT_EQ(lost["late"], (nlohmann::json{0.0, 15.0, 0.0, 0.0}));
    EXPECT_EQ(lost["missing"], (nlohmann::json{0.0, 0.0, 8.0, 0.0}));
}

TEST(RateHistory, ForgetsWhatIsOlderThanFiveMinutes) {
    RateHistory history;
    Ledger ledger;
    set(ledger, PacketCounter::late, 1);
    history.look({}, 0);
    for (int i = 1; i <= 400; ++i) history.look(ledger, i);
    EXPECT_EQ(history.json()["time_s"].size(), RateHistory::points_max);
    EXPECT_EQ(history.json()["time_s"][0], 101);
    EXPECT_TRUE(history.json()["lost_per_s"].empty()) << "the loss is longer ago";
}

}  // namespace
