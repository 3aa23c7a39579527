// (what stages and lcores did) -> the part that is at its limit, and the sentence that says so; without a run.
#include "pipeline/bottleneck.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace {

using namespace weir::pipeline;

/// Of 1000 polls and 1000 units of time.
weir::stages::PollCounts::Values polls(std::uint64_t busy, weir::stages::Blocked on = weir::stages::Blocked::none,
                                       std::uint64_t blocked = 0) {
    weir::stages::PollCounts::Values values;
    values.busy = values.busy_time = busy;
    values.blocked[static_cast<std::size_t>(on)] = values.blocked_time = blocked;
    values.idle = 1000 - busy - blocked;
    values.time = 1000;
    return values;
}

/// Three lcores, all of them with time to spare.
Usage live() {
    Usage usage;
    usage.seconds = 10;
    usage.stages = {{"rx0", 2, polls(400)}, {"build0", 3, polls(100)}, {"work0", 4, polls(300)}};
    usage.lcores = {{2, polls(400)}, {3, polls(100)}, {4, polls(300)}};
    usage.sink_bytes = 12'000'000'000;
    return usage;
}

/// Everything on one lcore.
Usage fused(std::uint64_t rx, std::uint64_t work) {
    Usage usage = live();
    usage.stages = {{"rx0", 0, polls(rx)}, {"build0", 0, polls(10)}, {"work0", 0, polls(work)}};
    usage.lcores = {{0, polls(rx + work + 10)}};
    return usage;
}

void expect(const Usage& usage, const char* part, std::initializer_list<const char*> words) {
    const Bottleneck found = find_bottleneck(usage);
    EXPECT_EQ(found.part, part) << found.sentence;
    for (const char* word : words)
        EXPECT_NE(found.sentence.find(word), std::string::npos) << word << ": " << found.sentence;
}

TEST(Bottleneck, IsTheSenderWhereNothingWaits) {
    expect(live(), "sender", {"sender: nothing was waiting", "busiest lcore (2: rx0)", "60 % of the time"});
    expect(Usage(), "sender", {"nothing was waiting"});
}

TEST(Bottleneck, IsTheWriterWhereWorkersWaitForItsRing) {
    Usage usage = live();
    usage.stages[2].polls = polls(100, weir::stages::Blocked::output, 830);
    usage.stages[0].polls = usage.lcores[0].turns = polls(1000);  // and rx is busy refusing
    expect(usage, "writer", {"writer: ring full0 full in 83 % of polls", "the disk took 1.20 GB/s"});
}

TEST(Bottleneck, IsTheLastLcoreWithoutTimeToSpare) {
    Usage usage = live();
    usage.stages[0].polls = usage.lcores[0].turns = polls(1000);
    expect(usage, "rx0", {"rx0: no idle polls on lcore 2"});
    usage.stages[2].polls = usage.lcores[2].turns = polls(970);
    expect(usage, "work0", {"work0: busy 97 % of the time on lcore 4"});
}

TEST(Bottleneck, OnAFusedLcoreIsTheStageThatTookMost) {
    expect(fused(200, 790), "work0",
           {"work0: no idle polls on lcore 0 (rx0, build0, work0)", "79 % of its time went into work0"});
    expect(fused(900, 90), "rx0", {"rx0: no idle polls", "90 % of its time"});
    expect(fused(300, 100), "sender", {});
}

TEST(Bottleneck, IsMemoryWhereEventsAreLostAndEverybodyHasTime) {
    Usage usage = live();
    usage.evicted_events = 3;
    expect(usage, "memory", {"evicted or refused at its limit", "60 % of the time"});
}

TEST(Bottleneck, IsTheReceiveQueueWhereADeviceDroppedAndEverybodyHasTime) {
    Usage usage = live();
    usage.missed_packets = 3;
    expect(usage, "queue", {"receive queue: it was full", "60 % of the time"});
    usage.stages[0].polls = usage.lcores[0].turns = polls(1000);
    expect(usage, "rx0", {"no idle polls"});
}

TEST(Bottleneck, OfAReplayCanBeTheReaderOrThePace) {
    Usage usage = live();
    usage.reader = Usage::Reader{1, 0};
    expect(usage, "reader", {"capture reader: the pipeline waited for it", "10 % of the time"});
    usage.reader->pacing_s = 8;
    expect(usage, "pace", {"the time of the next packet"});
}

TEST(Bottleneck, OfAnIntervalIsThatOfTheDifference) {
    Usage before = live();
    Usage after = live();
    after.seconds = 20;
    after.stages[2].polls += polls(0, weir::stages::Blocked::output, 1000);
    after.stages[0].polls += polls(10);
    after.stages[1].polls += polls(10);
    for (Usage::Lcore& lcore : after.lcores) lcore.turns += polls(10);
    *after.sink_bytes += 1'000'000'000;
    Usage interval = after;
    interval -= before;
    expect(interval, "writer", {"100 % of polls", "0.10 GB/s"});
    Usage sum;
    sum += before;
    sum += interval;
    EXPECT_EQ(stages_json(sum), stages_json(after));
    EXPECT_EQ(sum.seconds, after.seconds);
    EXPECT_NE(bottleneck_text(interval, 20).find("in the 10.0 s in which"), std::string::npos);
    EXPECT_EQ(bottleneck_text(after, 20).find("in which"), std::string::npos);
}

TEST(Bottleneck, CountsPollsAndWhatTheyWaitedFor) {
    weir::stages::PollCounts counts;
    counts.add(1, weir::stages::Blocked::none, 100, 130);    // busy for 30
    counts.add(0, weir::stages::Blocked::output, 150, 151);  // blocked until the next one
    counts.add(0, weir::stages::Blocked::none, 200, 201);    // idle
    counts.add(2, weir::stages::Blocked::output, 300, 310);  // moved something before it was blocked: busy
    counts.add(0, weir::stages::Blocked::none, 320, 321);
    const weir::stages::PollCounts::Values values = counts.values();
    EXPECT_EQ(values.busy, 2u);
    EXPECT_EQ(values.idle, 2u);
    EXPECT_EQ(values.blocked[static_cast<std::size_t>(weir::stages::Blocked::output)], 1u);
    EXPECT_EQ(values.polls(), 5u);
    EXPECT_EQ(values.busy_time, 40u);
    EXPECT_EQ(values.blocked_time, 50u);
    EXPECT_EQ(values.time, 220u);
}

TEST(Bottleneck, InJsonHasPartsOfTheTimeAndThePolls) {
    Usage usage = live();
    usage.stages[2].polls = polls(100, weir::stages::Blocked::output, 830);
    const auto stages = stages_json(usage);
    EXPECT_EQ(stages["work0"]["lcore"], 4);
    EXPECT_DOUBLE_EQ(stages["work0"]["blocked"], 0.83);
    EXPECT_DOUBLE_EQ(stages["rx0"]["busy"], 0.4);
    EXPECT_EQ(stages["work0"]["polls"], (nlohmann::json{{"busy", 100}, {"idle", 70}, {"blocked", {{"output", 830}}}}));
    EXPECT_EQ(bottleneck_json(usage)["part"], "writer");
}

}  // namespace
