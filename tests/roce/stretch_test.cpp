// Stretches of a long message: what others see of them while packets come, and afterwards.
#include "listener_harness.hpp"

namespace weir::roce::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t packets_in_all = 200;
constexpr std::uint32_t burst = 32;

class StretchTest : public ::testing::Test {
protected:
    void SetUp() override {
        spec.immediate = 7;
        payload = payload_of(7, packets_in_all * pmtu - 100);
        std::uint32_t count = 0;
        for (const wire::RocePacket& packet : packets_of(spec, payload, 0xffffff - 50))
            arrived.push_back({packet, 1000 * static_cast<core::TimeNs>(++count)});
    }
    void send(Harness& harness, std::size_t begin, std::size_t end) const {
        for (; begin < end; begin += burst)
            harness.add_burst(std::span(arrived).subspan(begin, std::min<std::size_t>(burst, end - begin)), false);
    }
    void expect_whole(Harness& harness) const {
        harness.finish(arrived.back().now);
        ASSERT_EQ(harness.delivered.size(), 1U);
        EXPECT_TRUE(harness.delivered[0].complete);
        EXPECT_EQ(harness.delivered[0].bytes, payload);
        EXPECT_EQ(harness.delivered[0].last_ns, arrived.back().now);
        EXPECT_EQ(harness.psn_counts().expected, packets_in_all);
        EXPECT_EQ(harness.psn_counts().seen, packets_in_all);
    }

    MessageSpec spec{wire::RoceTransport::uc, false, std::nullopt, pmtu};
    std::vector<std::byte> payload;
    std::vector<Arrived> arrived;
};

TEST_F(StretchTest, TheAccountOfPsnsIsNeverFarBehind) {
    Harness harness({});
    for (std::uint32_t sent = 0; sent + burst <= packets_in_all; sent += burst) {
        send(harness, sent, sent + burst);
        EXPECT_LE(harness.psn_counts().seen, sent + burst);
        EXPECT_GE(harness.psn_counts().seen + Stretch::longest, sent + burst);
        EXPECT_EQ(harness.psn_counts().missing(), 0U);
    }
    send(harness, packets_in_all - packets_in_all % burst, packets_in_all);
    expect_whole(harness);
}

TEST_F(StretchTest, TheAccountOfPsnsIsExactWhenNothingMoreComes) {
    Harness harness({});
    send(harness, 0, 2 * burst);
    harness.expire(arrived[2 * burst].now);  // packets came since the last time
    harness.expire(arrived[2 * burst].now);
    EXPECT_EQ(harness.psn_counts().seen, 2 * burst);
    EXPECT_EQ(harness.psn_counts().expected, 2 * burst);
    send(harness, 2 * burst, packets_in_all);
    expect_whole(harness);
}

TEST_F(StretchTest, MayBeLongerThanTheRing) {
    Harness harness({.psn_window = 16});
    send(harness, 0, packets_in_all);
    expect_whole(harness);
}

TEST_F(StretchTest, EndsWhereItsMessageTimesOut) {
    // By a packet of another source, whose time is beyond it.
    HarnessConfig config{.timeout_ns = 1'000'000};
    config.sources.resize(2);
    config.sources[1].source = 1;
    const Bytes small = payload_of(8, 100);
    std::vector<Arrived> in_turn(arrived.begin(), arrived.begin() + burst);
    in_turn.push_back({packets_of({wire::RoceTransport::uc, false, 8, pmtu}, small, 0)[0], 2'000'000, 1});
    in_turn.push_back({arrived[burst].packet, 2'000'001});
    for (const bool one_by_one : {true, false}) {
        Harness harness(config);
        harness.add_burst(in_turn, one_by_one);
        harness.finish(in_turn.back().now);
        EXPECT_EQ(harness.delivered.size(), 1U);
        EXPECT_EQ(harness.packets.get(PacketCounter::unbound), burst);  // of the message nothing has told the number
        EXPECT_EQ(harness.packets.get(PacketCounter::late), 1U);
        EXPECT_EQ(harness.psn_counts().seen, burst + 1);
    }
}

TEST_F(StretchTest, DoesNotGoOnWithAWholeMessage) {
    // It waits for its number; then its last packet comes once more and says that it is a MIDDLE, and so does the next.
    Listener::SourceConfig source;
    source.number_by = NumberBy::count;
    std::vector<Arrived> wrong(arrived.begin(), arrived.begin() + 3);
    wrong[2].packet.place = wire::RocePlace::last;
    for (const std::uint32_t more : {0U, 1U}) {
        wrong.push_back(arrived[2]);
        wrong.back().packet.psn += more;
    }
    Harness harness({.sources = {source}});
    harness.add_burst(wrong, false);
    harness.finish(wrong.back().now);
    Harness single({.sources = {source}});
    single.add_burst(wrong, true);
    single.finish(wrong.back().now);
    ASSERT_EQ(single.delivered.size(), 1U);
    ASSERT_EQ(harness.delivered.size(), 1U);
    EXPECT_EQ(harness.delivered[0].total, 3 * pmtu);
    for (const PacketCounter counter : {PacketCounter::placed, PacketCounter::unbound, PacketCounter::duplicate})
        EXPECT_EQ(harness.packets.get(counter), single.packets.get(counter));
}

TEST_F(StretchTest, IsOfPacketsOfTheSizeThatIsKnownOfItsPeer) {
    // Two messages in packets of different sizes, and the middle of the first comes last; then one of the second again,
    // which would begin a stretch. A READ uses as many PSNs as packets of the size that came last have room for.
    const Bytes first = payload_of(1, 2 * pmtu + 100);
    const Bytes second = payload_of(2, 3 * pmtu / 2 + 100);
    const auto large = packets_of({wire::RoceTransport::uc, false, 1, pmtu}, first, 0);
    const auto small = packets_of({wire::RoceTransport::uc, false, 2, pmtu / 2}, second, 3);
    std::vector<Arrived> mixed;
    for (const wire::RocePacket& packet :
         {large[0], large[2], small[0], small[1], large[1], small[1], small[2], small[3]})
        mixed.push_back({packet, 1000 * static_cast<core::TimeNs>(mixed.size() + 1)});
    wire::RocePacket read = small[3];
    read.psn = 7;
    read.dma_length = 4 * pmtu;
    std::vector<std::uint64_t> expected;
    for (const bool one_by_one : {true, false}) {
        Harness harness({});
        harness.add_burst(mixed, one_by_one);
        harness.skip(read, mixed.back().now, 0);
        harness.finish(mixed.back().now);
        EXPECT_EQ(harness.delivered.size(), 2U);
        expected.push_back(harness.psn_counts().expected);
    }
    EXPECT_EQ(expected[0], 15U);
    EXPECT_EQ(expected[1], 15U);
}

TEST_F(StretchTest, EndsWhereItsPeerIsForgotten) {
    Harness harness({});
    send(harness, 0, 2 * burst);
    harness.forget(arrived[2 * burst].now);
    EXPECT_EQ(harness.psn_counts().seen, 2 * burst);
    harness.finish(arrived.back().now);
    EXPECT_EQ(harness.delivered.size(), 0U);  // an immediate would have numbered it
    EXPECT_EQ(harness.packets.get(PacketCounter::unbound), 2 * burst);
}

}  // namespace
}  // namespace weir::roce::test
