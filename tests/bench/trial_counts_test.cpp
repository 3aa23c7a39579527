#include "bench/trial_counts.hpp"

#include <gtest/gtest.h>

namespace {

using weir::bench::judge;
using weir::bench::Judgement;
using weir::bench::Losses;
using weir::bench::ReceiverCounts;
using weir::bench::SenderCounts;

SenderCounts sent(std::uint64_t packets) {
    SenderCounts counts;
    counts.intended = counts.offered = counts.handed_over = packets;
    counts.on_wire = packets;
    counts.planned_s = counts.took_s = 1;
    return counts;
}

ReceiverCounts received(std::uint64_t packets) {
    ReceiverCounts counts;
    counts.arrived = counts.taken = counts.received = packets;
    counts.kernel_dropped = counts.device_dropped = 0;
    return counts;
}

TEST(TrialCounts, WhatArrivesWholeIsNoLoss) {
    const Judgement judgement = judge(sent(1000), received(1000));
    EXPECT_TRUE(judgement.valid());
    EXPECT_EQ(judgement.loss_ratio, 0);
    EXPECT_EQ(judgement.lost, Losses{});
}

TEST(TrialCounts, LossGoesToTheLayerThatCountedIt) {
    struct Case {
        void (*change)(ReceiverCounts&);
        Losses lost;
    };
    const Case cases[] = {
        {[](ReceiverCounts& counts) { counts.kernel_dropped = 10; }, {.kernel = 10}},
        {[](ReceiverCounts& counts) { counts.device_dropped = 10; }, {.device = 10}},
        {[](ReceiverCounts& counts) { counts.arrived = 990; }, {.wire = 10}},
        {[](ReceiverCounts& counts) {
             counts.damaged = 10;
             counts.taken = 1000;
         },
         {.application = 10}},
        {[](ReceiverCounts& counts) { counts.taken = 1000; }, {.application = 10}},
        {[](ReceiverCounts& counts) { counts.arrived.reset(); }, {.unknown = 10}},
        {[](ReceiverCounts&) {}, {.unknown = 10}},
        {[](ReceiverCounts& counts) {
             counts.kernel_dropped = 4;
             counts.arrived = 994;
         },
         {.wire = 6, .kernel = 4}},
        // More drops than losses: some were of other traffic.
        {[](ReceiverCounts& counts) { counts.kernel_dropped = 50; }, {.kernel = 10}},
    };
    for (const Case& one : cases) {
        ReceiverCounts counts = received(990);
        counts.arrived = 1000;
        one.change(counts);
        const Judgement judgement = judge(sent(1000), counts);
        EXPECT_TRUE(judgement.valid()) << judgement.why;
        EXPECT_DOUBLE_EQ(judgement.loss_ratio, 0.01);
        EXPECT_EQ(judgement.lost, one.lost);
    }
}

TEST(TrialCounts, MessagesThatAreNotWholeAreLost) {
    ReceiverCounts counts = received(990);
    counts.arrived = 990;
    counts.assembled = 920;
    const Judgement judgement = judge(sent(1000), counts);
    EXPECT_DOUBLE_EQ(judgement.loss_ratio, 0.08);
    EXPECT_EQ(judgement.lost, (Losses{.wire = 10, .application = 70}));
}

TEST(TrialCounts, WhatTheSenderDidNotSendIsNobodysLoss) {
    SenderCounts counts = sent(1000);
    counts.handed_over = 900;
    counts.on_wire = 900;
    const Judgement judgement = judge(counts, received(900));
    EXPECT_FALSE(judgement.valid());
    EXPECT_EQ(judgement.why, "the sender did not get 100 of 1000 packets out in time");
    EXPECT_EQ(judgement.loss_ratio, 0);
    EXPECT_TRUE(judge(counts, received(900), {.unsent_ratio = 0.1}).valid());
}

TEST(TrialCounts, WhatTheSendersDeviceDropsIsNotTheReceivers) {
    SenderCounts counts = sent(1000);
    counts.on_wire = 970;
    ReceiverCounts receiver = received(970);
    const Judgement judgement = judge(counts, receiver);
    EXPECT_FALSE(judgement.valid());
    EXPECT_EQ(judgement.why, "the sender's device sent 970 of 1000 packets");
}

TEST(TrialCounts, AStretchedTrialIsInvalid) {
    SenderCounts counts = sent(1000);
    counts.took_s = 1.02;
    EXPECT_TRUE(judge(counts, received(1000)).valid());
    counts.took_s = 1.03;
    EXPECT_EQ(judge(counts, received(1000)).why,
              "sending took 1.030 s, not 1.000: the load was lower than it should be");
}

TEST(TrialCounts, ASenderThatCatchesUpSendsAnotherLoad) {
    SenderCounts counts = sent(1000);
    counts.lag_max_s = 0.06;
    EXPECT_EQ(judge(counts, received(1000)).why,
              "the sender was 60 ms behind its schedule, and then sent faster than it should");
}

TEST(TrialCounts, CountersThatDoNotSettleAreNotRead) {
    ReceiverCounts counts = received(1000);
    counts.settled = false;
    EXPECT_FALSE(judge(sent(1000), counts).valid());
    counts = received(1001);
    EXPECT_EQ(judge(sent(1000), counts).why, "1001 packets were received, more than the 1000 that were sent");
    SenderCounts stopped = sent(1000);
    stopped.stopped = "the trial was stopped";
    EXPECT_EQ(judge(stopped, received(1000)).why, "the trial was stopped");
    EXPECT_EQ(judge(sent(0), received(0)).why, "no packet was sent");
}

}  // namespace
