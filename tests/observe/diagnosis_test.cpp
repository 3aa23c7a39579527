// (counters -> sentence): what a run would say, without a run.
#include "observe/diagnosis.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "assemble/counters.hpp"
#include "observe/counter_sections.hpp"
#include "set_counter.hpp"
#include "source_root.hpp"
#include "wire/packet_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::EventCounter;
using weir::wire::PacketCounter;

struct Case {
    const char* name;
    std::function<void(Ledger&, Observations&)> change;
    std::vector<const char*> words;  ///< all in the sentence
    const char* counter;
    std::uint64_t packets;
    const char* section;
};

/// Three sources that sent everything.
void healthy(Ledger& ledger, Observations& seen) {
    ledger.received = 3000;
    set(ledger, PacketCounter::placed, 3000);
    set(ledger, EventCounter::complete, 10);
    ledger.sources = {{1000, 0}, {1000, 0}, {1000, 0}};
    seen.timeout_ms = 200;
    seen.open_limit = "window";
    seen.open_max = 64;
    seen.sources = {{"det0 udp 50001", 0}, {"det0 udp 50002", 0}, {"det0 udp 50003", 0}};
    seen.ports = {{"det0", "net_af_packet", 0, 0}};
    ledger.devices = {{"det0", "net_af_packet", 3000, 0, 0}};
}

const Case cases[] = {
    {"nothing came",
     [](Ledger& l, Observations&) {
         l = Ledger();
         l.sources.resize(3);
     },
     {"no packet came at all", "detector is off", "the link is up"},
     "device.received",
     0,
     "nothing-came"},
    {"nothing came, and there is no link",
     [](Ledger& l, Observations& o) {
         l = Ledger();
         l.sources.resize(3);
         o.ports.at(0).link_up = false;
     },
     {"no packet came at all: the link of port det0 is down"},
     "device.received",
     0,
     "nothing-came"},
    {"an empty capture",
     [](Ledger& l, Observations& o) {
         l = Ledger();
         o.replay = true;
     },
     {"the capture has no packet"},
     "device.received",
     0,
     "nothing-came"},
    {"nothing for a stream",
     [](Ledger& l, Observations&) {
         l.sources = {{0, 0}, {0, 0}, {0, 0}};
         set(l, PacketCounter::placed, 0);
         set(l, PacketCounter::unsteered, 3000);
         l.unmatched.list = {{"UDP port 7 from 10.0.0.1", 2000, ""}};
     },
     {"3000 packets came, and none for a configured stream", "UDP port 7 from 10.0.0.1 (2000 packets)",
      "port det0 (net_af_packet): link up"},
     "packets.unsteered",
     0,
     "silent-source"},
    {"one source silent",
     [](Ledger& l, Observations&) {
         l.sources[1] = {0, 1000};
         set(l, EventCounter::incomplete_timeout, 10);
     },
     {"source 1 (det0 udp 50002) sent nothing", "1000 packets each"},
     "events.incomplete.timeout",
     1000,
     "silent-source"},
    {"packets of the detector that no stream wants",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::unsteered, 500);
         l.unmatched.list = {{"UDP port 50004 from 10.1.0.10", 500, "a port next to a configured one"}};
         l.unmatched.possible_losses = 500;
     },
     {"look like this detector's", "UDP port 50004 from 10.1.0.10 (500 packets; a port next to a configured one)",
      "ROUND_ROBIN"},
     "packets.unsteered",
     500,
     "unsteered"},
    {"the same packets in every event",
     [](Ledger& l, Observations& o) {
         for (int i = 0; i < 3; ++i) {
             l.sources[i].missing_packets = 640;
             o.sources[i].same_missing = 64;
             o.sources[i].message_packets = 128;
             o.sources[i].messages = 10;
             o.sources[i].setting = "`rows = 256`";
         }
         set(l, EventCounter::incomplete_timeout, 10);
     },
     {"the same 64 of 128 in every event of source 0 (det0 udp 50001) and 2 more sources", "`rows = 256` would fit"},
     "events.incomplete.timeout",
     1920,
     "same-missing"},
    {"now and then the same packets",
     [](Ledger& l, Observations& o) {
         l.sources[1].missing_packets = 640;
         o.sources[1].same_missing = 1;
         o.sources[1].message_packets = 128;
         o.sources[1].messages = 10;
         o.sources[1].other_missing = 630;
         set(l, EventCounter::incomplete_timeout, 10);
     },
     {"640 of 640 are of source 1", "cable"},
     "events.incomplete.timeout",
     640,
     "missing"},
    {"fewer sources than the streams have",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::late, 700);
         l.sources_needed = 2;
     },
     {"`[events] sources = 2`", "the streams have 3 sources", "`sources = 3` waits for all"},
     "dropped.late",
     700,
     "fewer-sources"},
    {"all packets of a source are refused",
     [](Ledger& l, Observations& o) {
         l.sources[1] = {0, 1000, 1000};
         set(l, PacketCounter::malformed_header, 1000);
         o.headers = {{"eiger (slsDetector header version 2)", 990}, {"", 10}};
     },
     {"they look like eiger (slsDetector header version 2) (990 packets)"},
     "dropped.malformed.header",
     1000,
     "geometry"},
    {"a header of the stream's own format that is newer",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_header, 60);
         o.headers = {{"ejfat (RE header version 3)", 50, true}, {"", 10}};
     },
     {"have the mark of the stream's format and a header that this version does not read: "
      "ejfat (RE header version 3) (50 packets)"},
     "dropped.malformed.header",
     60,
     "geometry"},
    {"a header that nobody knows",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_header, 5);
         o.headers = {{"", 5}};
     },
     {"nothing that weir knows"},
     "dropped.malformed.header",
     5,
     "geometry"},
    {"ids that no source has",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_source, 30);
         o.unknown_ids = {{"7", 20}, {"9", 10}};
         o.known_ids = "1, 2, 3";
     },
     {"7 (20 packets), 9 (10 packets)", "configured: 1, 2, 3"},
     "dropped.malformed.source",
     30,
     "geometry"},
    {"one source stopped",
     [](Ledger& l, Observations& o) {
         l.sources[2] = {600, 400};
         o.sources[2].silent_s = 12.5;
     },
     {"source 2", "stopped sending 12.5 s before the end"},
     "events.incomplete.timeout",
     400,
     "silent-source"},
    {"the device dropped",
     [](Ledger& l, Observations& o) {
         l.device_missed = 50;
         l.sources[0].missing_packets = 50;
         o.ports[0].missed = 50;
     },
     {"port det0 (net_af_packet)", "queue was full"},
     "device.missed",
     50,
     "device"},
    {"the device dropped in a pause",
     [](Ledger& l, Observations& o) {
         l.device_missed = 50;
         o.ports[0].missed = 50;
         o.ports[0].pause_s = 0.0723;
         o.ports[0].pause_after_s = 1.5;
     },
     {"queue was full", "longest pause was 72.3 ms, 1.500 s after the first packet"},
     "device.missed",
     50,
     "device"},
    {"no buffer",
     [](Ledger& l, Observations& o) {
         l.device_missed = 50;
         o.ports[0].no_buffer = 50;
     },
     {"no free packet buffer"},
     "device.no_buffer",
     50,
     "device"},
    {"one source loses",
     [](Ledger& l, Observations&) { l.sources[1].missing_packets = 30; },
     {"never came", "30 of 30 are of source 1", "cable"},
     "events.incomplete.timeout",
     30,
     "missing"},
    {"one packet is no pattern",
     [](Ledger& l, Observations&) { l.sources[1].missing_packets = 1; },
     {"packet never came: 1 of source 1 (det0 udp 50002); too few to show a pattern"},
     "events.incomplete.timeout",
     1,
     "missing"},
    {"a source stops",
     [](Ledger& l, Observations&) {
         l.sources[1].missing_packets = 300;
         l.sources[1].ends.stopped = {300, 300, 1'790'000'000'039'803'000, 1'790'000'000'000'000'000, 4711};
     },
     {"source 1 (det0 udp 50002) stopped sending", "the last 300 events", "2026-09-21", "0.040 s after", "event 4711"},
     "events.incomplete.timeout",
     300,
     "silent-source"},
    {"events are not whole, and nothing says why",
     [](Ledger& l, Observations&) { set(l, EventCounter::incomplete_timeout, 2); },
     {"2 events are not whole"},
     "events.incomplete.timeout",
     0,
     "missing"},
    {"all sources lose together",
     [](Ledger& l, Observations&) {
         for (auto& source : l.sources) source.missing_packets = 10;
         l.missing_together = 30;
     },
     {"every source misses some", "what they share", "the device reports no loss"},
     "events.incomplete.timeout",
     30,
     "missing"},
    {"scattered loss",
     [](Ledger& l, Observations&) {
         for (auto& source : l.sources) source.missing_packets = 10;
     },
     {"without a pattern"},
     "events.incomplete.timeout",
     30,
     "missing"},
    {"the only source loses",
     [](Ledger& l, Observations&) {
         l.sources = {{100, 5}};
     },
     {"the only source has gaps"},
     "events.incomplete.timeout",
     5,
     "missing"},
    {"late beyond the time-out",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::late, 40);
         set(l, EventCounter::incomplete_timeout, 4);
         l.sources[2].missing_packets = 40;
     },
     {"4 events timed out after 200 ms", "nearly all of source 2", "lags behind"},
     "dropped.late",
     40,
     "late"},
    {"late because of evictions",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::late, 40);
         set(l, EventCounter::incomplete_evicted, 9);
         l.sources[2].missing_packets = 40;
     },
     {"9 events had been evicted", "limit: window; 64 open"},
     "dropped.late",
     40,
     "evicted"},
    {"evictions",
     [](Ledger& l, Observations&) {
         set(l, EventCounter::incomplete_evicted, 9);
         l.sources[2].missing_packets = 90;
     },
     {"9 events were evicted", "limit: window", "events begin faster than they become whole"},
     "events.incomplete.evicted",
     90,
     "evicted"},
    {"slow disk",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::no_room, 70);
         o.queued_max = 1;
         o.writer_max = 1;
     },
     {"the disk was slower"},
     "dropped.no_room",
     70,
     "no-room"},
    {"slow reducer",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::no_room, 70);
         o.queued_max = 1;
         o.reducer = true;
     },
     {"the reducer was slower"},
     "dropped.no_room",
     70,
     "no-room"},
    {"incomplete events hold memory",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::no_room, 70);
         set(l, EventCounter::incomplete_timeout, 3);
     },
     {"held the memory until they timed out after 200 ms"},
     "dropped.no_room",
     70,
     "no-room"},
    {"wrong geometry",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_payload_length, 80);
         o.wrong_lengths = {{"4144 bytes in a stream of jungfrau", 80}};
     },
     {"payload of the wrong length", "4144 bytes in a stream of jungfrau (80 packets)"},
     "dropped.malformed.payload_length",
     80,
     "geometry"},
    {"a stamp far ahead",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::late, 70);
         set(l, EventCounter::incomplete_timeout, 3);
         o.replay = true;
         o.stamps_ran_back_s = 160;
     },
     {"run back by up to 160.0 s", "a clock was set"},
     "dropped.late",
     70,
     "late"},
    {"datagrams below the MTU as one",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_payload_length, 80);
         o.wrong_lengths = {{"4160 bytes in a stream of mine", 80}};
         o.merged = {{"4160 bytes = 4 x 1040 in a stream of mine", 80}};
     },
     {"GRO, LRO or GSO", "4160 bytes = 4 x 1040 in a stream of mine (80 packets)", "ethtool -K DEV gro off lro off"},
     "dropped.malformed.payload_length",
     80,
     "merged"},
    {"af_packet cuts",
     [](Ledger& l, Observations&) { set(l, PacketCounter::malformed_ip_length, 9); },
     {"`framesz`"},
     "dropped.malformed.ip_length",
     9,
     "cut-frames"},
    {"a short snap length",
     [](Ledger& l, Observations& o) {
         set(l, PacketCounter::malformed_truncated, 9);
         o.replay = true;
         o.ports.clear();
     },
     {"snap length"},
     "dropped.malformed.truncated",
     9,
     "cut-frames"},
    {"iCRC never right",
     [](Ledger& l, Observations&) {
         set(l, PacketCounter::placed, 0);
         set(l, PacketCounter::malformed_bad_icrc, 9);
     },
     {"none a right one"},
     "dropped.malformed.bad_icrc",
     9,
     "icrc"},
    {"bit errors",
     [](Ledger& l, Observations&) { set(l, PacketCounter::malformed_bad_icrc, 2); },
     {"against 3000 good ones"},
     "dropped.malformed.bad_icrc",
     2,
     "icrc"},
    {"a broken sink",
     [](Ledger& l, Observations&) { set(l, EventCounter::dropped_write_error, 2); },
     {"2 events that could not be written"},
     "events.dropped.write_error",
     600,
     "write-error"},
    {"a stream that nobody takes",
     [](Ledger& l, Observations&) { set(l, EventCounter::dropped_not_taken, 2); },
     {"2 events that did not get to where they were sent"},
     "events.dropped.not_taken",
     600,
     "not-taken"},
    {"a counter without a rule",
     [](Ledger& l, Observations&) { set(l, PacketCounter::too_fragmented, 7); },
     {"too_fragmented", "more separate pieces"},
     "dropped.too_fragmented",
     7,
     ""},
};

TEST(Diagnosis, NamesTheCauseOfEachLossAndWhereToReadOn) {
    std::ifstream file(weir::test::source_root() / "docs/guides/LOSSES.md");
    std::ostringstream page;
    page << file.rdbuf();
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        Ledger ledger;
        Observations seen;
        healthy(ledger, seen);
        one.change(ledger, seen);
        const std::vector<weir::pipeline::Finding> findings = diagnose(ledger, seen);
        ASSERT_FALSE(findings.empty());
        EXPECT_EQ(findings.size(), 1u) << findings_text(findings);
        const weir::pipeline::Finding& first = findings.front();
        for (const char* word : one.words)
            EXPECT_NE(first.sentence.find(word), std::string::npos) << word << ": " << first.sentence;
        EXPECT_EQ(first.counter, one.counter);
        EXPECT_EQ(first.packets, one.packets);
        EXPECT_TRUE(first.loss || first.possible);
        EXPECT_FALSE(weir::observe::find_counters(first.counter).empty()) << first.counter;
        const std::string section = one.section;
        EXPECT_EQ(first.page, section.empty() ? "docs/reference/COUNTERS.md" : "docs/guides/LOSSES.md#" + section);
        if (!section.empty()) {
            EXPECT_NE(page.str().find("\n## " + section + "\n"), std::string::npos) << section;
        }
    }
}

// Who holds the places of events: a source that is not there, or the disk, whoever is missing besides.
TEST(Diagnosis, DoesNotBlameOverloadOnASource) {
    Ledger ledger;
    Observations seen;
    healthy(ledger, seen);
    ledger.sources[1] = {0, 0};
    set(ledger, EventCounter::incomplete_evicted, 9);
    EXPECT_NE(diagnose(ledger, seen).back().sentence.find("they waited for source 1 (det0 udp 50002)"),
              std::string::npos);
    seen.writer_max = 1;
    const std::string sentence = diagnose(ledger, seen).back().sentence;
    EXPECT_NE(sentence.find("the disk was slower"), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("source"), std::string::npos) << sentence;
}

TEST(Diagnosis, TellsOtherTrafficFromPossibleLosses) {
    Ledger ledger;
    Observations seen;
    healthy(ledger, seen);
    set(ledger, PacketCounter::unsteered, 512);
    ledger.unmatched.list = {{"UDP port 50004 from 10.1.0.10", 500, "reads as jungfrau"},
                             {"UDP port 5353 from 10.1.0.1", 12, ""}};
    ledger.unmatched.possible_losses = 500;
    const std::vector<weir::pipeline::Finding> findings = diagnose(ledger, seen);
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_TRUE(findings[0].possible && !findings[0].loss);
    EXPECT_EQ(findings[1].packets, 12U);
    EXPECT_NE(findings[1].sentence.find("UDP port 5353 from 10.1.0.1 (12 packets): other traffic"), std::string::npos);
    const std::string text = findings_text(findings);
    EXPECT_EQ(text.rfind("lost?     500: ", 0), 0U) << text;
    EXPECT_EQ(text.find("nothing"), std::string::npos) << text;
}

TEST(Diagnosis, SaysNothingWhenEverythingCame) {
    Ledger ledger;
    Observations seen;
    healthy(ledger, seen);
    EXPECT_TRUE(diagnose(ledger, seen).empty());
    EXPECT_EQ(weir::pipeline::findings_text({}), "");
}

TEST(Diagnosis, OrdersByPacketsAndPutsRemarksLast) {
    Ledger ledger;
    Observations seen;
    healthy(ledger, seen);
    set(ledger, PacketCounter::duplicate, 5000);
    set(ledger, PacketCounter::unbound, 10);
    set(ledger, PacketCounter::conflict, 20);
    set(ledger, PacketCounter::malformed_header, 15);
    const std::vector<weir::pipeline::Finding> findings = diagnose(ledger, seen);
    std::vector<std::uint64_t> packets;
    for (const weir::pipeline::Finding& finding : findings) packets.push_back(finding.packets);
    EXPECT_EQ(packets, (std::vector<std::uint64_t>{20, 15, 10, 5000}));
    EXPECT_FALSE(findings.back().loss);
}

// A packet that came and found no place is missing in its event, and is told once.
TEST(Diagnosis, CountsNoPacketTwice) {
    Ledger ledger;
    Observations seen;
    healthy(ledger, seen);
    set(ledger, PacketCounter::malformed_bad_icrc, 30);
    ledger.sources[0].missing_packets = 40;
    const std::vector<weir::pipeline::Finding> findings = diagnose(ledger, seen);
    ASSERT_EQ(findings.size(), 2u);
    EXPECT_EQ(findings[0].packets, 30u);
    EXPECT_EQ(findings[1].packets, 10u);
}

/// The names under which a page's sections can be linked to.
std::set<std::string> anchors_of(const std::string& page) {
    std::ifstream file(weir::test::source_root() / page);
    std::set<std::string> anchors;
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("## ")) continue;
        std::string anchor = line.substr(3);
        for (char& c : anchor) c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        anchors.insert(anchor);
    }
    return anchors;
}

TEST(Diagnosis, EveryPageThatACounterNamesExists) {
    for (const auto& section : weir::observe::counter_sections())
        for (const weir::core::CounterInfo& info : section.counters) {
            const std::string name = std::string(section.name) + "." + std::string(info.name);
            const std::string where = weir::observe::counter_page(name);
            const std::size_t hash = where.find('#');
            if (hash != std::string::npos) {
                EXPECT_TRUE(anchors_of(where.substr(0, hash)).contains(where.substr(hash + 1)))
                    << name << ": " << where;
            }
        }
}

}  // namespace
