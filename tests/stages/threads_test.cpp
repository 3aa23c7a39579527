// Each stage on a thread of its own, for ThreadSanitizer: the same events as polled by hand, and everything given back.
#include <gtest/gtest.h>

#include "made_capture.hpp"
#include "roce/responder/queue_pair_control.hpp"

namespace weir::stages::test {
namespace {

class ThreadsTest : public StagesTest {
protected:
    static Shape spread() {
        Shape shape;
        shape.sources = 3;
        shape.rx = shape.builders = shape.workers = 2;
        return shape;
    }
    static Capture capture(std::uint32_t events) {
        std::vector<std::uint32_t> seeds;
        for (std::uint32_t i = 0; i < events; ++i) seeds.push_back(i * 7919 + 17);
        return made_capture(seeds, 3, spread().timeout_ns);
    }
    /// From this thread, as a feeder does: waits for buffers and for room.
    void feed(Topology& all, std::span<const std::byte> frame, TimeNs time, std::uint32_t rx = 0) {
        port::Packet packet;
        while ((packet = make_.make(frame, time)).mbuf == nullptr) std::this_thread::yield();
        while (!all.try_feed(packet, rx)) std::this_thread::yield();
    }
    void feed(Topology& all, const Capture& capture) {
        for (const CapturedPacket& captured : capture) feed(all, frame_of(captured.part), captured.part.time);
    }
};

TEST_F(ThreadsTest, ACaptureGivesTheSameEventsAsPolledByHand) {
    const Capture packets = capture(400);
    Shape fused;
    fused.sources = 3;
    Topology by_hand(fused);
    for (const CapturedPacket& captured : packets) by_hand.feed(make_.make(captured.part));
    by_hand.finish();
    Topology all(spread());
    all.start_threads();
    feed(all, packets);
    all.finish_threads();
    expect_clean_end(all, pool_);
    EXPECT_EQ(difference(all.events(), by_hand.events()), "");
    EXPECT_EQ(all.count(PacketCounter::placed), by_hand.count(PacketCounter::placed));
}

TEST_F(ThreadsTest, WithShortRingsAndFewBuffersEveryoneWaitsForEveryone) {
    Shape shape = spread();
    shape.builders = 1;
    shape.packet_ring = shape.steer_ring = shape.descriptor_ring = shape.command_ring = 8;
    shape.buffers_max = 256;
    shape.open_max = 12;
    shape.queued_max = 6;
    shape.output_buffers = 1;
    Topology all(shape);
    all.start_threads();
    feed(all, capture(300));
    all.finish_threads();
    expect_clean_end(all, pool_);
    EXPECT_EQ(all.count(PacketCounter::no_room), 0U);
}

TEST_F(ThreadsTest, UnderOverloadEachPacketOfLiveInputIsCountedOnce) {
    for (const auto overload :
         {assemble::Overload::evict_oldest, assemble::Overload::refuse_new, assemble::Overload::prescale}) {
        Shape shape = spread();
        shape.wait = false;
        shape.overload = overload;
        shape.prescale = 3;
        shape.steer_ring = 16;
        shape.messages_max = 40;
        shape.open_max = 6;
        shape.queued_max = 4;
        Topology all(shape);
        all.start_threads();
        feed(all, capture(150));
        all.finish_threads();
        expect_clean_end(all, pool_);
    }
}

/// What happens beside the data: answers of a responder go to a thread, its queue pair is connected from another, and
/// every packet is copied for a recorder.
TEST_F(ThreadsTest, AnswersCommandsAndCopiesForARecorderGoBetweenThreads) {
    AnswerRing answers;
    roce::QueuePairControl control;
    RecordRing record(RecordRing::blocks_min, 0);
    Shape shape;
    shape.rx = shape.builders = 2;
    shape.sources_needed = 1;
    roce::QueuePair queue_pair;
    queue_pair.peer_qp = 0x77;
    queue_pair.psn = 100;
    shape.with_rx = [&](RxStage::Config& config) {
        if (config.index == 0) {
            config.record = &record;
            return;
        }
        config.listener.sources = {{.source = 1}};
        config.responder.sources = {{.source = 1, .queue_pair = queue_pair, .ready = false}};
        config.table.keeps = true;
        config.answer_log = &answers;
        config.queue_pairs = &control;
    };
    Topology all(shape);
    std::atomic<bool> over{false};
    std::uint64_t copies = 0;
    std::uint64_t answered = 0;
    std::thread reader([&] {
        std::uint64_t at = 0;
        for (bool last = false; !last;) {
            last = over.load();
            const std::uint64_t end = record.written();
            for (at = record.record_from(at, end); at < end; at = record.record_from(record.next(at), end)) {
                EXPECT_EQ(record.bytes_at(at).size(), record.head_at(at).wire_bytes);
                ++copies;
            }
            record.release(at);
            for (; answers.front() != nullptr; answers.pop()) answered += answers.front()->bytes > 0 ? 1 : 0;
            std::this_thread::yield();
        }
    });
    all.start_threads();
    EXPECT_TRUE(control.post({roce::QueuePairCommand::Kind::configure, 1, queue_pair}));
    std::optional<roce::Responder::Status> status;
    while (!(status = control.answer())) std::this_thread::yield();
    EXPECT_EQ(status->state, roce::QueuePairState::ready);
    std::uint32_t psn = 100;
    std::uint64_t sent = 0;
    constexpr std::uint32_t messages = 200;
    for (std::uint32_t number = 0; number < messages; ++number) {
        for (const Bytes& frame : roce_frames_of(1, number, 1000, psn)) {
            feed(all, frame, number);
            ++psn;
            ++sent;
        }
        feed(all, frame_of({.source = 0, .number = 10'000 + number}), number);
        ++sent;
        if (number % 16 == 0) {
            EXPECT_EQ(all.rx(1).queue_pair(1).state, roce::QueuePairState::ready);
        }
    }
    all.finish_threads();
    over = true;
    reader.join();
    expect_clean_end(all, pool_);
    EXPECT_EQ(all.count(EventCounter::complete), 2 * messages);
    EXPECT_EQ(all.rx(1).answers().get(roce::AnswerCounter::ack), messages);
    EXPECT_EQ(answered, messages);
    EXPECT_EQ(copies, sent);
    EXPECT_EQ(all.rx(1).queue_pair(1).psn, psn);
}

TEST_F(ThreadsTest, AnyThreadMayLookAtWhatStagesCount) {
    Topology all(spread());
    all.start_threads();
    std::atomic<bool> over{false};
    std::uint64_t looks = 0;
    std::thread looker([&] {
        while (!over) {
            // What the control thread reads for progress and telemetry.
            for (std::uint32_t i = 0; i < 2; ++i) {
                looks += all.rx(i).received_packets() + all.rx(i).buffers_held() +
                         all.rx(i).packets().get(PacketCounter::placed);
                looks += all.build(i).open_events() + all.build(i).queued_events() +
                         all.build(i).events().get(EventCounter::opened);
                looks +=
                    all.work(i).raw_bytes() + all.work(i).stored_bytes() + all.work(i).missing_packets(0).guessed();
                looks += all.rx(i).polls().busy + all.build(i).polls().idle + all.descriptors(0, i).count();
            }
            looks += all.sink_thread().written() + all.sink_thread().bytes();
            std::this_thread::yield();
        }
    });
    feed(all, capture(150));
    all.finish_threads();
    over = true;
    looker.join();
    EXPECT_GT(looks, 0U);
    expect_clean_end(all, pool_);
}

}  // namespace
}  // namespace weir::stages::test
