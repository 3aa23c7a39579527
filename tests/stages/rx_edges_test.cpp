// An rx lcore and the builder, polled by hand with made-up times: what the lcore promises of packets that another lcore
// steers to it, when it was away for longer than the time-out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/hot_thread.hpp"
#include "stages/build_stage.hpp"
#include "stages/rx/rx_stage.hpp"
#include "wire/encode.hpp"

namespace weir::pipeline {
namespace {

using core::PacketCounter;

constexpr TimeNs ms = core::ns_per_ms;
constexpr TimeNs start_ns = 1'700'000'000 * core::ns_per_s;
constexpr TimeNs timeout_ns = 100 * ms;
constexpr std::uint32_t part_bytes = 100;

/// The second of two rx lcores; the first is only its signals and the ring that it steers packets into.
class RxEdgesTest : public testing::Test {
protected:
    void SetUp() override {
        StreamRuntime stream;
        stream.format = wire::find_format("ejfat");
        stream.context = stream.format->make_context({});
        stream.source_count = 1;
        streams_.assign(2, stream);
        streams_[1].first_source = 1;
        std::vector<flow::Rule> rules(2);
        for (std::uint16_t i = 0; i < 2; ++i) {
            rules[i].key = 50'000U + i;
            rules[i].stream = i;
            rules[i].source = i;
            rules[i].owner = 1;
        }
        steering_.emplace(rules, std::vector<flow::Rule>{});

        RxStage::Config rx = replayed_;
        rx.index = 1;
        rx.steering = {&*steering_};
        rx.rings = {{&own_, &own_ended_}};
        rx.steer_in = {{&steered_, &first_}, {}};
        rx.steer_out.resize(2);
        rx.descriptors = {&descriptors_};
        rx.commands = {&commands_};
        rx.recycle = {&recycle_};
        rx.table.owner = 1;
        rx.table.sources = 2;
        rx.table.messages_max = 1024;
        rx.table.timeout_ns = timeout_ns;
        rx.table.number_bits = {64, 64};
        rx_ = std::make_unique<RxStage>(rx, streams_, second_, run_);

        BuildStage::Config build;
        build.builder.sources = 2;
        build.builder.sources_needed = 1;
        build.builder.queued_max = 1024;
        build.builder.messages_max = 1024;
        build.builder.timeout_ns = timeout_ns;
        build.builder.owner = {1, 1};
        build.builder.number_bits = {64, 64};
        build.builder.rx_count = 2;
        build.rx = {{&no_descriptors_, &no_commands_, &first_}, {&descriptors_, &commands_, &second_}};
        build.work = {{&events_, &released_}};
        build_ = std::make_unique<BuildStage>(build, run_);
        promise(0);
        poll();
    }

    port::Packet packet(std::uint32_t source, std::uint64_t number, std::uint32_t part, std::uint32_t parts,
                        TimeNs time) {
        std::vector<std::byte> payload(1024);
        const std::vector<std::byte> data(part_bytes);
        payload.resize(wire::write_ejfat({.data_id = static_cast<std::uint16_t>(source),
                                          .offset = part * part_bytes,
                                          .total = parts * part_bytes,
                                          .event = number},
                                         data, payload));
        wire::FrameSpec spec;
        spec.dport = static_cast<std::uint16_t>(50'000U + source);
        const std::vector<std::byte> frame = wire::make_udp_frame(spec, payload);
        rte_mbuf* const mbuf = pool_.allocate();
        std::memcpy(rte_pktmbuf_mtod(mbuf, void*), frame.data(), frame.size());
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        mbuf->data_len = static_cast<std::uint16_t>(bytes);
        mbuf->pkt_len = bytes;
        return {mbuf, start_ns + time, bytes, static_cast<std::uint16_t>(bytes), 0, 0};
    }
    /// By the first lcore, which promises thereafter that nothing from before `until` follows.
    void steer(const port::Packet& packet) {
        ASSERT_TRUE(steered_.push(packet));
        waiting_.push_back(packet.time_ns);
    }
    void promise(TimeNs until) {
        first_.steered_until.store(start_ns + until, std::memory_order_release);
        first_.watermark.store(start_ns + until, std::memory_order_release);
    }
    void poll() {
        core::hot_thread(true);
        rx_->poll(0);
        build_->poll(0);
        core::hot_thread(false);
        while (waiting_.size() > steered_.count()) waiting_.pop_front();
        if (waiting_.empty()) return;
        EXPECT_LE(second_.watermark.load(), waiting_.front()) << "a packet from before that is still in the ring";
    }
    assemble::Event* event() {
        assemble::Event* event = nullptr;
        return events_.pop({&event, 1}) == 1 ? event : nullptr;
    }
    std::uint64_t late() const {
        return rx_->packets().get(PacketCounter::late) + build_->packets().get(PacketCounter::late);
    }

    port::BufferPool pool_{"edges", {1024, 2048}};
    port::Ring<port::Packet> own_{"edges_own", 512};
    port::Ring<port::Packet> steered_{"edges_steered", 512};
    port::Ring<assemble::Descriptor> descriptors_{"edges_descriptors", 512};
    port::Ring<assemble::Descriptor> no_descriptors_{"edges_none", 8};
    port::Ring<assemble::Command> commands_{"edges_commands", 512};
    port::Ring<assemble::Command> no_commands_{"edges_no_commands", 8};
    port::Ring<assemble::Message*> recycle_{"edges_recycle", 512};
    port::Ring<assemble::Event*> events_{"edges_events", 512};
    port::Ring<assemble::Event*> released_{"edges_released", 512};
    std::atomic<bool> own_ended_{false};
    RunSignals run_;
    RxStage::Config replayed_;  ///< what a test's rx lcore has besides; before SetUp
    RxSignals first_;
    RxSignals second_;
    std::vector<StreamRuntime> streams_;
    std::optional<flow::Steering> steering_;
    std::unique_ptr<RxStage> rx_;
    std::unique_ptr<BuildStage> build_;
    std::deque<TimeNs> waiting_;  ///< times of the packets in the ring
};

TEST_F(RxEdgesTest, WhatWaitsInARingIsNotLateWhenItsLcoreWasAway) {
    constexpr std::uint32_t parts = 200;  // of one message, more than three bursts
    for (std::uint32_t i = 0; i < parts; ++i) steer(packet(0, 7, i, parts, 1 * ms + i));
    promise(300 * ms);
    own_.push(packet(1, 900, 0, 1, 300 * ms));  // the lcore is back: this is its own clock
    for (int i = 0; i < 8; ++i) poll();
    std::vector<std::uint64_t> complete;
    while (const assemble::Event* const got = event())
        if (got->cause == assemble::EventCause::complete) complete.push_back(got->number);
    std::ranges::sort(complete);
    EXPECT_EQ(complete, (std::vector<std::uint64_t>{7, 900}));
    EXPECT_EQ(late(), 0U);
}

TEST_F(RxEdgesTest, AnOwnPacketOfTheSameSourceDoesNotEndWhatWaitsInARing) {
    constexpr std::uint32_t parts = 200;
    for (std::uint32_t i = 0; i < parts; ++i) steer(packet(0, 7, i, parts, 1 * ms + i));
    promise(300 * ms);
    poll();
    own_.push(packet(0, 8, 0, 1, 300 * ms));  // came by a queue of the lcore's own
    for (int i = 0; i < 8; ++i) poll();
    std::uint32_t complete = 0;
    while (const assemble::Event* const got = event()) complete += got->cause == assemble::EventCause::complete;
    EXPECT_EQ(complete, 2U);
    EXPECT_EQ(late(), 0U);
}

TEST_F(RxEdgesTest, TimeGoesOnInARingThatIsNeverEmpty) {
    own_ended_ = true;
    TimeNs time = 0;
    steer(packet(0, 1, 0, 2, time));  // its other half never comes
    for (std::uint64_t number = 100; number < 228; ++number) steer(packet(0, number, 0, 1, time += ms));
    promise(time);
    bool timed_out = false;
    for (std::uint64_t number = 1000; number < 1256 && !timed_out; number += 64) {
        for (std::uint64_t i = 0; i < 64; ++i) steer(packet(0, number + i, 0, 1, time += ms));
        promise(time);
        poll();
        EXPECT_GT(steered_.count(), 0U);
        while (const assemble::Event* const got = event())
            timed_out |= got->number == 1 && got->cause == assemble::EventCause::timeout;
    }
    EXPECT_TRUE(timed_out);
}

TEST_F(RxEdgesTest, AnEventWhoseRestNeverComesStillTimesOut) {
    steer(packet(0, 7, 0, 2, 1 * ms));
    promise(300 * ms);
    own_.push(packet(1, 900, 0, 1, 300 * ms));
    poll();
    poll();
    std::vector<std::uint64_t> timed_out;
    while (const assemble::Event* const got = event())
        if (got->cause == assemble::EventCause::timeout) timed_out.push_back(got->number);
    EXPECT_EQ(timed_out, (std::vector<std::uint64_t>{7}));
}

/// Input that waits for room, and a file that answers are kept in.
class RxAnswersTest : public RxEdgesTest {
protected:
    RxAnswersTest() {
        replayed_.wait = true;
        replayed_.answer_log = &answers_;
    }
    AnswerRing answers_;
};

TEST_F(RxAnswersTest, WaitsForThemWhereTheyFindNoRoom) {
    while (answers_.begin() != nullptr) answers_.commit();
    own_.push(packet(0, 7, 0, 1, 1 * ms));
    std::uint64_t tsc = 0;
    const auto blocked = [this] { return rx_->polls().blocked[static_cast<std::size_t>(Blocked::answers)]; };
    EXPECT_EQ(rx_->counted_poll(0, tsc), 0U);
    EXPECT_EQ(own_.count(), 1U) << "it was not taken";
    EXPECT_GT(blocked(), 0U);
    const std::uint64_t before = blocked();
    while (answers_.front() != nullptr) answers_.pop();
    EXPECT_GT(rx_->counted_poll(0, tsc), 0U);
    EXPECT_EQ(own_.count(), 0U);
    EXPECT_EQ(blocked(), before);
}

}  // namespace
}  // namespace weir::pipeline
