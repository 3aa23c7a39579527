// Datagrams that came in several packets: their payload lies in several buffers, and all of them share one fate.
#include <gtest/gtest.h>

#include <random>

#include "harness.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;

TEST(Pieces, EveryBufferIsAReferenceAndAPacket) {
    Harness harness({.sources = 1});
    harness.add_in_pieces(piece(0, 1, 1, 3, 1), 6);
    harness.add(piece(0, 1, 0, 3, 2));
    EXPECT_TRUE(harness.events.empty());
    harness.add_in_pieces(piece(0, 1, 2, 3, 3), 4);
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::complete);
    EXPECT_EQ(harness.events[0].messages.at(0).packets.size(), 11u);
    EXPECT_EQ(harness.count(PacketCounter::placed), 11u);
    harness.finish();
    EXPECT_EQ(harness.faults(), "");
}

TEST(Pieces, OfOnePacketAreReferencesAndOnePacket) {
    constexpr auto one_packet = MessageTable::PiecesAre::one_packet;
    Harness harness({.sources = 1, .timeout_ns = 100});
    harness.add_in_pieces(piece(0, 1, 0, 3, 1), 40, one_packet);  // over the end of a block of references
    harness.add(piece(0, 1, 1, 3, 2));
    harness.add_in_pieces(piece(0, 1, 1, 3, 3), 4, one_packet);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 1u);
    EXPECT_EQ(harness.table().buffers_held(), 41u);
    harness.add_in_pieces(piece(0, 1, 2, 3, 4), 5, one_packet);
    ASSERT_EQ(harness.events.size(), 1u);
    EXPECT_EQ(harness.events[0].cause, EventCause::complete);
    EXPECT_EQ(harness.events[0].messages.at(0).packets.size(), 3u);
    EXPECT_EQ(harness.count(PacketCounter::placed), 3u);
    // What the builder finds to have come too late is one packet, too.
    harness.add_undrained(piece(0, 2, 0, 3, 1000));
    harness.add_undrained(piece(0, 3, 0, 3, 1001));
    harness.add_in_pieces(piece(0, 2, 1, 3, 1200), 7, one_packet);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::late), 1u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Pieces, ARefusalIsForAllOfThem) {
    Harness harness({.sources = 1});
    harness.add_in_pieces(piece(0, 1, 0, 3, 1), 3);
    harness.add_in_pieces(piece(0, 1, 0, 3, 2), 3);
    EXPECT_EQ(harness.count(PacketCounter::duplicate), 3u);
    Packet overlapping = piece(0, 1, 0, 3, 3);
    overlapping.offset = 50;
    harness.add_in_pieces(overlapping, 2);
    EXPECT_EQ(harness.count(PacketCounter::conflict), 2u);
    Packet outside = piece(0, 2, 0, 1, 4);
    outside.offset = 60;
    harness.add_in_pieces(outside, 5);
    EXPECT_EQ(harness.count(PacketCounter::malformed_range), 5u);
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::placed), 3u);
    EXPECT_EQ(harness.faults(), "");
}

TEST(Pieces, ThereIsRoomForAllOfThemOrForNone) {
    Harness harness({.sources = 1, .messages_max = 64, .buffers_max = 16, .wait = true});
    harness.freeze();
    harness.add_in_pieces(piece(0, 1, 0, 1, 1), 8);
    harness.add_in_pieces(piece(0, 2, 0, 1, 2), 6);
    harness.add_in_pieces(piece(0, 3, 0, 1, 3), 3);  // 14 of 16 buffers are held
    EXPECT_EQ(harness.count(PacketCounter::no_room), 3u);
    harness.add_in_pieces(piece(0, 4, 0, 1, 4), 2);
    harness.thaw();
    harness.finish();
    EXPECT_EQ(harness.count(PacketCounter::placed), 16u);
    EXPECT_EQ(harness.faults(), "");
}

// Cut into buffers or not: the same events with the same gaps come of it, and the same fate for the same payload.
TEST(Pieces, MakeNoDifferenceToWhatIsAssembled) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int round = 0; round < 60; ++round) {
        const Limits limits{.sources = 2, .buffers_max = 65536};
        Harness whole(limits);
        Harness cut(limits);
        const bool one_packet = round % 2 == 1;
        const std::uint32_t pieces = 1 + random() % 8;
        TimeNs now = 0;
        for (int i = 0; i < 400; ++i) {
            Packet packet = piece(random() % 2, 1 + static_cast<std::uint64_t>(i / 40) + random() % 3, random() % 10,
                                  10, now += random() % 20);
            if (random() % 50 == 0) packet.offset += 7;
            if (random() % 50 == 0) packet.total += 100;
            whole.add(packet);
            cut.add_in_pieces(packet, pieces,
                              one_packet ? MessageTable::PiecesAre::one_packet : MessageTable::PiecesAre::packets);
        }
        whole.finish();
        cut.finish();
        EXPECT_EQ(whole.faults(), "");
        EXPECT_EQ(cut.faults(), "");
        for (const PacketCounter counter : {PacketCounter::placed, PacketCounter::duplicate, PacketCounter::conflict,
                                            PacketCounter::late, PacketCounter::malformed_range})
            EXPECT_EQ(cut.count(counter), (one_packet ? 1 : pieces) * whole.count(counter));
        ASSERT_EQ(cut.events.size(), whole.events.size());
        for (std::size_t i = 0; i < whole.events.size(); ++i) {
            EXPECT_EQ(cut.events[i].number, whole.events[i].number);
            EXPECT_EQ(cut.events[i].cause, whole.events[i].cause);
            ASSERT_EQ(cut.events[i].messages.size(), whole.events[i].messages.size());
            for (const auto& [source, message] : whole.events[i].messages) {
                EXPECT_EQ(cut.events[i].messages.at(source).complete, message.complete);
                EXPECT_EQ(cut.events[i].messages.at(source).missing, message.missing);
            }
        }
    }
}

}  // namespace
