// A worker between the builder and the sink: events in, blocks out, whatever the sink does, and everything handed back.
#include <gtest/gtest.h>

#include "topology.hpp"

namespace weir::stages::test {
namespace {

class WorkStageTest : public StagesTest {
protected:
    static Shape shape() {
        Shape shape;
        shape.queued_max = 64;
        shape.output_buffers = 2;
        shape.output_buffer_bytes = store::BlockWriter::buffer_bytes_min;
        return shape;
    }
    /// Whole events of `bytes` from each source, in as many packets as it takes.
    void feed(Topology& all, std::uint64_t from, std::uint64_t to, std::uint32_t bytes) {
        constexpr std::uint32_t packet_bytes = 1500;
        for (std::uint64_t number = from; number < to; ++number)
            for (std::uint32_t source = 0; source < all.shape().sources; ++source)
                for (std::uint32_t at = 0; at < bytes; at += packet_bytes)
                    all.feed(make_.make(
                        {source, number, at, std::min(packet_bytes, bytes - at), bytes, static_cast<TimeNs>(number)}));
    }
    /// Everything but the sink, until nothing moves.
    static void drain_without_sink(Topology& all) {
        for (int i = 0; i < 200; ++i)
            for (std::size_t stage = 0; stage + 1 < all.stages(); ++stage) all.poll(stage);
    }
};

TEST_F(WorkStageTest, WritesEventsWithTheBytesTimesAndPacketsThatCame) {
    Topology all(shape());
    all.feed(make_.make(part_of(0, 7, 1, 2, 5)));
    all.feed(make_.make(part_of(1, 7, 0, 1, 6)));
    all.feed(make_.make(part_of(0, 7, 0, 2, 9)));
    finish(all);
    const EventsFound events = all.events();
    ASSERT_EQ(events.size(), 1U);
    const EventFound& event = events.at({0, 7});
    EXPECT_EQ(event.cause, store::Cause::complete);
    EXPECT_EQ(event.first_ns, start_ns + 5);
    EXPECT_EQ(event.last_ns, start_ns + 9);
    EXPECT_EQ(event.sources.at(0).packets, 2U);
    EXPECT_EQ(event.sources.at(0).bytes, payload_of({0, 7, 0, 200, 200, 0}));
    EXPECT_EQ(event.sources.at(1).bytes, payload_of({1, 7, 0, 100, 100, 0}));
    EXPECT_EQ(all.work().raw_bytes(), 300U);
}

TEST_F(WorkStageTest, AnIncompleteEventSaysWhatIsMissingOfEachSource) {
    Topology all(shape());
    all.feed(make_.make(part_of(0, 7, 0, 4, 1)));
    all.feed(make_.make(part_of(0, 7, 2, 4, 2)));
    finish(all);
    const EventFound event = all.events().at({0, 7});
    EXPECT_EQ(event.cause, store::Cause::end_of_run);
    EXPECT_EQ(event.sources.at(0).state, store::SourceState::partial);
    using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    EXPECT_EQ(event.sources.at(0).missing, (Ranges{{100, 100}, {300, 100}}));
    EXPECT_EQ(event.sources.at(1).state, store::SourceState::absent_unknown);
    EXPECT_EQ(all.work().missing_packets(0).guessed(), 2U);
}

TEST_F(WorkStageTest, AnEventLargerThanAllBuffersGoesThroughThemInOrder) {
    Topology all(shape());
    feed(all, 0, 3, 150'000);
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 3U);
    EXPECT_EQ(all.events().at({0, 2}).sources.at(1).bytes.size(), 150'000U);
}

TEST_F(WorkStageTest, AnEventWithoutPayloadIsWrittenAllTheSame) {
    Topology all(shape());
    for (std::uint32_t source = 0; source < 2; ++source) all.feed(make_.make({source, 7, 0, 0, 0, 1}));
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 1U);
    EXPECT_TRUE(all.events().at({0, 7}).sources.at(0).bytes.empty());
}

TEST_F(WorkStageTest, ABufferThatIsNotFullGoesToTheSinkAfterAWhile) {
    Topology all(shape());
    all.now = start_ns;
    feed(all, 0, 1, 100);
    drain_without_sink(all);
    EXPECT_EQ(all.full_buffers().count(), 0U);
    all.now += 100 * ms - 1;
    all.poll_work();
    EXPECT_EQ(all.full_buffers().count(), 0U);
    all.now += 1;
    all.poll_work();
    EXPECT_EQ(all.full_buffers().count(), 1U);
    finish(all);
}

TEST_F(WorkStageTest, ASinkThatStandsStillMakesEveryoneWaitAndNothingIsLost) {
    Topology all(shape());
    feed(all, 0, 20, 3000);
    drain_without_sink(all);
    EXPECT_GT(all.blocked(all.work(), Blocked::output), 0U);
    EXPECT_EQ(all.free_buffers().count(), 0U);
    const std::uint64_t taken = all.work().raw_bytes();
    drain_without_sink(all);
    EXPECT_EQ(all.work().raw_bytes(), taken) << "without a buffer nothing is formatted";
    EXPECT_EQ(all.count(EventCounter::written), 0U);
    feed(all, 20, 60, 3000);  // polls the sink as well
    finish(all);
    EXPECT_EQ(all.count(EventCounter::written), 60U);
    EXPECT_EQ(all.count(PacketCounter::placed), 60U * 2 * 2);
}

TEST_F(WorkStageTest, ASinkThatStandsStillCostsLiveInputWholeEvents) {
    Shape live = shape();
    live.wait = false;
    live.open_max = 8;
    live.queued_max = 8;
    Topology all(live);
    for (std::uint64_t number = 0; number < 200; ++number) {
        for (std::uint32_t source = 0; source < 2; ++source)
            for (std::uint32_t part = 0; part < 2; ++part)
                ASSERT_TRUE(
                    all.try_feed(make_.make(part_of(source, number, part, 2, static_cast<TimeNs>(number), 1000))));
        for (std::size_t stage = 0; stage + 1 < all.stages(); ++stage) all.poll(stage);
    }
    const std::uint64_t refused = all.count(EventCounter::refused_queue_full);
    EXPECT_GT(refused, 0U);
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 200 - refused);
    EXPECT_EQ(all.count(EventCounter::written), 200 - refused);
    EXPECT_EQ(all.count(PacketCounter::queue_full), 4 * refused) << "no event is taken in part";
}

TEST_F(WorkStageTest, WithoutASinkEventsAreCountedAsWritten) {
    Shape none = shape();
    none.to_file = false;
    Topology all(none);
    feed(all, 0, 50, 2000);
    all.finish();
    EXPECT_EQ(all.account().imbalance(), "");
    EXPECT_EQ(all.not_given_back(pool_), "");
    EXPECT_EQ(all.count(EventCounter::written), 50U);
}

TEST_F(WorkStageTest, StoppedInTheMiddleEverythingStillComesToItsEnd) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        std::mt19937_64 random(seed);
        Shape many = shape();
        many.rx = many.builders = many.workers = 2;
        Topology all(many);
        for (std::uint64_t number = 0; number < 30; ++number)
            for (std::uint32_t source = 0; source < 2; ++source)
                for (std::uint32_t part = 0; part < 3; ++part) {
                    if (random() % 8 == 0) continue;
                    all.feed(make_.make(part_of(source, number, part, 3, static_cast<TimeNs>(number), 1000)));
                    if (random() % 2 == 0) all.poll(random() % all.stages());
                }
        all.finish(random);  // packets are in every ring, events open, buffers half full
        expect_clean_end(all, pool_);
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST_F(WorkStageTest, EventsOfSeveralWorkersAreEachInOnePiece) {
    Shape many = shape();
    many.workers = 3;
    Topology all(many);
    feed(all, 0, 12, 50'000);  // each longer than a buffer
    finish(all);
    EXPECT_EQ(all.events().size(), 12U);
}

}  // namespace
}  // namespace weir::stages::test
