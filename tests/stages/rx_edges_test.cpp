// An rx lcore and the builder, polled by hand with made-up times: what the lcore promises of packets that another lcore
// steers to it, when it was away for longer than the time-out.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "topology.hpp"

namespace weir::stages::test {
namespace {

constexpr TimeNs edges_timeout_ns = 100 * ms;

/// The second of two rx lcores; the first is only its signals and the ring that it steers packets into.
class RxEdgesTest : public testing::Test {
protected:
    void SetUp() override {
        Shape shape;
        shape.rx = 2;
        shape.replay = false;
        shape.owner = {1, 1};
        shape.sources_needed = 1;
        shape.timeout_ns = edges_timeout_ns;
        shape.wait = false;
        shape.open_max = 64;
        shape.queued_max = 1024;
        shape.with_rx = [this](RxStage::Config& config) { with_rx(config); };
        all_.emplace(shape);
        promise(0);
        poll();
    }
    virtual void with_rx(RxStage::Config&) {}

    port::Packet packet(std::uint32_t source, std::uint64_t number, std::uint32_t part, std::uint32_t parts,
                        TimeNs time) {
        return make_.make(part_of(source, number, part, parts, time));
    }
    /// By the first lcore, which promises thereafter that nothing from before `until` follows.
    void steer(const port::Packet& packet) {
        ASSERT_TRUE(steered().push(packet));
        waiting_.push_back(packet.time_ns);
    }
    void promise(TimeNs until) {
        all_->signals(0).steered_until.store(start_ns + until, std::memory_order_release);
        all_->signals(0).watermark.store(start_ns + until, std::memory_order_release);
    }
    void own(const port::Packet& packet) { ASSERT_TRUE(all_->input(1).push(packet)); }
    void poll() {
        all_->poll_rx(1);
        all_->poll_build();
        while (waiting_.size() > steered().count()) waiting_.pop_front();
        if (waiting_.empty()) return;
        EXPECT_LE(all_->signals(1).watermark.load(), waiting_.front())
            << "a packet from before that is still in the ring";
    }
    port::Ring<port::Packet>& steered() { return all_->steered(0, 1); }
    /// The numbers of the events that have left since, and ended so; in order.
    std::vector<std::uint64_t> ended(assemble::EventCause cause) {
        std::vector<std::uint64_t> numbers;
        while (const auto got = all_->take_event())
            if (got->second == cause) numbers.push_back(got->first);
        std::ranges::sort(numbers);
        return numbers;
    }
    std::uint64_t late() const { return all_->count(PacketCounter::late); }

    port::BufferPool pool_{"edges", {1024, 2048}};
    PacketMaker make_{pool_};
    std::optional<Topology> all_;
    std::deque<TimeNs> waiting_;  ///< times of the packets in the ring
};

TEST_F(RxEdgesTest, WhatWaitsInARingIsNotLateWhenItsLcoreWasAway) {
    constexpr std::uint32_t parts = 200;  // of one message, more than three bursts
    for (std::uint32_t i = 0; i < parts; ++i) steer(packet(0, 7, i, parts, 1 * ms + i));
    promise(300 * ms);
    own(packet(1, 900, 0, 1, 300 * ms));  // the lcore is back: this is its own clock
    for (int i = 0; i < 8; ++i) poll();
    EXPECT_EQ(ended(assemble::EventCause::complete), (std::vector<std::uint64_t>{7, 900}));
    EXPECT_EQ(late(), 0U);
}

TEST_F(RxEdgesTest, AnOwnPacketOfTheSameSourceDoesNotEndWhatWaitsInARing) {
    constexpr std::uint32_t parts = 200;
    for (std::uint32_t i = 0; i < parts; ++i) steer(packet(0, 7, i, parts, 1 * ms + i));
    promise(300 * ms);
    poll();
    own(packet(0, 8, 0, 1, 300 * ms));  // came by a queue of the lcore's own
    for (int i = 0; i < 8; ++i) poll();
    EXPECT_EQ(ended(assemble::EventCause::complete), (std::vector<std::uint64_t>{7, 8}));
    EXPECT_EQ(late(), 0U);
}

TEST_F(RxEdgesTest, TimeGoesOnInARingThatIsNeverEmpty) {
    all_->input_ended(1) = true;
    TimeNs time = 0;
    steer(packet(0, 1, 0, 2, time));  // its other half never comes
    for (std::uint64_t number = 100; number < 228; ++number) steer(packet(0, number, 0, 1, time += ms));
    promise(time);
    bool timed_out = false;
    for (std::uint64_t number = 1000; number < 1256 && !timed_out; number += 64) {
        for (std::uint64_t i = 0; i < 64; ++i) steer(packet(0, number + i, 0, 1, time += ms));
        promise(time);
        poll();
        EXPECT_GT(steered().count(), 0U);
        timed_out = ended(assemble::EventCause::timeout) == std::vector<std::uint64_t>{1};
    }
    EXPECT_TRUE(timed_out);
}

TEST_F(RxEdgesTest, AnEventWhoseRestNeverComesStillTimesOut) {
    steer(packet(0, 7, 0, 2, 1 * ms));
    promise(300 * ms);
    own(packet(1, 900, 0, 1, 300 * ms));
    poll();
    poll();
    EXPECT_EQ(ended(assemble::EventCause::timeout), (std::vector<std::uint64_t>{7}));
}

/// Input that waits for room, and a file that answers are kept in.
class RxAnswersTest : public RxEdgesTest {
protected:
    void with_rx(RxStage::Config& config) override {
        config.wait = true;
        config.answer_log = &answers_;
    }
    AnswerRing answers_;
};

TEST_F(RxAnswersTest, WaitsForThemWhereTheyFindNoRoom) {
    while (answers_.begin() != nullptr) answers_.commit();
    own(packet(0, 7, 0, 1, 1 * ms));
    const auto blocked = [this] { return all_->blocked(all_->rx(1), Blocked::answers); };
    EXPECT_EQ(all_->poll_rx(1), 0U);
    EXPECT_EQ(all_->input(1).count(), 1U) << "it was not taken";
    EXPECT_GT(blocked(), 0U);
    const std::uint64_t before = blocked();
    while (answers_.front() != nullptr) answers_.pop();
    EXPECT_GT(all_->poll_rx(1), 0U);
    EXPECT_EQ(all_->input(1).count(), 0U);
    EXPECT_EQ(blocked(), before);
}

}  // namespace
}  // namespace weir::stages::test
