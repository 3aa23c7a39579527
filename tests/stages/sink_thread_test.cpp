// The thread of a sink: what it does with buffers of workers when the sink is slow, fails, or keeps them for a while.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "topology.hpp"

namespace weir::stages::test {
namespace {

/// Takes its time, fails when it is told to, or goes on reading buffers after it was given them.
class MoodySink final : public MemorySink {
public:
    void append(std::span<std::byte> blocks) override {
        std::this_thread::sleep_for(slow);
        if (appended == fail_at) fail();
        ++appended;
        MemorySink::append(blocks);
        if (holds == 0) return;
        held_.push_back({blocks, core::crc32c(blocks)});
        if (held_.size() > holds) let_go();
    }
    [[nodiscard]] std::size_t held() const noexcept override { return held_.size(); }
    void collect() override {
        if (failed()) throw core::RunError("collect after a failure");
        if (++collected % 8 == 0 && !held_.empty()) let_go();
    }
    void finish_data() override {
        data_finished = true;
        while (!held_.empty()) let_go();
        if (fail_to_finish) fail();
    }

    std::chrono::microseconds slow{0};
    std::uint64_t fail_at = UINT64_MAX;  ///< the append that fails
    bool fail_to_finish = false;
    std::size_t holds = 0;  ///< buffers that it goes on reading after append()
    std::uint64_t appended = 0;
    std::uint64_t collected = 0;
    bool data_finished = false;

private:
    struct Held {
        std::span<const std::byte> bytes;
        std::uint32_t crc = 0;
    };
    void let_go() {
        EXPECT_EQ(core::crc32c(held_.front().bytes), held_.front().crc) << "the buffer was given back too early";
        held_.pop_front();
    }
    std::deque<Held> held_;
};

/// Workers made by hand, with one buffer for each few events.
class SinkThreadTest : public testing::Test {
protected:
    struct Worker {
        explicit Worker(std::uint32_t index)
            : full("full" + std::to_string(index), 8), free("free" + std::to_string(index), 8), memory(8 * bytes) {
            for (std::uint32_t i = 0; i < 8; ++i) {
                buffers[i].memory = memory.span().subspan(i * bytes, bytes);
                buffers[i].worker = index;
                free.push(&buffers[i]);
            }
        }
        static constexpr std::size_t bytes = store::BlockWriter::buffer_bytes_min;
        port::Ring<OutputBuffer*> full;
        port::Ring<OutputBuffer*> free;
        store::AlignedBytes memory;
        std::array<OutputBuffer, 8> buffers;
        std::atomic<bool> finished{false};
    };

    void SetUp() override {
        for (std::uint32_t i = 0; i < 2; ++i) workers_.push_back(std::make_unique<Worker>(i));
    }
    /// One after the other; the first gets the workers' buffers, the last gives them back.
    void start(const std::vector<MemorySink*>& sinks) {
        for (std::size_t i = 0; i < sinks.size(); ++i) {
            SinkThread::Config config;
            config.sink = sinks[i];
            if (i == 0) {
                for (const auto& worker : workers_)
                    config.in.push_back({&worker->full, [from = worker.get()] { return from->finished.load(); }});
            } else {
                config.in.push_back(
                    {between_[i - 1].get(), [before = threads_[i - 1].get()] { return before->finished(); }});
            }
            if (i + 1 < sinks.size()) {
                between_.push_back(std::make_unique<port::Ring<OutputBuffer*>>("between" + std::to_string(i), 16));
                config.next = between_.back().get();
            } else {
                for (const auto& worker : workers_) config.freed.push_back(&worker->free);
            }
            threads_.push_back(std::make_unique<SinkThread>(std::move(config)));
        }
        for (const auto& thread : threads_) thread->start();
    }
    OutputBuffer* take(Worker& worker) {
        std::array<OutputBuffer*, 1> taken;
        for (int i = 0; i < 60'000; ++i) {
            if (worker.free.pop(taken) == 1) return taken[0];
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ADD_FAILURE() << "no buffer comes back";
        return nullptr;
    }
    /// An event of one source in `pieces` buffers of the worker's.
    void send(std::uint32_t worker_index, std::uint64_t number, std::uint32_t pieces = 1) {
        Worker& worker = *workers_[worker_index];
        store::BlockWriter writer;
        OutputBuffer* buffer = nullptr;
        for (std::uint32_t piece = 0; piece < pieces; ++piece) {
            buffer = take(worker);
            ASSERT_NE(buffer, nullptr);
            writer.reset(buffer->memory);
            if (piece == 0) put_heads(writer, number, pieces);
            const std::span<std::byte> room = writer.open_payload();
            for (std::uint32_t i = 0; i < piece_bytes; ++i) room[i] = byte_of(0, number, piece * piece_bytes + i);
            writer.close_payload(piece_bytes, piece_bytes, store::Encoding::raw, piece + 1 == pieces);
            buffer->used_bytes = writer.blocks().size();
            buffer->event_open = writer.event_open();
            buffer->events_ended = piece + 1 == pieces ? 1 : 0;
            ASSERT_TRUE(worker.full.push(buffer));
        }
        ++sent_;
    }
    void finish() {
        for (const auto& worker : workers_) worker->finished = true;
        for (const auto& thread : threads_) {
            thread->join();
            EXPECT_TRUE(thread->finished());
            EXPECT_EQ(thread->written() + thread->lost(), sent_) << "each event is written or lost";
        }
        for (const auto& worker : workers_) EXPECT_EQ(worker->free.count(), 8U) << "all buffers came back";
    }
    SinkThread& thread(std::size_t i = 0) { return *threads_[i]; }

    static constexpr std::uint32_t piece_bytes = 1000;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::unique_ptr<port::Ring<OutputBuffer*>>> between_;
    std::vector<std::unique_ptr<SinkThread>> threads_;
    std::uint64_t sent_ = 0;

private:
    static void put_heads(store::BlockWriter& writer, std::uint64_t number, std::uint32_t pieces) {
        const std::uint32_t bytes = pieces * piece_bytes;
        store::EventRecord event;
        event.id = number;
        event.sources = 1;
        event.complete = true;
        event.payload_bytes = bytes;
        event.packets = 1;
        store::SourceRecord source;
        source.declared_bytes = source.received_bytes = bytes;
        source.packets = 1;
        EXPECT_TRUE(writer.put_event(event));
        EXPECT_TRUE(writer.put_source(source, {}));
    }
};

TEST_F(SinkThreadTest, GivesTheSinkEverythingAndTheWorkersTheirBuffers) {
    MoodySink sink;
    start({&sink});
    for (std::uint64_t number = 0; number < 100; ++number) send(number % 2, number);
    finish();
    EXPECT_EQ(thread().written(), 100U);
    EXPECT_FALSE(thread().failed());
    EXPECT_TRUE(sink.data_finished);
    EXPECT_EQ(sink.events().size(), 100U);
    EXPECT_EQ(wrong_bytes(sink.events()), "");
}

TEST_F(SinkThreadTest, BuffersThatShareAnEventFollowEachOtherWhateverOthersSend) {
    MoodySink sink;
    start({&sink});
    std::thread other([this] {
        for (std::uint64_t number = 1000; number < 1040; ++number) {
            Worker& worker = *workers_[1];
            OutputBuffer* buffer = take(worker);
            ASSERT_NE(buffer, nullptr);
            store::BlockWriter writer;
            writer.reset(buffer->memory);
            store::EventRecord event;
            event.id = number;
            event.complete = true;
            EXPECT_TRUE(writer.put_event(event));
            static_cast<void>(writer.open_payload());
            writer.close_payload(0, 0, store::Encoding::raw, true);
            buffer->used_bytes = writer.blocks().size();
            buffer->event_open = false;
            buffer->events_ended = 1;
            worker.full.push(buffer);
        }
    });
    for (std::uint64_t number = 0; number < 20; ++number) send(0, number, 11);  // more pieces than there are buffers
    other.join();
    sent_ += 40;
    finish();
    EXPECT_EQ(sink.events().size(), 60U);
    EXPECT_EQ(wrong_bytes(sink.events()), "");
}

TEST_F(SinkThreadTest, ASlowSinkHoldsWorkersUpAndLosesNothing) {
    MoodySink sink;
    sink.slow = std::chrono::milliseconds(2);
    start({&sink});
    for (std::uint64_t number = 0; number < 60; ++number) send(number % 2, number);
    finish();
    EXPECT_EQ(thread().written(), 60U);
    EXPECT_EQ(sink.events().size(), 60U);
}

TEST_F(SinkThreadTest, AfterAnErrorBuffersGoOnComingBackAndWhatFollowsIsLost) {
    MoodySink sink;
    sink.fail_at = 10;
    start({&sink});
    for (std::uint64_t number = 0; number < 60; ++number) send(0, number);
    finish();
    EXPECT_TRUE(thread().failed());
    EXPECT_EQ(thread().error(), "the disk is on fire");
    EXPECT_EQ(thread().written(), 10U);
    EXPECT_EQ(thread().lost(), 50U);
    EXPECT_EQ(sink.appended, 10U) << "nothing is tried after an error";
}

TEST_F(SinkThreadTest, AnErrorAtTheEndIsAnErrorOfTheRun) {
    MoodySink sink;
    sink.fail_to_finish = true;
    start({&sink});
    for (std::uint64_t number = 0; number < 5; ++number) send(0, number);
    finish();
    EXPECT_TRUE(thread().failed());
}

TEST_F(SinkThreadTest, BuffersThatTheSinkStillReadsAreNotGivenBackBeforeItLetsGo) {
    MoodySink sink;
    sink.holds = 8;  // all there are, until it lets go of one
    start({&sink});
    for (std::uint64_t number = 0; number < 100; ++number) send(0, number);
    finish();
    EXPECT_GT(sink.collected, 0U);
    EXPECT_EQ(sink.events().size(), 100U);
    EXPECT_EQ(wrong_bytes(sink.events()), "");
}

TEST_F(SinkThreadTest, SeveralSinksAllGetAllOfIt) {
    MoodySink first;
    MoodySink second;
    second.slow = std::chrono::milliseconds(1);
    start({&first, &second});
    for (std::uint64_t number = 0; number < 60; ++number) send(number % 2, number, 1 + number % 3);
    finish();
    EXPECT_EQ(difference(first.events(), second.events()), "");
    EXPECT_EQ(first.events().size(), 60U);
}

TEST_F(SinkThreadTest, ASinkThatFailsTakesNothingFromTheNext) {
    MoodySink first;
    first.fail_at = 3;
    MoodySink second;
    start({&first, &second});
    for (std::uint64_t number = 0; number < 60; ++number) send(number % 2, number);
    finish();
    EXPECT_EQ(thread(0).lost(), 57U);
    EXPECT_EQ(thread(1).written(), 60U);
    EXPECT_EQ(wrong_bytes(second.events()), "");
}

/// Behind real workers: what the ledger says of a sink that fails.
class FailingRunTest : public StagesTest {};

TEST_F(FailingRunTest, ALedgerWithAFailedSinkBalancesAndEverythingComesBack) {
    MoodySink sink;
    sink.fail_at = 2;
    Shape shape;
    shape.workers = 2;
    shape.output_buffers = 2;
    shape.output_buffer_bytes = store::BlockWriter::buffer_bytes_min;
    Topology all(shape, &sink);
    all.start_threads();
    for (std::uint64_t number = 0; number < 200; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) {
            port::Packet packet;
            while ((packet = make_.make({source, number, 0, 1500, 1500, static_cast<TimeNs>(number)})).mbuf == nullptr)
                std::this_thread::yield();
            while (!all.try_feed(packet)) std::this_thread::yield();
        }
    all.finish_threads();
    EXPECT_EQ(all.account().imbalance(), "");
    EXPECT_EQ(all.not_given_back(pool_), "");
    EXPECT_GT(all.count(EventCounter::dropped_write_error), 0U);
    EXPECT_EQ(all.count(EventCounter::dropped_write_error) + all.count(EventCounter::written), 200U);
}

}  // namespace
}  // namespace weir::stages::test
