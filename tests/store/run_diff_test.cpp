// Random events of every kind, written twice: the same in whatever order and encoding; and one change is one
// difference.
#include "store/run_diff.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support.hpp"

namespace weir::store::test {
namespace {

struct Differences {
    RunDiff::Totals totals;
    std::vector<EventDifference> events;
};

Differences differences_of(const std::filesystem::path& first, const std::filesystem::path& second,
                           const RunDiff::Config& config = {}) {
    const RunReader a(first);
    const RunReader b(second);
    Differences found;
    found.totals = RunDiff(a, b, config)
                       .compare([&](const EventDifference& event) { found.events.push_back(event); },
                                [](std::uint64_t, std::uint64_t) {});
    return found;
}

class RunDiffs : public testing::Test {
protected:
    void SetUp() override {
        std::mt19937_64 random(seed_);
        for (std::uint64_t id = 0; id < 40; ++id) {
            events_.push_back(id % 4 == 3 ? random_reduced_event(random, id, 3, 5000)
                                          : random_event(random, id, 3, 5000));
            events_.back().epoch = id > 30 ? 1 : 0;
            events_.back().result = {};  // whether it can be written depends on the buffers' ends
        }
        write_run(directory_ / "first", events_, false, std::uint64_t{1} << 30, format_version_reduced);
    }
    /// The run `second`.
    Differences second(const std::vector<TestEvent>& events, bool compress = false) {
        write_run(directory_ / "second", events, compress, 50'000, format_version_reduced);
        return differences_of(directory_ / "first", directory_ / "second");
    }
    /// An event with a byte that can be changed.
    TestEvent& event_with_payload() {
        return *std::ranges::find_if(events_, [](const TestEvent& event) {
            return event.content == Content::received && !event.sources.empty() &&
                   event.sources[0].received.size() > 10;
        });
    }

    std::uint64_t seed_ = std::random_device{}();
    testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
    TemporaryDirectory directory_;
    std::vector<TestEvent> events_;
};

TEST_F(RunDiffs, OrderAndEncodingAreNoDifference) {
    std::vector<TestEvent> other = events_;
    std::ranges::reverse(other);
    const Differences found = second(other, true);
    EXPECT_TRUE(found.totals.all_same());
    EXPECT_EQ(found.totals.same, events_.size());
    EXPECT_TRUE(found.events.empty());
}

TEST_F(RunDiffs, AByteIsFoundWhereItIs) {
    TestEvent& event = event_with_payload();
    event.sources[0].received[7] ^= std::byte{0x80};
    const Differences found = second(events_);
    ASSERT_EQ(found.events.size(), 1U);
    EXPECT_EQ(found.events[0].id, event.id);
    EXPECT_TRUE(found.events[0].changes.empty());
    ASSERT_EQ(found.events[0].sources.size(), 1U);
    const SourceDifference& source = found.events[0].sources[0];
    EXPECT_EQ(source.id, event.sources[0].id);
    EXPECT_TRUE(source.changes.empty());
    ASSERT_TRUE(source.payload.has_value());
    EXPECT_EQ(source.payload->bytes, 1U);
    EXPECT_EQ(source.payload->compared, event.sources[0].received.size());
    // Counted in the message, with what is missing before it.
    std::uint64_t offset = 7;
    for (const assemble::ByteRange& gap : event.sources[0].missing)
        if (gap.begin <= offset) offset += gap.end - gap.begin;
    EXPECT_EQ(source.payload->first_offset, offset);
    EXPECT_EQ(*source.payload->first_byte ^ *source.payload->second_byte, 0x80);
}

TEST_F(RunDiffs, WhatOnlyOneHas) {
    std::vector<TestEvent> other(events_.begin() + 1, events_.end());
    TestEvent extra = events_[5];
    extra.id = 1000;
    other.push_back(extra);
    const Differences found = second(other);
    ASSERT_EQ(found.events.size(), 2U);
    EXPECT_EQ(found.events[0].in, EventDifference::In::first);
    EXPECT_EQ(found.events[0].id, 0U);
    EXPECT_EQ(found.events[1].in, EventDifference::In::second);
    EXPECT_EQ(found.events[1].id, 1000U);
    EXPECT_EQ(found.totals.only_first + found.totals.only_second, 2U);
    EXPECT_FALSE(found.totals.all_same());
}

TEST_F(RunDiffs, TheEpochIsPartOfTheName) {
    std::vector<TestEvent> other = events_;
    other[2].epoch = 7;
    const Differences found = second(other);
    EXPECT_EQ(found.totals.only_first, 1U);
    EXPECT_EQ(found.totals.only_second, 1U);
}

TEST_F(RunDiffs, HeadersAndSources) {
    TestEvent& event = event_with_payload();
    event.sources[0].meta = bytes_of("another");
    const std::uint32_t gone = event.sources.back().id;
    const bool more = event.sources.size() > 1;
    if (more) event.sources.pop_back();
    const Differences found = second(events_);
    ASSERT_EQ(found.events.size(), 1U);
    ASSERT_EQ(found.events[0].sources.size(), more ? 2U : 1U);
    EXPECT_EQ(found.events[0].sources[0].changes[0].what, "meta");
    if (!more) return;
    EXPECT_EQ(found.events[0].sources[1].id, gone);
    EXPECT_EQ(found.events[0].sources[1].changes[0].second, "not there");
}

TEST_F(RunDiffs, AnEventThatIsTooLargeIsNotSaidToBeTheSame) {
    write_run(directory_ / "second", events_, false, std::uint64_t{1} << 30, format_version_reduced);
    RunDiff::Config config;
    config.bytes_max = 1000;
    const Differences found = differences_of(directory_ / "first", directory_ / "second", config);
    EXPECT_GT(found.totals.unreadable, 0U);
    EXPECT_EQ(found.totals.unreadable, found.totals.differ);
    EXPECT_EQ(found.totals.same + found.totals.differ, events_.size());
}

}  // namespace
}  // namespace weir::store::test
