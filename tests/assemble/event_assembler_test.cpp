// EventAssembler as a program of somebody else uses it: payloads in, events out, nothing else.
#include "assemble/event_assembler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "wire/encode.hpp"

namespace {

using namespace weir;
using assemble::AssembledEvent;
using assemble::EventAssembler;
using wire::PacketCounter;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
    Bytes bytes;
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
}

/// A segment of an EJFAT buffer.
Bytes segment(std::uint64_t event, std::string_view text, std::uint32_t offset, std::uint32_t total) {
    Bytes packet(1024);
    packet.resize(wire::write_ejfat({.offset = offset, .total = total, .event = event}, bytes_of(text), packet));
    return packet;
}

struct Seen {
    std::uint64_t number;
    bool complete;
    assemble::EventCause cause;
    std::vector<Bytes> payloads;
    std::vector<std::uint32_t> received;
};

class Assembler : public testing::Test {
protected:
    EventAssembler& make(EventAssembler::Config config) {
        if (config.format == nullptr) config.format = wire::find_format("ejfat");
        assembler_ = std::make_unique<EventAssembler>(config, [this, config](const AssembledEvent& event) {
            Seen seen{event.number(), event.complete(), event.cause(), {}, {}};
            for (std::uint32_t source = 0; source < config.sources; ++source) {
                seen.payloads.push_back(event.payload(source, std::byte{'.'}));
                seen.received.push_back(event.received_bytes(source));
            }
            events.push_back(seen);
        });
        return *assembler_;
    }
    [[nodiscard]] std::uint64_t all_packets() const {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i)
            sum += assembler_->packets(static_cast<PacketCounter>(i));
        return sum;
    }

    std::vector<Seen> events;

private:
    std::unique_ptr<EventAssembler> assembler_;
};

TEST_F(Assembler, MakesEventsOfShuffledPacketsOfTwoSources) {
    EventAssembler& assembler = make({.sources = 2});
    EXPECT_EQ(assembler.add(0, segment(7, "def", 3, 6), 0), wire::ok);
    assembler.add(1, segment(8, "late", 0, 4), 1);
    assembler.add(1, segment(7, "other", 0, 5), 2);
    EXPECT_TRUE(events.empty());
    assembler.add(0, segment(7, "abc", 0, 6), 3);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].number, 7U);
    EXPECT_TRUE(events[0].complete);
    EXPECT_EQ(events[0].payloads, (std::vector{bytes_of("abcdef"), bytes_of("other")}));
    assembler.add(0, segment(8, "x", 0, 1), 4);
    ASSERT_EQ(events.size(), 2U);
    assembler.finish();
    EXPECT_EQ(events.size(), 2U);
    EXPECT_EQ(assembler.packets(PacketCounter::placed), 5U);
    EXPECT_EQ(all_packets(), 5U);
}

TEST_F(Assembler, WhatIsNotWholeLeavesAfterItsTimeOutWithItsGaps) {
    EventAssembler& assembler = make({.sources = 2, .timeout_ns = 100});
    assembler.add(0, segment(1, "cd", 2, 6), 1000);
    assembler.advance(1099);
    EXPECT_TRUE(events.empty());
    assembler.advance(1100);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].cause, assemble::EventCause::timeout);
    EXPECT_FALSE(events[0].complete);
    EXPECT_EQ(events[0].payloads, (std::vector{bytes_of("..cd.."), Bytes{}}));
    EXPECT_EQ(events[0].received, (std::vector<std::uint32_t>{2, 0}));
    assembler.add(0, segment(1, "ab", 0, 6), 1200);
    assembler.finish();
    EXPECT_EQ(events.size(), 1U);
    EXPECT_EQ(assembler.packets(PacketCounter::late), 1U);
    EXPECT_EQ(all_packets(), 2U);
}

TEST_F(Assembler, TheEndIsTheEndOfWhatIsOpen) {
    EventAssembler& assembler = make({});
    assembler.add(0, segment(3, "a", 0, 2), 0);
    assembler.finish();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].cause, assemble::EventCause::end_of_run);
}

TEST_F(Assembler, WithoutRoomTheOldestLeaves) {
    EventAssembler& assembler = make({.events_max = 2});
    for (std::uint64_t number = 1; number <= 3; ++number) assembler.add(0, segment(number, "a", 0, 2), 0);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].number, 1U);
    EXPECT_EQ(events[0].cause, assemble::EventCause::evicted);
}

TEST_F(Assembler, MemoryIsBounded) {
    EventAssembler& assembler = make({.memory_bytes = 300});
    const std::string text(100, 'x');  // with its header 120
    for (std::uint64_t number = 1; number <= 3; ++number) assembler.add(0, segment(number, text, 0, 200), 0);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].number, 1U);
    assembler.add(0, segment(3, text, 100, 200), 0);
    ASSERT_EQ(events.size(), 3U);  // 2 made room, and 3 is whole
    EXPECT_EQ(events[1].number, 2U);
    EXPECT_TRUE(events[2].complete);
}

TEST_F(Assembler, EndsWhatIsNoPacketOfTheFormatInItsCounter) {
    EventAssembler& assembler = make({});
    EXPECT_EQ(assembler.add(0, bytes_of("short"), 0), PacketCounter::malformed_header);
    assembler.add(0, segment(1, "a", 0, 1), 0);
    assembler.add(0, segment(1, "a", 0, 1), 0);
    assembler.finish();
    EXPECT_EQ(assembler.packets(PacketCounter::malformed_header), 1U);
    EXPECT_EQ(assembler.packets(PacketCounter::duplicate), 1U);
    EXPECT_EQ(all_packets(), 3U);
}

TEST_F(Assembler, InterfacesOfAModuleAreSourcesSideBySide) {
    wire::FormatOptions options;
    options.interfaces = 2;
    options.sls.rows = 16;  // in the middle of the module: the first interface's last packets, the second one's first
    EventAssembler& assembler = make({.format = wire::find_format("jungfrau"), .options = options, .sources = 2});
    const Bytes pixels(8192, std::byte{1});
    for (const std::uint32_t source : {0U, 1U})
        for (const std::uint32_t number : {0U, 1U}) {
            Bytes packet(9000);
            const wire::SlsHeader header{.frame_number = 5, .packet_number = (source == 0 ? 62 : 0) + number};
            packet.resize(wire::write_sls(header, pixels, packet));
            EXPECT_EQ(assembler.add(source, packet, 0), wire::ok);
        }
    ASSERT_EQ(events.size(), 1U);
    EXPECT_TRUE(events[0].complete);
    EXPECT_EQ(events[0].received, (std::vector<std::uint32_t>{16384, 16384}));
    options.sls.interfaces_joined = true;  // nothing would say which interface a datagram is from
    EXPECT_THROW(make({.format = wire::find_format("jungfrau"), .options = options}), core::UsageError);
    options.sls.lane_by = wire::LaneBy::row;
    EXPECT_NO_THROW(make({.format = wire::find_format("jungfrau"), .options = options}));
}

TEST_F(Assembler, RefusesWhatCannotBe) {
    EXPECT_THROW(make({.format = wire::find_format("message")}), core::UsageError);
    EXPECT_THROW(make({.sources = 0}), core::UsageError);
    EXPECT_THROW(EventAssembler({}, [](const AssembledEvent&) {}), core::UsageError);
    EventAssembler& assembler = make({.sources = 2});
    EXPECT_THROW(assembler.add(2, segment(1, "a", 0, 1), 0), core::UsageError);
}

}  // namespace
