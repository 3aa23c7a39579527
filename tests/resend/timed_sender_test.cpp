// Nothing is sent before its time, everything is sent once and in order, and what did not go is counted. How late
// packets are is the machine's affair, and not tested.
#include "resend/timed_sender.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::resend {
namespace {

using core::TimeNs;

/// Takes at most `most` packets at a time, and notes when.
class FakeTarget : public WireTarget {
public:
    struct Note {
        int value = 0;
        std::uint16_t port = 0;
        TimeNs at_ns = 0;
    };

    void load(std::uint32_t slot, std::span<const std::byte> packet, std::uint16_t port) noexcept override {
        slots_[slot] = {std::to_integer<int>(packet[0]), port, 0};
    }
    Taken send(std::uint32_t first, std::uint32_t count) noexcept override {
        if (calls_++ % 3 == 1 || static_cast<int>(sent.size()) >= stands_still_after)
            return {};  // no room now and then
        if (fails_after >= 0 && static_cast<int>(sent.size()) >= fails_after) return {0, false, true};
        if (slots_[first].value == too_long_value) return {1, true, false};
        const std::uint32_t taken = std::min({count, most});
        for (std::uint32_t i = 0; i < taken; ++i) {
            if (slots_[first + i].value == too_long_value) return {i, false, false};
            slots_[first + i].at_ns = core::monotonic_ns();
            sent.push_back(slots_[first + i]);
            ++taken_in_all;
        }
        if (stop != nullptr && static_cast<int>(sent.size()) >= stop_after) *stop = true;
        return {taken, false, false};
    }
    void wait_until_reachable() override {
        EXPECT_EQ(sent.size(), 1U);
        if (nobody_there) throw core::RunError("nobody there");
    }
    bool may_take_more(std::chrono::nanoseconds /*stalled*/) noexcept override {
        return static_cast<int>(sent.size()) < stands_still_after || asked_while_still++ < 5;
    }
    std::string failure() const override { return "it is broken"; }

    std::vector<Note> sent;
    std::atomic<int> taken_in_all{0};  // for another thread
    std::uint32_t most = 5;
    int too_long_value = -1;
    int fails_after = -1;
    int stands_still_after = 1000;
    int asked_while_still = 0;
    bool nobody_there = false;
    std::atomic<bool>* stop = nullptr;
    int stop_after = 0;

private:
    std::array<Note, slots> slots_{};
    int calls_ = 0;
};

class TimedSenders : public testing::Test {
protected:
    TimedSenders() { target_.sent.reserve(1000); }

    void put(int value, TimeNs time_ns) {
        std::byte* const place = ring_.reserve({time_ns, 10, static_cast<std::uint16_t>(1000 + value)});
        ASSERT_NE(place, nullptr);
        std::fill_n(place, 10, static_cast<std::byte>(value));
        ring_.commit();
    }
    void send(double speed) {
        sender_.emplace(ring_, target_, speed, stop_);
        sender_->send();
    }

    FrameRing ring_{std::size_t{1} << 16};
    FakeTarget target_;
    std::atomic<bool> stop_{false};
    std::optional<TimedSender> sender_;
};

TEST_F(TimedSenders, EverythingOnceInOrderAndNeverTooEarly) {
    constexpr TimeNs step_ns = 50'000;
    for (int i = 0; i < 100; ++i) put(i, 7'000'000 + i / 3 * step_ns);  // three at a time
    ring_.end();
    send(2);
    ASSERT_EQ(target_.sent.size(), 100U);
    const TimeNs start_ns = target_.sent[0].at_ns;
    for (int i = 0; i < 100; ++i) {
        const FakeTarget::Note& note = target_.sent[static_cast<std::size_t>(i)];
        EXPECT_EQ(note.value, i);
        EXPECT_EQ(note.port, 1000 + i);
        // The first one may have been late itself.
        EXPECT_GE(note.at_ns - start_ns + static_cast<TimeNs>(sender_->result().late_ns.longest_ns()),
                  i / 3 * step_ns / 2);
    }
    EXPECT_EQ(sender_->packets(), 100U);
    EXPECT_EQ(sender_->bytes(), 1000U);
    EXPECT_EQ(sender_->result().intended_ns, 33 * step_ns / 2);
    EXPECT_GE(sender_->result().actual_ns + static_cast<TimeNs>(sender_->result().late_ns.longest_ns()),
              33 * step_ns / 2);
    std::uint64_t counted = 0;
    for (std::size_t bucket = 0; bucket < core::LatencyHistogram::buckets; ++bucket)
        counted += sender_->result().late_ns.count(bucket);
    EXPECT_EQ(counted, 100U);
    EXPECT_GT(sender_->result().for_target.times, 0U);
}

TEST_F(TimedSenders, WithoutAPaceNothingIsDue) {
    for (int i = 0; i < 100; ++i) put(i, i * core::ns_per_s);
    ring_.end();
    send(0);
    EXPECT_EQ(target_.sent.size(), 100U);
    EXPECT_EQ(sender_->result().late_ns.longest_ns(), 0U);
    EXPECT_EQ(sender_->result().intended_ns, 0);
}

TEST_F(TimedSenders, TheFileMayBeSlow) {
    std::thread writer([this] {
        for (int i = 0; i < 20; ++i) {
            put(i, 1000 * i);
            while (target_.taken_in_all <= i) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::microseconds(200));  // in which the sender finds nothing
        }
        ring_.end();
    });
    send(1);
    writer.join();
    EXPECT_EQ(target_.sent.size(), 20U);
    EXPECT_GT(sender_->result().for_file.times, 0U);
}

TEST_F(TimedSenders, TooLongIsCountedAndTheOthersGo) {
    target_.too_long_value = 3;
    for (int i = 0; i < 10; ++i) put(i, 0);
    ring_.end();
    send(1);
    EXPECT_EQ(target_.sent.size(), 9U);
    EXPECT_EQ(sender_->packets(), 9U);
    EXPECT_EQ(sender_->not_sent().get(NotSent::too_long), 1U);
}

TEST_F(TimedSenders, StopLeavesTheRestCounted) {
    target_.stop = &stop_;
    target_.stop_after = 7;
    target_.most = 2;
    for (int i = 0; i < 10; ++i) put(i, 0);
    put(10, 3600 * core::ns_per_s);
    ring_.end();
    send(1);
    EXPECT_TRUE(sender_->result().interrupted);
    EXPECT_GT(sender_->not_sent().get(NotSent::unsent), 0U);
    std::uint64_t left = 0;
    for (; ring_.front() != nullptr; ++left) ring_.pop();
    EXPECT_EQ(sender_->packets() + sender_->not_sent().get(NotSent::unsent) + left, 11U);
}

TEST_F(TimedSenders, ATargetThatFailsEndsIt) {
    target_.fails_after = 4;
    target_.most = 2;
    for (int i = 0; i < 10; ++i) put(i, 0);
    ring_.end();
    send(1);
    EXPECT_EQ(sender_->result().error, "it is broken");
    EXPECT_FALSE(sender_->result().interrupted);
    EXPECT_LT(sender_->packets(), 10U);
}

TEST_F(TimedSenders, ATargetThatTakesNothingIsWaitedForUntilItSaysThatThisIsInVain) {
    target_.stands_still_after = 4;
    target_.most = 2;
    for (int i = 0; i < 10; ++i) put(i, 0);
    ring_.end();
    send(1);
    EXPECT_EQ(sender_->result().error, "it is broken");
    EXPECT_EQ(target_.asked_while_still, 6);
    EXPECT_EQ(sender_->packets(), target_.sent.size());
    EXPECT_LT(sender_->packets(), 10U);
    EXPECT_GE(sender_->result().for_target.times, 1U);
}

TEST_F(TimedSenders, WhereNobodyIsThereOnePacketIsTheLast) {
    target_.nobody_there = true;
    for (int i = 0; i < 10; ++i) put(i, 0);
    ring_.end();
    send(1);
    EXPECT_EQ(sender_->result().error, "nobody there");
    EXPECT_EQ(sender_->packets(), 1U);
}

}  // namespace
}  // namespace weir::resend
