// The builder between rx lcores and workers: what it makes of descriptors in whatever order it comes to them, when the
// queue of events is full, and by several shards.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <map>
#include <set>

#include "topology.hpp"

namespace weir::stages::test {
namespace {

using assemble::Command;
using assemble::Descriptor;
using assemble::Event;
using assemble::EventCause;
using assemble::Message;
using assemble::Overload;

constexpr TimeNs timeout_ns = 100 * ms;

/// What the builder sees of an rx lcore, made by hand: it announces messages, delivers them whole or when it is told to
/// close them, and does what it is told as late as the test likes.
class HandMadeRx {
public:
    HandMadeRx(std::uint16_t index, std::uint32_t ring)
        : index_(index),
          descriptors("hand_d" + std::to_string(index), ring),
          commands("hand_c" + std::to_string(index), ring) {}

    void announce(std::uint32_t source, std::uint64_t number, TimeNs time) {
        Message& message = messages_.emplace_back();
        message.number = number;
        message.source = source;
        message.owner = index_;
        message.total = 100;
        message.total_known = true;
        message.first_ns = message.last_ns = message.total_ns = time;
        message.packets = 1;
        open_[{source, number}] = &message;
        waiting_.push_back(describe(Descriptor::Kind::announce, message, nullptr, time));
    }
    void deliver(std::uint32_t source, std::uint64_t number, bool whole, TimeNs time) {
        const auto found = open_.find({source, number});
        if (found == open_.end()) return;  // it had to close it
        Message& message = *found->second;
        open_.erase(found);
        message.complete = whole;
        message.received_bytes = whole ? 100 : 50;
        message.state = assemble::MessageState::closed;
        out_.insert(&message);
        waiting_.push_back(describe(Descriptor::Kind::deliver, message, &message, time));
    }
    /// Sends what finds room, and then promises `time`.
    void send(TimeNs time) {
        while (!waiting_.empty() && descriptors.push(waiting_.front())) waiting_.pop_front();
        if (waiting_.empty() && signals.watermark.load() < time) signals.watermark = time;
    }
    void obey(TimeNs time) {
        std::array<Command, 1> command;
        if (commands.pop(command) == 0) return;
        if (command[0].kind == Command::Kind::close)
            deliver(command[0].source, command[0].number, false, time);
        else
            take_back(command[0].message);
    }
    void take_back(Message* message) { EXPECT_EQ(out_.erase(message), 1U) << "given back twice, or never handed over"; }
    void end() {
        while (!open_.empty()) deliver(open_.begin()->first.first, open_.begin()->first.second, false, last_ns_);
        ended_ = true;
    }
    /// To be asked until true.
    bool finish() {
        send(last_ns_);
        if (ended_ && waiting_.empty()) signals.finished = true;
        return signals.finished && out_.empty() && commands.empty();
    }
    [[nodiscard]] std::size_t out() const { return out_.size(); }

private:
    Descriptor describe(Descriptor::Kind kind, const Message& message, Message* handed, TimeNs time) {
        last_ns_ = std::max(last_ns_, time);
        return {.kind = kind,
                .source = message.source,
                .number = message.number,
                .epoch = message.epoch,
                .bytes = 100,
                .first_ns = message.first_ns,
                .time_ns = last_ns_,
                .message = handed};
    }

    std::uint16_t index_;
    std::deque<Message> messages_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Message*> open_;
    std::set<Message*> out_;  ///< the builder's, or a worker's
    std::deque<Descriptor> waiting_;
    TimeNs last_ns_ = 0;
    bool ended_ = false;

public:
    port::Ring<Descriptor> descriptors;
    port::Ring<Command> commands;
    RxSignals signals;
};

/// A builder with two hand-made rx lcores, and a hand-made worker.
class HandMadeRun {
public:
    struct Left {
        EventCause cause = EventCause::complete;
        std::vector<bool> complete;  ///< by source: a whole message
        bool operator==(const Left&) const = default;
    };

    explicit HandMadeRun(std::uint32_t ring) : first(0, ring), second(1, ring) {
        BuildStage::Config config;
        config.builder.sources = 2;
        config.builder.sources_needed = 2;
        config.builder.open_max = 256;
        config.builder.queued_max = 256;
        config.builder.messages_max = 1024;
        config.builder.timeout_ns = timeout_ns;
        config.builder.owner = {0, 1};
        config.builder.number_bits = {64, 64};
        config.builder.rx_count = 2;
        config.builder.wait = true;
        for (HandMadeRx* rx : {&first, &second}) config.rx.push_back({&rx->descriptors, &rx->commands, &rx->signals});
        config.work = {{&events_, &released_}};
        build.emplace(config, run_);
    }
    void poll() {
        core::hot_thread(true);
        build->poll(0);
        core::hot_thread(false);
    }
    /// The worker takes an event and gives it back.
    bool work() {
        std::array<Event*, 1> taken;
        if (events_.pop(taken) == 0) return false;
        Left event{taken[0]->cause, {}};
        for (Message* message : taken[0]->messages) {
            event.complete.push_back(message != nullptr && message->complete);
            if (message != nullptr) (message->owner == 0 ? first : second).take_back(message);
        }
        EXPECT_TRUE(left.emplace(taken[0]->number, event).second) << taken[0]->number << " left twice";
        released_.push(taken[0]);
        return true;
    }
    void finish() {
        first.end();
        second.end();
        for (int i = 0; i < 20'000; ++i) {
            const bool first_done = first.finish();
            const bool rx_done = second.finish() && first_done;
            poll();
            while (work()) continue;
            first.obey(0);
            second.obey(0);
            if (rx_done && run_.builders_finished() && run_.builders_empty()) return;
        }
        ADD_FAILURE() << "the builder does not come to its end";
    }

private:
    RunSignals run_;
    port::Ring<Event*> events_{"hand_events", 1023};
    port::Ring<Event*> released_{"hand_released", 1023};

public:
    HandMadeRx first;
    HandMadeRx second;
    std::optional<BuildStage> build;
    std::map<std::uint64_t, Left> left;  ///< events that the worker had, by number
};

/// What source 0 and source 1 do with each event: nothing, a message that stays open, one that ends whole, or not.
enum class Does : std::uint8_t { nothing, opens, ends_whole, ends_cut };

TEST(BuildProperty, DescriptorsAndCommandsInAnyOrderGiveTheSameEventsAndAllMessagesBack) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& plan, std::uint32_t seed) {
        const std::uint32_t ring = 1U << (1 + seed % 8);  // from nearly always full to never
        HandMadeRun run(ring);
        std::mt19937_64 random(seed);
        std::map<std::uint64_t, HandMadeRun::Left> expected;
        // Event i begins at i ms; what the other source has comes half a millisecond later.
        const auto anything = [&](TimeNs time) {
            switch (random() % 4) {
                case 0:
                    return run.poll();
                case 1:
                    return static_cast<void>(run.work());
                case 2:
                    return random() % 2 == 0 ? run.first.obey(time) : run.second.obey(time);
                default:
                    return random() % 2 == 0 ? run.first.send(time) : run.second.send(time);
            }
        };
        TimeNs time = start_ns;
        for (std::size_t i = 0; i < plan.size(); ++i) {
            time = start_ns + static_cast<TimeNs>(i) * ms;
            const std::array does{static_cast<Does>(plan[i] % 4), static_cast<Does>(plan[i] / 4 % 4)};
            HandMadeRun::Left event{EventCause::complete, {false, false}};
            for (std::uint32_t source = 0; source < 2; ++source) {
                HandMadeRx& rx = source == 0 ? run.first : run.second;
                if (does[source] == Does::nothing) continue;
                rx.announce(source, i, time + source * ms / 2);
                if (does[source] == Does::opens) continue;
                rx.deliver(source, i, does[source] == Does::ends_whole, time + source * ms / 2);
                event.complete[source] = does[source] == Does::ends_whole;
            }
            if (does[0] != Does::nothing || does[1] != Does::nothing) {
                const bool whole = event.complete[0] && event.complete[1];
                event.cause = whole ? EventCause::complete : EventCause::timeout;
                expected.emplace(i, event);
            }
            for (std::uint64_t steps = random() % 8; steps > 0; --steps) anything(time);
        }
        // Both clocks go on for longer than the time-out.
        const TimeNs end = time + 2 * timeout_ns;
        run.first.announce(0, 1'000'000, end);
        run.second.announce(1, 1'000'000, end);
        run.first.deliver(0, 1'000'000, true, end);
        run.second.deliver(1, 1'000'000, true, end);
        expected.emplace(1'000'000, HandMadeRun::Left{EventCause::complete, {true, true}});
        for (int i = 0; i < 100; ++i) anything(end);
        run.finish();
        RC_ASSERT(run.left == expected);
        RC_ASSERT(run.first.out() == 0U);
        RC_ASSERT(run.second.out() == 0U);
        const assemble::EventTally& events = run.build->events();
        RC_ASSERT(events.get(EventCounter::opened) == expected.size());
    }));
}

class BuildStageTest : public StagesTest {
protected:
    static Shape shape(Overload overload, bool wait = false) {
        Shape shape;
        shape.sources = 1;
        shape.wait = wait;
        shape.overload = overload;
        shape.open_max = 4;
        shape.queued_max = 8;
        shape.prescale = 4;
        return shape;
    }
    /// Whole events, of which no worker takes any.
    void feed_whole(Topology& all, std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t number = from; number < to; ++number) {
            all.feed(make_.make({.source = 0, .number = number, .time = static_cast<TimeNs>(number)}));
            all.poll_rx();
            all.poll_build();
        }
    }
    /// Events that stay open, and for which workers are there.
    void feed_open(Topology& all, std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t number = from; number < to; ++number) {
            all.feed(make_.make(part_of(0, number, 0, 2, static_cast<TimeNs>(number))));
            all.turn();
        }
    }
};

TEST_F(BuildStageTest, AFullQueueRefusesNewEventsWholeUnderEvictOldest) {
    Topology all(shape(Overload::evict_oldest));
    feed_whole(all, 0, 40);
    const std::uint64_t held = 12;  // as many as may be open or queued
    EXPECT_EQ(all.count(EventCounter::complete), held);
    EXPECT_EQ(all.count(EventCounter::refused_queue_full), 40 - held);
    feed_whole(all, 39, 40);  // a second packet of one that was refused
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::queue_full), 41 - held);
    EXPECT_EQ(all.count(EventCounter::written), held);
}

TEST_F(BuildStageTest, AFullQueueRefusesNewEventsWholeUnderRefuseNew) {
    Topology all(shape(Overload::refuse_new));
    feed_whole(all, 0, 40);
    EXPECT_EQ(all.count(EventCounter::complete), 12U);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::queue_full), 28U);
}

TEST_F(BuildStageTest, AQueueThatFillsTakesOnlyEveryNthUnderPrescale) {
    Topology all(shape(Overload::prescale));
    feed_whole(all, 0, 40);
    const std::uint64_t prescaled = all.count(EventCounter::refused_prescaled);
    EXPECT_GT(prescaled, 0U);
    all.drain();
    const EventsFound kept = all.events();
    // From three quarters of the queue on, only multiples of four are taken.
    for (const auto& [key, event] : kept) EXPECT_TRUE(key.second < 6 || key.second % 4 == 0) << key.second;
    EXPECT_TRUE(kept.contains({0, 8}));
    EXPECT_GE(all.build().overload_times(), 1U);
    feed_whole(all, 101, 102);  // overload is over
    finish(all);
    EXPECT_EQ(all.count(EventCounter::refused_prescaled), prescaled);
    EXPECT_EQ(all.count(PacketCounter::prescaled), prescaled);
    EXPECT_TRUE(all.events().contains({0, 101}));
}

TEST_F(BuildStageTest, AFullQueueMakesTheInputWaitAndRefusesNothing) {
    Topology all(shape(Overload::evict_oldest, true));
    feed_whole(all, 0, 40);
    EXPECT_GT(all.blocked(all.build(), Blocked::queue), 0U);
    EXPECT_EQ(all.count(EventCounter::complete), 8U);
    finish(all);
    EXPECT_EQ(all.count(EventCounter::written), 40U);
    EXPECT_EQ(all.count(PacketCounter::placed), 40U);
}

TEST_F(BuildStageTest, AFullWindowEvictsTheOldestAndItsRestIsLate) {
    Topology all(shape(Overload::evict_oldest));
    feed_open(all, 0, 6);
    EXPECT_EQ(all.count(EventCounter::incomplete_evicted), 2U);
    all.feed(make_.make(part_of(0, 0, 1, 2, 10)));
    all.feed(make_.make(part_of(0, 5, 1, 2, 10)));
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::late), 1U);
    EXPECT_EQ(all.count(EventCounter::complete), 1U);
    EXPECT_EQ(all.events().at({0, 0}).cause, store::Cause::evicted);
    EXPECT_EQ(all.events().at({0, 1}).cause, store::Cause::evicted);
}

TEST_F(BuildStageTest, AFullWindowRefusesNewEventsAndLeavesOpenOnesInPeace) {
    Topology all(shape(Overload::refuse_new));
    feed_open(all, 0, 6);
    for (std::uint64_t number = 0; number < 6; ++number) all.feed(make_.make(part_of(0, number, 1, 2, 10)));
    finish(all);
    EXPECT_EQ(all.count(EventCounter::complete), 4U);
    EXPECT_EQ(all.count(EventCounter::refused_no_room), 2U);
    EXPECT_EQ(all.count(PacketCounter::no_room), 4U);
}

TEST_F(BuildStageTest, IncompleteEventsAreDroppedWhereTheyAreNotWanted) {
    Shape wanted;
    wanted.keep_incomplete = false;
    Topology all(wanted);
    for (std::uint64_t number = 0; number < 20; ++number)
        for (std::uint32_t source = 0; source < (number % 2 == 0 ? 2U : 1U); ++source)
            all.feed(make_.make({.source = source, .number = number, .time = 1}));
    finish(all);
    EXPECT_EQ(all.count(EventCounter::written), 10U);
    EXPECT_EQ(all.count(EventCounter::dropped_incomplete), 10U);
    EXPECT_EQ(all.count(EventCounter::incomplete_end_of_run), 10U);
    EXPECT_EQ(all.build().absences().count(1), 10U);
}

TEST_F(BuildStageTest, ShardsShareTheEventsAndEachGoesToOneWorker) {
    Shape many;
    many.rx = 2;
    many.builders = 3;
    many.workers = 2;
    Topology all(many);
    for (std::uint64_t number = 0; number < 300; ++number)
        for (std::uint32_t source = 0; source < 2; ++source)
            all.feed(make_.make({.source = source, .number = number, .time = static_cast<TimeNs>(number)}));
    finish(all);
    EXPECT_EQ(all.events().size(), 300U);
    EXPECT_EQ(all.count(EventCounter::complete), 300U);
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_GT(all.build(i).events().get(EventCounter::complete), 60U);
}

TEST_F(BuildStageTest, TimeOutsAreExactWhateverIsPolledWhen) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        std::mt19937_64 random(seed);
        Shape many;
        many.rx = 1 + seed % 2;
        many.builders = 1 + seed / 2 % 2;
        Topology all(many);
        // Two events in turn have their last part in time, and too late by a nanosecond.
        std::vector<Part> parts;
        for (std::uint64_t number = 0; number < 40; ++number) {
            const TimeNs first = 5 * ms * static_cast<TimeNs>(number);
            const auto source = static_cast<std::uint32_t>(number % 2);
            parts.push_back({.source = source, .number = number, .time = first});
            parts.push_back({.source = 1 - source,
                             .number = number,
                             .time = first + timeout_ns - 1 + static_cast<TimeNs>(number / 2 % 2)});
        }
        std::ranges::stable_sort(parts, {}, &Part::time);
        for (const Part& part : parts) {
            all.feed(make_.make(part));
            for (std::uint64_t polls = random() % 5; polls > 0; --polls) all.poll(random() % all.stages());
        }
        all.finish(random);
        expect_clean_end(all, pool_);
        EXPECT_EQ(all.count(EventCounter::complete), 20U) << "seed " << seed;
        EXPECT_EQ(all.count(PacketCounter::late), 20U) << "seed " << seed;
        for (const auto& [key, event] : all.events())
            EXPECT_EQ(event.cause, key.second / 2 % 2 == 0 ? store::Cause::complete : store::Cause::timeout)
                << key.second;
        if (HasFailure()) return;
    }
}

/// Two rx lcores with inputs of their own.
Shape apart() {
    Shape shape;
    shape.rx = 2;
    shape.replay = false;
    return shape;
}

TEST_F(BuildStageTest, AnEventWholeOnlyByALatePacketTimesOutThoughItsLcoreIsAhead) {
    Topology all(apart());
    all.feed(make_.make(part_of(0, 1, 0, 2, 0)), 0);
    all.feed(make_.make({.source = 1, .number = 1, .time = 1}), 1);
    all.drain();
    // The first lcore is ahead of what the second one vouches for.
    all.feed(make_.make(part_of(0, 1, 1, 2, timeout_ns)), 0);
    all.drain();
    all.feed(make_.make({.source = 1, .number = 2, .time = timeout_ns}), 1);
    finish(all);
    EXPECT_EQ(all.count(PacketCounter::late), 1U);
    EXPECT_EQ(all.events().at({0, 1}).cause, store::Cause::timeout);
    EXPECT_EQ(all.count(EventCounter::complete), 0U);
}

TEST_F(BuildStageTest, WhatWasDueByTheLastPacketTimedOutHoweverTheInputEnds) {
    for (const bool at_once : {false, true}) {
        Shape shape;
        shape.sources = 1;
        shape.descriptor_ring = 4;
        Topology all(shape);
        all.feed(make_.make(part_of(0, 1, 0, 2, 0)));
        for (std::uint64_t number = 2; number < 12; ++number)
            all.feed(make_.make({.source = 0, .number = number, .time = 1}));
        // The last packet comes when the first event is due, and brings the builder no descriptor that would say so.
        all.feed(make_.make(part_of(0, 50, 0, 3, 1)));
        all.feed(make_.make(part_of(0, 50, 1, 3, timeout_ns)));
        // The lcore takes them before or after it sees that the input has ended; descriptors wait.
        if (!at_once) all.drain();
        all.end_input();
        for (int i = 0; i < 3; ++i) all.poll_rx();
        finish(all);
        EXPECT_EQ(all.events().at({0, 1}).cause, store::Cause::timeout) << at_once;
    }
}

}  // namespace
}  // namespace weir::stages::test
