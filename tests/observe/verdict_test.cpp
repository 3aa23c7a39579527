// (account -> answer): nothing is called lossless that is not known to be.
#include "observe/verdict.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "set_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::EventCounter;
using weir::assemble::NumberAccount;
using weir::wire::PacketCounter;

NumberAccount::Result numbers(NumberAccount::Counting counting, std::uint64_t first, std::uint64_t last,
                              std::uint64_t missing = 0) {
    NumberAccount::Result found;
    found.counting = counting;
    found.stride = 1;
    found.first = first;
    found.last = last;
    found.missing = missing;
    found.seen = last - first + 1 - missing;
    return found;
}

/// Ten whole events of two sources, numbered 1 to 10.
Ledger whole() {
    Ledger ledger;
    ledger.received = 20;
    set(ledger, PacketCounter::placed, 20);
    for (const EventCounter counter : {EventCounter::opened, EventCounter::complete, EventCounter::written})
        set(ledger, counter, 10);
    ledger.sources = {{10, 0}, {10, 0}};
    ledger.sources_needed = 2;
    ledger.numbers.emplace();
    ledger.numbers->run.epochs = {numbers(NumberAccount::Counting::counted, 1, 10)};
    return ledger;
}

struct VerdictCase {
    const char* name;
    std::function<void(Ledger&)> change;
    Lossless lossless;
    const char* words;
    Expectation expected = {};
};

const VerdictCase verdict_cases[] = {
    {"whole", [](Ledger&) {}, Lossless::yes, "all 10 events from number 1 to 10"},
    {"as many as sent", [](Ledger&) {}, Lossless::yes, "as many events came", {10, "--expect-events"}},
    {"fewer than sent", [](Ledger&) {}, Lossless::no, "2 of the 12 events that were sent", {12, "--expect-events"}},
    {"more than sent", [](Ledger&) {}, Lossless::unknown, "more than the 9", {9, "--expect-events"}},
    {"a packet found no place", [](Ledger& l) { set(l, PacketCounter::late, 1); }, Lossless::no, "1 packet came"},
    {"a damaged packet", [](Ledger& l) { set(l, PacketCounter::malformed_header, 2); }, Lossless::no, "2 packets came"},
    {"a repeated packet", [](Ledger& l) { set(l, PacketCounter::duplicate, 2); }, Lossless::yes, "all 10"},
    {"the device dropped",
     [](Ledger& l) {
         l.device_missed = 3;
         l.numbers.reset();
     },
     Lossless::no, "the device dropped 3 packets"},
    {"the device dropped what was in a gap",
     [](Ledger& l) {
         l.device_missed = 3;
         l.numbers->run.epochs = {numbers(NumberAccount::Counting::counted, 1, 11, 1)};
     },
     Lossless::no, "the device dropped 3 packets"},
    {"the device dropped packets of others", [](Ledger& l) { l.device_missed = 3; }, Lossless::yes,
     "the device says it dropped 3 packets, but none of a stream is missing"},
    {"the device dropped packets of others, says each packet's number",
     [](Ledger& l) {
         l.device_missed = 3;
         l.all_sequenced = l.sequence_known = true;
         l.numbers.reset();
     },
     Lossless::yes, "the device says it dropped 3 packets, but none of a stream is missing"},
    {"packets whose number is a guess",
     [](Ledger& l) { l.sources[1].missing_packets = l.sources[1].missing_guessed = 4; }, Lossless::no,
     "about 4 packets never came"},
    {"cut off by the beginning",
     [](Ledger& l) {
         set(l, EventCounter::incomplete_timeout, 1);
         l.missing_at_start = l.sources[0].missing_packets = 2;
         l.cut_at_start = 1;
     },
     Lossless::unknown, "the run began in the middle of 1 event"},
    {"packets missing", [](Ledger& l) { l.sources[1].missing_packets = 4; }, Lossless::no, "4 packets never came"},
    {"an incomplete event", [](Ledger& l) { set(l, EventCounter::incomplete_timeout, 1); }, Lossless::no, "1 event is"},
    {"cut off by the end",
     [](Ledger& l) {
         set(l, EventCounter::incomplete_end_of_run, 2);
         l.cut_at_end = 2;
         l.missing_at_end = l.sources[0].missing_packets = 5;
     },
     Lossless::unknown, "may not have been sent yet"},
    {"a capture that could not be read to its end",
     [](Ledger& l) { l.capture = Ledger::Capture{.unread = {"c.pcap: cut off"}}; }, Lossless::unknown,
     "c.pcap: cut off"},
    {"what was open there",
     [](Ledger& l) {
         l.capture = Ledger::Capture{.unread = {"c.pcap: cut off"}, .cut_events = 2};
         l.cut_at_end = 2;
         set(l, EventCounter::incomplete_end_of_run, 1);
         set(l, EventCounter::incomplete_timeout, 1);
         l.missing_at_end = l.sources[0].missing_packets = 5;
     },
     Lossless::unknown, "the end of what could be read cut 2 events off"},
    {"a loss before it",
     [](Ledger& l) {
         l.capture = Ledger::Capture{.unread = {"c.pcap: cut off"}, .cut_events = 2};
         l.cut_at_end = 2;
         set(l, EventCounter::incomplete_timeout, 3);
     },
     Lossless::no, "c.pcap: cut off"},
    {"other interfaces, and nothing is missing",
     [](Ledger& l) { l.capture = Ledger::Capture{.other_link = 9, .unread = {}}; }, Lossless::yes, "all 10"},
    {"what is missing may be on other interfaces",
     [](Ledger& l) {
         l.capture = Ledger::Capture{.other_link = 1, .unread = {}};
         l.sources[1].missing_packets = 4;
     },
     Lossless::unknown, "1 packet of the capture's other interfaces was not read"},
    {"cut off, and lost besides",
     [](Ledger& l) {
         set(l, EventCounter::incomplete_end_of_run, 2);
         set(l, EventCounter::incomplete_timeout, 1);
         l.cut_at_end = 2;
         l.missing_at_end = 5;
         l.sources[0].missing_packets = 8;
     },
     Lossless::no, "3 packets never came"},
    {"a reducer failed", [](Ledger& l) { set(l, EventCounter::dropped_reduce_error, 1); }, Lossless::no, "not written"},
    {"whole events missing",
     [](Ledger& l) { l.numbers->run.epochs = {numbers(NumberAccount::Counting::counted, 1, 12, 2)}; }, Lossless::no,
     "2 events never came at all"},
    {"sparse numbers", [](Ledger& l) { l.numbers->run.epochs = {numbers(NumberAccount::Counting::sparse, 1, 10)}; },
     Lossless::unknown, "fixed stride"},
    {"sparse numbers, and the sender's count",
     [](Ledger& l) { l.numbers->run.epochs = {numbers(NumberAccount::Counting::sparse, 1, 10)}; },
     Lossless::yes,
     "as many events",
     {10, "r.json"}},
    {"numbers of arrival", [](Ledger& l) { l.numbers->of_arrival = true; }, Lossless::unknown, "as they come"},
    {"numbers of arrival, and sequence numbers",
     [](Ledger& l) {
         l.numbers->of_arrival = true;
         l.all_sequenced = true;
     },
     Lossless::yes, "sequence number"},
    {"a jump", [](Ledger& l) { l.numbers->run.epochs[0].jumps = 1; }, Lossless::unknown, "jump"},
    {"numbers that could not be followed", [](Ledger& l) { l.numbers->run.unlogged = 7; }, Lossless::unknown,
     "7 event"},
    {"nothing follows the numbers", [](Ledger& l) { l.numbers.reset(); }, Lossless::unknown, "nothing shows"},
    {"not every source is needed", [](Ledger& l) { l.sources_needed = 1; }, Lossless::unknown, "1 of 2 sources"},
    {"only other senders",
     [](Ledger& l) {
         l = Ledger();
         l.received = 5;
         set(l, PacketCounter::unsteered, 5);
     },
     Lossless::unknown, "5 packets came, none of them"},
    {"nothing at all", [](Ledger& l) { l = Ledger(); }, Lossless::unknown, "no packet came"},
    {"nothing at all of what was sent", [](Ledger& l) { l = Ledger(); }, Lossless::no, "5 of the 5 events", {5, "r"}},
};

TEST(Verdict, SaysWhatIsKnown) {
    for (const VerdictCase& c : verdict_cases) {
        SCOPED_TRACE(c.name);
        Ledger ledger = whole();
        c.change(ledger);
        const Verdict verdict = judge(ledger, c.expected);
        EXPECT_EQ(name_of(verdict.lossless), name_of(c.lossless));
        ASSERT_FALSE(verdict.evidence.empty());
        const std::string text = verdict_text(verdict);
        EXPECT_NE(text.find(c.words), std::string::npos) << text;
        EXPECT_EQ(verdict.came, ledger.received > 0 && ledger.get(PacketCounter::placed) > 0);
        nlohmann::json report;
        put_verdict(report, verdict);
        EXPECT_EQ(report["lossless"], name_of(c.lossless));
        EXPECT_EQ(report["evidence"].size(), verdict.evidence.size());
    }
}

TEST(Expectation, ReportsOfSeveralSendersAddUpOnce) {
    const std::string base = testing::TempDir() + "weir-sent-";
    const auto write = [&](const char* name, const char* text) {
        std::ofstream(base + name) << text;
        return base + name;
    };
    const std::string a = write("a", R"({"events": {"first": 1, "sent": 10}})");
    const std::string b = write("b", R"({"events": {"first": 6, "sent": 10}})");
    const std::string wrong = write("c", R"({"events": 5})");
    EXPECT_EQ(Expectation::of_reports({a}).events, 10U);
    EXPECT_EQ(Expectation::of_reports({b, a}).events, 15U);
    EXPECT_THROW((void)Expectation::of_reports({wrong}), weir::core::UsageError);
    EXPECT_THROW((void)Expectation::of_reports({base + "none"}), weir::core::UsageError);
    for (const char* name : {"a", "b", "c"}) std::remove((base + name).c_str());
}

}  // namespace
