// Who sent a packet, and whether it is a copy: no message is made of two senders' packets, and what is called a
// duplicate is one.
#include <gtest/gtest.h>

#include <random>

#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;

Packet from(std::uint16_t sender, Packet packet) {
    packet.sender = sender;
    packet.salt = static_cast<std::uint8_t>(sender * 3);
    return packet;
}

void finish_without_faults(Harness& harness) {
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

std::uint64_t complete(const Harness& harness) {
    return harness.count(EventCounter::complete);
}

// Both senders' packets one after the other: B A B A.
TEST(Senders, OfTheSameNumbersInTurnMakeNoMessageTogether) {
    for (const bool bursts : {false, true}) {
        for (const std::uint16_t first : {0, 1}) {
            Harness harness({.sources = 1, .timeout_ns = 1'000'000, .bursts = bursts});
            for (std::uint64_t number = 0; number < 20; ++number)
                for (std::uint32_t index = 0; index < 4; ++index)
                    for (const std::uint16_t sender : {first, static_cast<std::uint16_t>(1 - first)})
                        harness.add(from(sender, piece(0, number, index, 4, static_cast<TimeNs>(number))));
            finish_without_faults(harness);
            EXPECT_EQ(complete(harness), 20u);
            EXPECT_EQ(harness.count(PacketCounter::conflict), 80u);
            EXPECT_EQ(harness.count(PacketCounter::duplicate), 0u);
        }
    }
}

// Half a message of each would be a whole one.
TEST(Senders, DoNotCompleteEachOthersMessages) {
    for (const bool bursts : {false, true}) {
        for (const bool swapped : {false, true}) {
            Harness harness({.sources = 1, .bursts = bursts});
            for (std::uint32_t index = 0; index < 4; ++index)
                harness.add(from((index < 2) == swapped ? 1 : 0, piece(0, 7, index, 4, 1)));
            finish_without_faults(harness);
            EXPECT_EQ(complete(harness), 0u);
            EXPECT_EQ(harness.count(PacketCounter::conflict), 2u);
        }
    }
}

// A message behind: that of the first sender has left whole.
TEST(Senders, OfAMessageThatHasLeftAreConflictsAndNoRestart) {
    Harness harness({.sources = 1, .timeout_ns = 1'000'000});
    for (std::uint64_t number = 0; number < 200; number += 10) {
        for (const std::uint16_t sender : {0, 1})
            for (std::uint64_t i = 0; i < 10; ++i)  // in runs as long as a restart needs
                harness.add(from(sender, whole_message(0, number + i, static_cast<TimeNs>(number + i))));
    }
    finish_without_faults(harness);
    EXPECT_EQ(complete(harness), 200u);
    EXPECT_EQ(harness.count(PacketCounter::conflict), 200u);
}

TEST(Senders, MayTakeTurnsWithWholeMessages) {
    for (const bool bursts : {false, true}) {
        Harness harness({.sources = 1, .timeout_ns = 1'000'000, .bursts = bursts});
        for (std::uint64_t number = 0; number < 30; ++number)
            for (std::uint32_t index = 0; index < 4; ++index)
                harness.add(from(number % 3, piece(0, number, index, 4, static_cast<TimeNs>(number))));
        finish_without_faults(harness);
        EXPECT_EQ(complete(harness), 30u);
        EXPECT_EQ(harness.count(PacketCounter::conflict), 0u);
    }
}

TEST(Senders, ASourceThatBeginsAgainWithAnotherAddressIsBelievedInTheEnd) {
    Harness harness({.sources = 1, .timeout_ns = 1'000'000});
    for (std::uint64_t number = 0; number < 300; ++number)
        harness.add(from(0, piece(0, number, 0, 1, static_cast<TimeNs>(number))));
    for (std::uint64_t number = 0; number < 200; ++number)
        for (std::uint32_t index = 0; index < 4; ++index)
            harness.add(from(1, piece(0, number, index, 4, static_cast<TimeNs>(300 + number))));
    finish_without_faults(harness);
    EXPECT_EQ(complete(harness), 500u);
}

// The packets of both in any order, some of them twice: each message is of one sender, and copies are duplicates.
TEST(Senders, InAnyOrderTheAccountIsExact) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 50; ++round) {
        const bool bursts = round % 2 == 0;
        Harness harness({.sources = 1, .timeout_ns = 1'000'000, .bursts = bursts});
        std::uint64_t placed = 0;
        std::uint64_t copies = 0;
        std::uint64_t others = 0;
        for (std::uint64_t number = 0; number < 20; ++number) {
            std::vector<Packet> packets;
            for (const std::uint16_t sender : {0, 1, 2})
                for (std::uint32_t index = 0; index < 6; ++index)
                    packets.insert(packets.end(), 1 + random() % 2, from(sender, piece(0, number, index, 6, 1)));
            std::ranges::shuffle(packets, random);
            std::vector<bool> there(6, false);
            for (const Packet& packet : packets) {
                harness.add(packet);
                if (packet.sender != packets.front().sender)
                    ++others;
                else if (there[packet.offset / 100])
                    ++copies;
                else
                    ++placed;
                if (packet.sender == packets.front().sender) there[packet.offset / 100] = true;
            }
        }
        finish_without_faults(harness);
        EXPECT_EQ(complete(harness), 20u);
        EXPECT_EQ(harness.count(PacketCounter::conflict), others);
        EXPECT_EQ(harness.count(PacketCounter::duplicate), copies);
        EXPECT_EQ(placed, 120u);
    }
}

// A detector whose number stands still, while its images differ.
TEST(Duplicates, AreNotWhatHasAnotherHeader) {
    Harness harness({.sources = 1, .timeout_ns = 1'000'000});
    for (std::uint8_t image = 0; image < 8; ++image)
        for (std::uint32_t index = 0; index < 4; ++index) {
            Packet packet = piece(0, 5, index, 4, image);
            packet.header = image;
            harness.add(packet);
        }
    EXPECT_EQ(complete(harness), 1u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::conflict), 28u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 0u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Duplicates, AreNotWhatHasAnotherPayload) {
    for (const bool whole : {false, true}) {
        Harness harness({.sources = 1, .timeout_ns = 1'000'000});
        for (std::uint8_t image = 0; image < 8; ++image)
            for (std::uint32_t index = 0; index < (whole ? 4U : 3U); ++index) {
                Packet packet = piece(0, 5, index, 4, 1);
                packet.salt = image;
                harness.add(packet);
            }
        harness.finish();
        EXPECT_EQ(harness.count(PacketCounter::conflict), whole ? 28u : 21u);
        EXPECT_EQ(harness.count(PacketCounter::duplicate), 0u);
        EXPECT_EQ(harness.faults(), "");
    }
}

TEST(Duplicates, AreNotWhatHasANewSequenceNumber) {
    Harness harness({.sources = 1});
    Packet packet = piece(0, 5, 0, 4, 1);
    harness.add(packet);
    harness.add(packet);
    packet.fresh = true;
    harness.add(packet);
    finish_without_faults(harness);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 1u);
    EXPECT_EQ(harness.count(PacketCounter::conflict), 1u);
}

TEST(Duplicates, OfMessagesThatHaveLeftAreDuplicatesInAnyOrder) {
    std::mt19937_64 random(3);
    Harness harness({.sources = 1, .timeout_ns = 1'000'000});
    for (std::uint64_t number = 0; number < 50; ++number) {
        std::vector<Packet> packets;
        for (std::uint32_t index = 0; index < 5; ++index) packets.push_back(piece(0, number, index, 5, 1));
        std::ranges::shuffle(packets, random);
        for (const Packet& packet : packets) harness.add(packet);
        std::ranges::shuffle(packets, random);
        for (const Packet& packet : packets) harness.add(packet);
    }
    harness.finish();
    EXPECT_EQ(complete(harness), 50u);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 250u);
    EXPECT_EQ(harness.faults(), "");
}

}  // namespace
