#include "observe/counter_sections.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "assemble/counters.hpp"
#include "source_root.hpp"
#include "wire/packet_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::event_counters;
using weir::assemble::EventCounter;
using weir::core::CounterInfo;
using weir::wire::packet_counters;
using weir::wire::PacketCounter;

void expect_names_unique_and_texts_useful(std::span<const CounterInfo> table) {
    std::set<std::string_view> names;
    for (const CounterInfo& info : table) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name << " appears twice";
        EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."), std::string_view::npos)
            << info.name;
        EXPECT_TRUE(info.help.ends_with('.')) << info.name << ": the text is made of sentences";
        // Everything that can be a loss tells what to do, which takes more than one sentence.
        if (info.place != weir::core::Place::none || info.fate == weir::core::Fate::partial) {
            EXPECT_GT(info.help.size(), 80u) << info.name;
        }
    }
}

TEST(Counters, HaveUniqueNamesAndUsefulTexts) {
    for (const CounterSection& section : counter_sections()) {
        SCOPED_TRACE(section.name);
        expect_names_unique_and_texts_useful(section.counters);
    }
}

// Names that others script against; the table is indexed by the enumeration.
TEST(Counters, CarryTheNamesOfTheReport) {
    const auto packet = [](PacketCounter c) { return packet_counters[static_cast<std::size_t>(c)].name; };
    EXPECT_EQ(packet(PacketCounter::in_flight), "in_flight");
    EXPECT_EQ(packet(PacketCounter::placed), "placed");
    EXPECT_EQ(packet(PacketCounter::control), "control");
    EXPECT_EQ(packet(PacketCounter::unsteered), "unsteered");
    EXPECT_EQ(packet(PacketCounter::not_for_us_arp), "not_for_us.arp");
    EXPECT_EQ(packet(PacketCounter::malformed_bad_icrc), "dropped.malformed.bad_icrc");
    EXPECT_EQ(packet(PacketCounter::duplicate), "dropped.duplicate");
    EXPECT_EQ(packet(PacketCounter::late), "dropped.late");
    EXPECT_EQ(packet(PacketCounter::ring_full_capture), "dropped.ring_full.capture");
    EXPECT_EQ(packet(PacketCounter::unbound), "dropped.unbound");
    const auto event = [](EventCounter c) { return event_counters[static_cast<std::size_t>(c)].name; };
    EXPECT_EQ(event(EventCounter::opened), "opened");
    EXPECT_EQ(event(EventCounter::incomplete_timeout), "incomplete.timeout");
    EXPECT_EQ(event(EventCounter::dropped_write_error), "dropped.write_error");
    EXPECT_EQ(event(EventCounter::written), "written");
}

TEST(Counters, EveryPacketCounterHasAPlaceInTheReport) {
    for (const CounterInfo& info : packet_counters) {
        const bool top = info.name.find('.') == std::string_view::npos;
        EXPECT_TRUE(top || info.name.starts_with("not_for_us.") || info.name.starts_with("dropped.")) << info.name;
    }
}

TEST(Counters, FindAllOfOneName) {
    EXPECT_EQ(find_counters("dropped.no_room").size(), 2u);
    EXPECT_EQ(find_counters("no_room").size(), 2u);
    EXPECT_EQ(find_counters("malformed.bad_icrc").size(), 1u);
    EXPECT_EQ(find_counters("malformed.bad_icrc")[0].full_name, "packets.dropped.malformed.bad_icrc");
    EXPECT_EQ(find_counters("events.dropped.no_room").size(), 1u);
    EXPECT_EQ(find_counters("events.dropped.no_room")[0].info,
              &weir::assemble::event_counters[static_cast<std::size_t>(EventCounter::dropped_no_room)]);
    // What is no whole name, or not of that section.
    for (const char* name :
         {"", ".", "place", "packets.", "packets.opened", "events.placed", "messages.written", "dropped"})
        EXPECT_TRUE(find_counters(name).empty()) << name;
    EXPECT_TRUE(find_counters("nothing").empty());
}

TEST(Counters, DocumentationIsWhatTheTableMakes) {
    const std::string path = weir::test::source_root() / "docs/reference/COUNTERS.md";
    std::ifstream file(path);
    ASSERT_TRUE(file) << path << " is missing";
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(text.str() == counters_markdown())
        << path << " is stale: write the output of `build/app/weir explain --markdown` to it, and commit it";
}

}  // namespace
