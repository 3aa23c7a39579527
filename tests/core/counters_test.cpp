#include "core/counters.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/counters_text.hpp"

namespace {

using namespace weir::core;

template <class Table>
void expect_names_unique_and_texts_useful(const Table& table) {
    std::set<std::string_view> names;
    for (const CounterInfo& info : table) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name << " appears twice";
        EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."), std::string_view::npos)
            << info.name;
        EXPECT_TRUE(info.help.ends_with('.')) << info.name << ": the text is made of sentences";
        // Everything that can be a loss tells what to do, which takes more than one sentence.
        if (info.name.starts_with("dropped.") || info.name.starts_with("incomplete.")) {
            EXPECT_GT(info.help.size(), 80u) << info.name;
        }
    }
}

TEST(Counters, have_unique_names_and_useful_texts) {
    expect_names_unique_and_texts_useful(packet_counters);
    expect_names_unique_and_texts_useful(message_counters);
    expect_names_unique_and_texts_useful(event_counters);
}

// Names that others script against; the table is indexed by the enumeration.
TEST(Counters, carry_the_names_of_the_report) {
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

TEST(Counters, every_packet_counter_has_a_place_in_the_report) {
    for (const CounterInfo& info : packet_counters) {
        const bool top = info.name.find('.') == std::string_view::npos;
        EXPECT_TRUE(top || info.name.starts_with("not_for_us.") || info.name.starts_with("dropped.")) << info.name;
    }
}

TEST(Counters, are_found_by_name_with_and_without_section) {
    EXPECT_EQ(find_counter("placed"), &packet_counters[static_cast<std::size_t>(PacketCounter::placed)]);
    EXPECT_EQ(find_counter("packets.placed"), find_counter("placed"));
    EXPECT_EQ(find_counter("incomplete.timeout"),
              &event_counters[static_cast<std::size_t>(EventCounter::incomplete_timeout)]);
    EXPECT_EQ(find_counter("refused.late"), &message_counters[static_cast<std::size_t>(MessageCounter::refused_late)]);
    EXPECT_EQ(find_counter("messages.opened"), &message_counters[static_cast<std::size_t>(MessageCounter::opened)]);
    EXPECT_EQ(find_counter("events.opened"), &event_counters[static_cast<std::size_t>(EventCounter::opened)]);
    // Two sections have one: the section decides.
    EXPECT_EQ(find_counter("dropped.no_room"), &packet_counters[static_cast<std::size_t>(PacketCounter::no_room)]);
    EXPECT_EQ(find_counter("events.dropped.no_room"),
              &event_counters[static_cast<std::size_t>(EventCounter::dropped_no_room)]);
}

TEST(Counters, that_do_not_exist_are_not_found) {
    for (const char* name :
         {"", ".", "place", "packets.", "packets.opened", "events.placed", "messages.written", "dropped"})
        EXPECT_EQ(find_counter(name), nullptr) << name;
}

TEST(Counters, find_all_of_one_name) {
    EXPECT_EQ(find_counters("dropped.no_room").size(), 2u);
    EXPECT_EQ(find_counters("no_room").size(), 2u);
    EXPECT_EQ(find_counters("malformed.bad_icrc").size(), 1u);
    EXPECT_EQ(find_counters("malformed.bad_icrc")[0].full_name, "packets.dropped.malformed.bad_icrc");
    EXPECT_TRUE(find_counters("nothing").empty());
}

TEST(Counters, closest_names_come_first_and_far_ones_not_at_all) {
    const std::vector<std::string> names{"replay", "run", "send", "inspect", "explain"};
    EXPECT_EQ(closest("replya", names, 3).at(0), "replay");
    EXPECT_EQ(closest("inspct", names, 3).at(0), "inspect");
    EXPECT_TRUE(closest("zzzzzzzzzz", names, 3).empty());
    EXPECT_TRUE(closest("run", {}, 3).empty());
}

TEST(Counters, similar_names_share_words_or_are_a_few_letters_away) {
    const std::vector<std::string> names{"packets.dropped.late",       "packets.dropped.malformed.bad_icrc",
                                         "events.incomplete.timeout",  "packets.dropped.no_room",
                                         "packets.dropped.queue_full", "device.missed",
                                         "packets.not_for_us.roce_v1", "events"};
    EXPECT_EQ(similar_names("droped.late", names).at(0), "packets.dropped.late");
    EXPECT_EQ(similar_names("icrc", names).at(0), "packets.dropped.malformed.bad_icrc");
    EXPECT_EQ(similar_names("timeout.incomplete", names).at(0), "events.incomplete.timeout");
    EXPECT_EQ(similar_names("full_queue", names).at(0), "packets.dropped.queue_full");
    EXPECT_EQ(similar_names("misssed", names).at(0), "device.missed");
    EXPECT_EQ(similar_names("event", names).at(0), "events");
    EXPECT_TRUE(similar_names("lost", names).empty());
    EXPECT_TRUE(similar_names("zzzzzzzzzz", names).empty());
    EXPECT_TRUE(similar_names("", names).empty());
}

TEST(Counters, documentation_is_what_the_table_makes) {
    const std::string path = std::string(WEIR_SOURCE_ROOT) + "/docs/reference/COUNTERS.md";
    std::ifstream file(path);
    ASSERT_TRUE(file) << path << " is missing";
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(text.str() == counters_markdown())
        << path << " is stale: write the output of `build/app/weir explain --markdown` to it, and commit it";
}

TEST(Tally, adds_and_reads) {
    PacketTally tally;
    for (std::size_t i = 0; i < count_of<PacketCounter>; ++i) EXPECT_EQ(tally.get(static_cast<PacketCounter>(i)), 0u);
    tally.add(PacketCounter::placed);
    tally.add(PacketCounter::placed, 41);
    EXPECT_EQ(tally.get(PacketCounter::placed), 42u);
    EXPECT_EQ(tally.get(PacketCounter::late), 0u);
}

TEST(Tally, settles_what_was_in_flight) {
    PacketTally tally;
    tally.add(PacketCounter::in_flight, 10);
    tally.settle(PacketCounter::placed, 7);
    tally.settle(PacketCounter::late, 3);
    EXPECT_EQ(tally.get(PacketCounter::in_flight), 0u);
    EXPECT_EQ(tally.get(PacketCounter::placed), 7u);
    EXPECT_EQ(tally.get(PacketCounter::late), 3u);
}

// A packet counted in flight on one lcore and settled on another: each value alone means nothing, their sum does.
TEST(Tally, wraps_so_that_only_the_sum_over_lcores_matters) {
    PacketTally receiver;
    PacketTally builder;
    receiver.add(PacketCounter::in_flight, 5);
    builder.settle(PacketCounter::placed, 5);
    EXPECT_EQ(receiver.get(PacketCounter::in_flight) + builder.get(PacketCounter::in_flight), 0u);
    EXPECT_EQ(receiver.get(PacketCounter::placed) + builder.get(PacketCounter::placed), 5u);
}

TEST(Tally, of_two_lcores_share_no_cache_line) {
    static_assert(alignof(PacketTally) >= 64 && sizeof(PacketTally) % 64 == 0);
    static_assert(alignof(EventTally) >= 64 && sizeof(EventTally) % 64 == 0);
}

}  // namespace
