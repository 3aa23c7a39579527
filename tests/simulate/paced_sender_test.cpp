#include "simulate/paced_sender.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/error.hpp"
#include "frames_of.hpp"

namespace weir::simulate {
namespace {

TEST(Pacer, EventsAreDueAtTheirRate) {
    Pacer pacer({.events_per_s = 1000, .gbps = 0});
    EXPECT_TRUE(pacer.paced());
    EXPECT_EQ(pacer.due_ns(0, 8282), 0);
    EXPECT_EQ(pacer.due_ns(0.5, 8282), 500'000);
    EXPECT_EQ(pacer.due_ns(3600e3, 60), 3600 * core::ns_per_s);
}

TEST(Pacer, BitsAreThoseOfTheWire) {
    Pacer pacer({.events_per_s = 0, .gbps = 10});
    EXPECT_EQ(pacer.due_ns(0, 1000), 0);
    EXPECT_EQ(pacer.due_ns(0, 20), 819) << "1024 bytes at 0.8 ns each";
    EXPECT_EQ(pacer.due_ns(0, 60), 886) << "a short frame is padded: 84 bytes more";
}

TEST(Pacer, WithoutARateEverythingIsDue) {
    Pacer pacer({});
    EXPECT_FALSE(pacer.paced());
    EXPECT_EQ(pacer.due_ns(1e6, 9000), 0);
    EXPECT_LE(pacer.wait_ns(0, core::ns_per_s), 0);
    EXPECT_EQ(pacer.lag_ns_max(), 0);
    EXPECT_EQ(pacer.slipped_ns(), 0);
}

TEST(Pacer, CatchesUpAShortPauseAndGivesUpALongOne) {
    Pacer pacer({.events_per_s = 1, .gbps = 0});
    EXPECT_EQ(pacer.wait_ns(5000, 2000), 3000);
    const core::TimeNs ms = core::ns_per_ms;
    EXPECT_EQ(pacer.wait_ns(100 * ms, 109 * ms), -9 * ms);
    EXPECT_EQ(pacer.lag_ns_max(), 9 * ms);
    EXPECT_EQ(pacer.slipped_ns(), 0);
    EXPECT_EQ(pacer.wait_ns(200 * ms, 300 * ms), -100 * ms);
    EXPECT_EQ(pacer.lag_ns_max(), 100 * ms);
    EXPECT_EQ(pacer.slipped_ns(), 90 * ms);
    EXPECT_EQ(pacer.wait_ns(400 * ms, 300 * ms), 190 * ms) << "later frames are due later";
}

/// Keeps what it is given; takes only `room` frames.
class FakeTarget : public FrameTarget {
public:
    explicit FakeTarget(std::uint32_t slot_bytes) : slot_bytes_(slot_bytes), memory_(std::size_t{slots} * slot_bytes) {}
    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return std::span(memory_).subspan(std::size_t{index} * slot_bytes_, slot_bytes_);
    }
    std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) override {
        EXPECT_LE(first + frames.size(), slots);
        std::uint32_t taken = 0;
        for (const OutgoingFrame& outgoing : frames) {
            if (sent.size() == room) {
                break;
            }
            const std::span<std::byte> bytes = slot(first + taken++).first(outgoing.frame.bytes);
            sent.emplace_back(bytes.begin(), bytes.end());
            times_ns.push_back(outgoing.time_ns);
        }
        if (on_send) {
            on_send();
        }
        return taken;
    }
    void finish() override { ++finished; }

    std::vector<std::vector<std::byte>> sent;
    std::vector<core::TimeNs> times_ns;
    std::size_t room = ~std::size_t{0};
    int finished = 0;
    std::function<void()> on_send;

private:
    std::size_t slot_bytes_;
    std::vector<std::byte> memory_;
};

const SimulatorConfig small{
    .format = "ejfat", .sources = 2, .events = 60, .drop = 0.01, .duplicate = 0.01, .truncate = 0.01, .reorder = 9};

TEST(PacedSender, SendsEveryFrameOnceAndInOrder) {
    const std::atomic<bool> stop{false};
    for (const double rate : {0.0, 2000.0}) {
        Simulator simulator(small);
        FakeTarget target(simulator.frame_bytes_max());
        const PacedSender::Result result =
            PacedSender(simulator, target, {.pace = {.events_per_s = rate, .gbps = 0}, .on_progress = {}}, stop).send();
        EXPECT_TRUE(target.sent == frames_of(small));
        EXPECT_EQ(target.finished, 1);
        EXPECT_EQ(result.refused, 0U);
        EXPECT_FALSE(result.interrupted);
        if (rate > 0) {
            EXPECT_GT(result.seconds, 59 / rate);
        }
    }
}

TEST(PacedSender, ACaptureHasTheTimesOfTheSchedule) {
    const std::atomic<bool> stop{false};
    Simulator simulator(small);
    FakeTarget target(simulator.frame_bytes_max());
    const auto begin = std::chrono::steady_clock::now();
    const PacedSender::Result result =
        PacedSender(simulator, target, {.pace = {.events_per_s = 0.1, .gbps = 0}, .live = false, .on_progress = {}},
                    stop)
            .send();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "nothing waits";
    EXPECT_DOUBLE_EQ(result.seconds, 600);
    EXPECT_TRUE(std::ranges::is_sorted(target.times_ns));
    EXPECT_GE(target.times_ns.front(), PacedSender::capture_start_ns);
    EXPECT_GT(target.times_ns.back(), PacedSender::capture_start_ns + 590 * core::ns_per_s);
}

TEST(PacedSender, StopsWithAWholeEventAndAnExactAccount) {
    std::atomic<bool> stop{false};
    Simulator simulator({.format = "ejfat", .sources = 3});  // without end
    FakeTarget target(simulator.frame_bytes_max());
    target.on_send = [&] { stop = target.sent.size() > 500; };
    const PacedSender::Result result = PacedSender(simulator, target, {.pace = {}, .on_progress = {}}, stop).send();
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(target.sent.size(), simulator.account().total().emitted);
    EXPECT_EQ(simulator.account().events_whole, simulator.account().events);
    EXPECT_LT(target.sent.size(), 1000U);
}

TEST(PacedSender, StopsWhileWaitingForASlowRate) {
    std::atomic<bool> stop{false};
    Simulator simulator({.format = "message"});
    FakeTarget target(simulator.frame_bytes_max());
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // mostly it waits by then
        stop = true;
    });
    const PacedSender::Result result =
        PacedSender(simulator, target, {.pace = {.events_per_s = 0.01, .gbps = 0}, .on_progress = {}}, stop).send();
    later.join();
    EXPECT_TRUE(result.interrupted);
    EXPECT_LT(result.seconds, 90);
    EXPECT_LE(target.sent.size(), 2U);
}

TEST(PacedSender, EndsAfterItsDuration) {
    const std::atomic<bool> stop{false};
    Simulator simulator({.format = "message"});
    FakeTarget target(simulator.frame_bytes_max());
    const PacedSender::Result result =
        PacedSender(simulator, target,
                    {.pace = {.events_per_s = 1000, .gbps = 0}, .duration_s = 0.1, .on_progress = {}}, stop)
            .send();
    EXPECT_FALSE(result.interrupted);
    EXPECT_GE(result.seconds, 0.1);
    EXPECT_GT(target.sent.size(), 0U);
    EXPECT_LE(target.sent.size(), 110U);
}

TEST(PacedSender, CountsWhatTheTargetRefused) {
    const std::atomic<bool> stop{false};
    Simulator simulator(small);
    FakeTarget target(simulator.frame_bytes_max());
    target.room = 100;
    const PacedSender::Result result = PacedSender(simulator, target, {.pace = {}, .on_progress = {}}, stop).send();
    EXPECT_EQ(target.sent.size(), 100U);
    EXPECT_EQ(result.refused, simulator.account().total().emitted - 100);
}

}  // namespace
}  // namespace weir::simulate
