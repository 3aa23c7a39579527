#include "bench/sender.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <vector>

namespace {

using weir::bench::Load;
using weir::bench::PacketPlan;
using weir::bench::send_load;
using weir::bench::Sender;
using weir::bench::SenderCounts;

const PacketPlan sent_plan{.trial = 1, .bytes = 1000, .packets = 4};

/// Counts; takes at most so many packets in all.
class CountingSender : public Sender {
public:
    explicit CountingSender(std::uint64_t most = UINT64_MAX) : most_(most) {}
    void prepare(const PacketPlan&) override {
        sent_ = calls_ = 0;
        largest_ = 0;
    }
    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        EXPECT_EQ(first, sent_);
        EXPECT_LE(count, burst());
        ++calls_;
        const auto taken = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, most_ - sent_));
        largest_ = std::max(largest_, taken);
        sent_ += taken;
        return taken;
    }
    [[nodiscard]] std::uint32_t burst() const noexcept override { return 32; }
    [[nodiscard]] std::optional<std::uint64_t> on_wire() override { return total_ + sent_; }

    std::uint64_t most_;
    std::uint64_t sent_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t calls_ = 0;
    std::uint32_t largest_ = 0;
};

class SendLoad : public testing::Test {
protected:
    std::atomic<bool> asked_{false};
    std::atomic<bool> gone_{false};
    /// A trial ends some time after its last packet was due. Where the process had no CPU until then it is repeated,
    /// and says so.
    SenderCounts send(CountingSender& sender, const Load& load) {
        for (int tries = 1;; ++tries) {
            SenderCounts counts = send_load(sender, sent_plan, load, "", {asked_, gone_});
            const std::uint64_t all = load.ramp_packets(sent_plan) + load.packets(sent_plan);
            const bool stops = load.unpaced || asked_ || gone_;
            if (stops || sender.sent_ == std::min(all, sender.most_) || tries == 100) return counts;
            std::cout << "repeated: of " << all << " packets " << sender.sent_ << " were sent in time\n";
        }
    }
};

TEST_F(SendLoad, AllPacketsOfWholeMessagesAreSent) {
    CountingSender sender;
    const SenderCounts counts = send(sender, {.packets_per_s = 100'000, .seconds = 0.0101});
    EXPECT_EQ(counts.intended, 1012U);  // 253 messages
    EXPECT_EQ(counts.handed_over, counts.intended);
    EXPECT_EQ(counts.offered, counts.intended);
    EXPECT_EQ(counts.on_wire, counts.intended);
    EXPECT_GE(counts.took_s, counts.planned_s * 0.99 - 1e-3);
    EXPECT_TRUE(counts.stopped.empty());
}

TEST_F(SendLoad, TheRampIsInNoOtherCount) {
    CountingSender sender;
    const SenderCounts counts = send(sender, {.packets_per_s = 100'000, .seconds = 0.02, .ramp_s = 0.01});
    EXPECT_EQ(counts.ramp, 500U);
    EXPECT_EQ(counts.intended, 2000U);
    EXPECT_EQ(counts.offered, 2000U);
    EXPECT_EQ(counts.handed_over, 2000U);
    EXPECT_EQ(counts.on_wire, 2000U);
    EXPECT_EQ(sender.sent_, 2500U);
    EXPECT_DOUBLE_EQ(counts.planned_s, 0.02);
    EXPECT_GE(counts.took_s, 0.0199);
}

TEST_F(SendLoad, WhoEndsInTheRampHasSentNothing) {
    CountingSender sender(100);
    const SenderCounts counts = send(sender, {.packets_per_s = 100'000, .seconds = 0.02, .ramp_s = 0.01});
    EXPECT_EQ(counts.ramp, 100U);
    EXPECT_EQ(counts.handed_over, 0U);
    EXPECT_EQ(counts.intended, 2000U);
}

TEST_F(SendLoad, UnpacedEverythingThatWasSentWasTheLoad) {
    CountingSender sender;
    const SenderCounts counts = send(sender, {.packets_per_s = 1e9, .seconds = 0.02, .ramp_s = 0.01, .unpaced = true});
    EXPECT_GT(counts.handed_over, 2000U);
    EXPECT_EQ(counts.handed_over % sent_plan.packets, 0U);
    EXPECT_EQ(counts.intended, counts.handed_over);
    EXPECT_EQ(counts.offered, counts.handed_over);
    EXPECT_EQ(counts.on_wire, counts.handed_over);
    EXPECT_EQ(counts.ramp, 0U);
    EXPECT_EQ(counts.planned_s, counts.took_s);
    EXPECT_LT(counts.took_s, 10);
}

TEST_F(SendLoad, WhatIsKeptBackOnPurposeLeftTheSender) {
    class Keeping : public CountingSender {
    public:
        [[nodiscard]] std::uint64_t kept_back() const noexcept override { return sent_ / 4; }
        [[nodiscard]] std::optional<std::uint64_t> on_wire() override { return sent_ - sent_ / 4; }
    };
    Keeping sender;
    EXPECT_EQ(send(sender, {.packets_per_s = 100'000, .seconds = 0.01}).on_wire, 1000U);
}

TEST_F(SendLoad, ALoadIsAtLeastAMessage) {
    EXPECT_EQ((Load{.packets_per_s = 1, .seconds = 0.001}.packets(sent_plan)), 4U);
}

TEST_F(SendLoad, ASenderThatTakesNoMoreEndsAndSaysHowManyItTook) {
    CountingSender sender(100);
    const SenderCounts counts = send(sender, {.packets_per_s = 100'000, .seconds = 0.02});
    EXPECT_EQ(counts.handed_over, 100U);
    EXPECT_EQ(counts.intended, 2000U);
    EXPECT_EQ(counts.offered, counts.intended);
    EXPECT_GT(counts.took_s, 0.02);
}

TEST_F(SendLoad, BurstsGoTogether) {
    CountingSender sender;
    const SenderCounts counts = send(sender, {.packets_per_s = 10'000, .seconds = 0.02, .burst = 20});
    EXPECT_EQ(counts.handed_over, 200U);
    EXPECT_GE(sender.largest_, 20U);
    EXPECT_LE(sender.calls_, 20U);
}

/// The interface's counters are asked for, and there is one that counts.
TEST_F(SendLoad, OfJoinedPacketsNobodySaysHowManyWentOut) {
    class Kernels : public CountingSender {
    public:
        explicit Kernels(bool joins) : joins_(joins) {}
        [[nodiscard]] std::optional<std::uint64_t> on_wire() override { return std::nullopt; }
        [[nodiscard]] bool joins_packets() const noexcept override { return joins_; }
        bool joins_;
    };
    for (const bool joins : {false, true}) {
        Kernels sender(joins);
        const SenderCounts counts =
            send_load(sender, sent_plan, {.packets_per_s = 100'000, .seconds = 0.001}, "lo", {asked_, gone_});
        EXPECT_EQ(counts.on_wire.has_value(), !joins);
    }
}

TEST_F(SendLoad, NothingIsSentOnceTheOtherSideIsGone) {
    gone_ = true;
    CountingSender sender;
    const SenderCounts counts = send(sender, {.packets_per_s = 1000, .seconds = 10});
    EXPECT_EQ(counts.handed_over, 0U);
    EXPECT_EQ(counts.stopped, "the trial was stopped");
}

}  // namespace
