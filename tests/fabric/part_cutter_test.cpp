#include "fabric/part_cutter.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fabric/part_pieces.hpp"
#include "part_maker.hpp"

namespace weir::fabric {
namespace {

using made::EventMaker;
using made::Parts;
using made::SourceData;
using made::whole;

constexpr core::TimeNs ms = core::ns_per_ms;

class Cutter : public ::testing::Test {
protected:
    PartCutter::Config config_{
        .block = 4, .sources = {7, 9}, .wait_ns = 10 * ms, .linger_ns = 5 * ms, .idle_ns = 50 * ms};
    PartMemory memory_{std::uint64_t{64} << 20U};
    Parts parts_{memory_};

    static std::vector<SourceData> two() { return {whole(0, 100), whole(1, 60)}; }
};

TEST_F(Cutter, APartLeavesWhenAllNumbersOfItsBlockAreThere) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(4, two()).add(6, two()).add(5, two()).blocks(), 0);
    EXPECT_TRUE(parts_.all.empty());
    cutter.append(EventMaker().add(7, two()).blocks(), 0);
    ASSERT_EQ(parts_.blocks(), std::vector<cluster::Block>{4});
    EXPECT_EQ(parts_.head(0).events, 4U);
    EXPECT_EQ(parts_.head(0).end, 8U);
    EXPECT_EQ(cutter.stats().events, 4U);
    EXPECT_EQ(cutter.stats().payload_bytes, 4U * 160U);
}

TEST_F(Cutter, BlocksLeaveInOrder) {
    PartCutter cutter(config_, memory_, parts_);
    EventMaker events;
    events.add(0, two());
    for (std::uint64_t number = 4; number < 8; ++number) events.add(number, two());
    cutter.append(events.blocks(), 0);
    EXPECT_TRUE(parts_.all.empty());  // block 1 is whole, block 0 is not
    cutter.append(EventMaker().add(1, two()).add(2, two()).add(3, two()).blocks(), 0);
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 4}));
}

TEST_F(Cutter, ABlockThatIsOvertakenByTimeLeavesAfterAWhile) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two(), 1 * ms).add(8, two(), 12 * ms).blocks(), 100 * ms);
    cutter.look(104 * ms, false, 0);
    EXPECT_TRUE(parts_.all.empty());  // another worker may still have one of it in its buffer
    cutter.look(105 * ms, false, 0);
    EXPECT_EQ(parts_.blocks(), std::vector<cluster::Block>{0});
    cutter.look(1000 * ms, false, 0);
    EXPECT_EQ(parts_.all.size(), 1U);  // nothing has overtaken block 2
}

TEST_F(Cutter, WhatComesAfterItsPartHasLeftIsAStraggler) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two(), 1 * ms).add(8, two(), 12 * ms).blocks(), 0);
    cutter.look(5 * ms, false, 0);
    cutter.append(EventMaker().add(1, two(), 2 * ms).blocks(), 6 * ms);
    EXPECT_EQ(cutter.stats().stragglers, 1U);
    cutter.finish();
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 8}));
    EXPECT_EQ(cutter.stats().events, 2U);
}

TEST_F(Cutter, WhileTheDetectorPausesPartsWaitForItsNextEvents) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).blocks(), 100 * ms);
    cutter.look(3600 * core::ns_per_s, true, 0);
    EXPECT_TRUE(parts_.all.empty());
    EventMaker later;
    for (std::uint64_t number = 1; number < 4; ++number) later.add(number, two(), 3600 * core::ns_per_s);
    cutter.append(later.blocks(), 3600 * core::ns_per_s);
    EXPECT_EQ(parts_.blocks(), std::vector<cluster::Block>{0});
    EXPECT_EQ(cutter.stats().events, 4U);
    EXPECT_EQ(cutter.stats().stragglers, 0U);
}

TEST_F(Cutter, APartLeavesWhenOthersHaveMoreAndNothingComesHere) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).add(4, two()).blocks(), 100 * ms);
    cutter.look(1000 * ms, true, 4);  // from now on somebody waits
    cutter.look(1049 * ms, true, 4);
    cutter.look(1050 * ms, false, 4);
    EXPECT_TRUE(parts_.all.empty());
    cutter.look(1050 * ms, true, 4);
    EXPECT_EQ(parts_.blocks(), std::vector<cluster::Block>{0});
    cutter.look(3600 * core::ns_per_s, true, 4);
    EXPECT_EQ(parts_.all.size(), 1U);  // nobody has more than what is there of block 1
}

TEST_F(Cutter, AWantedPartWaitsWhileEventsCome) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).blocks(), 100 * ms);
    cutter.look(100 * ms, true, 4);
    cutter.append(EventMaker().add(1, two()).blocks(), 149 * ms);
    cutter.look(198 * ms, true, 4);
    EXPECT_TRUE(parts_.all.empty());
    cutter.look(199 * ms, true, 4);
    EXPECT_EQ(parts_.all.size(), 1U);
}

TEST_F(Cutter, AReplayThatIsIdleSendsNothing) {
    config_.idle_ns = core::never;
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).blocks(), 0);
    cutter.look(1 * ms, true, 4);
    cutter.look(3600 * core::ns_per_s, true, 4);
    EXPECT_TRUE(parts_.all.empty());
}

class Pieces : public Cutter {
protected:
    Pieces() { config_.hold_ns = 20 * ms; }
    /// First and last number of each part that has left.
    [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> left() const {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
        for (std::size_t place = 0; place < parts_.all.size(); ++place)
            spans.emplace_back(parts_.head(place).block, parts_.head(place).end - 1);
        return spans;
    }
    using Spans = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
};

TEST_F(Pieces, AnEventWaitsForTheOthersOfItsBlockForAWhile) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).add(1, two()).blocks(), 100 * ms);
    cutter.look(119 * ms, false, 0);
    EXPECT_TRUE(parts_.all.empty());
    cutter.look(120 * ms, false, 0);
    EXPECT_EQ(left(), (Spans{{0, 1}}));
    EXPECT_EQ(parts_.all[0].first, 2U);
    cutter.append(EventMaker().add(2, two()).add(3, two()).blocks(), 125 * ms);  // the rest is all there
    EXPECT_EQ(left(), (Spans{{0, 1}, {2, 3}}));
    EXPECT_EQ(cutter.stats().stragglers, 0U);
}

TEST_F(Pieces, WhatIsMissingInBetweenIsWaitedForWhileItMayBeOnItsWay) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).add(2, two()).blocks(), 100 * ms);
    cutter.look(149 * ms, true, 0);
    cutter.look(150 * ms, false, 0);
    EXPECT_TRUE(parts_.all.empty());
    cutter.look(150 * ms, true, 0);
    EXPECT_EQ(left(), (Spans{{0, 2}}));
    cutter.append(EventMaker().add(1, two()).blocks(), 151 * ms);
    EXPECT_EQ(cutter.stats().stragglers, 1U);
    cutter.finish();
    EXPECT_EQ(cutter.stats().events, 2U);
}

TEST_F(Pieces, WhereOthersHaveMoreThanIsHereOnlyThatLeaves) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(1, two()).blocks(), 100 * ms);
    cutter.look(100 * ms, true, 3);
    cutter.look(150 * ms, true, 3);
    EXPECT_EQ(left(), (Spans{{0, 2}}));
    EXPECT_EQ(parts_.all[0].first, 2U);
    cutter.append(EventMaker().add(3, two()).blocks(), 160 * ms);
    EXPECT_EQ(left(), (Spans{{0, 2}, {3, 3}}));
}

TEST_F(Pieces, WhereThereIsNoRoomOnlyWhatIsThereLeaves) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).blocks(), 100 * ms);
    EXPECT_TRUE(cutter.send_oldest());
    cutter.append(EventMaker().add(1, two()).blocks(), 101 * ms);
    cutter.finish();
    EXPECT_EQ(left(), (Spans{{0, 0}, {1, 3}}));
    EXPECT_EQ(cutter.stats().stragglers, 0U);
}

TEST_F(Pieces, ANumberThatNoEventCanHaveIsAStraggler) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(~std::uint64_t{0}, two()).blocks(), 100 * ms);
    cutter.finish();
    EXPECT_EQ(cutter.stats().stragglers, 1U);
    EXPECT_TRUE(parts_.all.empty());
}

/// A part in two, and the two in one: the same bytes.
TEST_F(Pieces, MayBePutTogetherAgain) {
    PartCutter cutter(config_, memory_, parts_);
    EventMaker events;
    for (std::uint64_t number = 4; number < 8; ++number) events.add(number, two());
    cutter.append(events.blocks(), 0);
    ASSERT_EQ(left(), (Spans{{4, 7}}));
    const std::byte* const whole = parts_.all[0].second;
    const std::vector<std::byte> bytes(whole, whole + parts_.head(0).bytes);
    for (const cluster::Block at : {5U, 7U}) {
        const auto [first, second] = split_part(memory_, parts_.all[0].second, at);
        const auto& head = *reinterpret_cast<const PartHead*>(first);
        const auto& rest = *reinterpret_cast<const PartHead*>(second);
        EXPECT_EQ((std::vector<std::uint64_t>{head.block, head.end, head.events}),
                  (std::vector<std::uint64_t>{4, at, at - 4}));
        EXPECT_EQ((std::vector<std::uint64_t>{rest.block, rest.end, rest.events}),
                  (std::vector<std::uint64_t>{at, 8, 8 - at}));
        std::byte* const joined = parts_.all[0].second = join_parts(memory_, first, second);
        EXPECT_EQ(std::vector<std::byte>(joined, joined + parts_.head(0).bytes), bytes);
    }
}

TEST_F(Pieces, WhereAPartHasNothingThereIsNone) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(1, two()).blocks(), 0);
    cutter.finish();
    const auto [first, second] = split_part(memory_, parts_.all[0].second, 1);
    EXPECT_EQ(first, nullptr);
    const auto [same, nothing] = split_part(memory_, second, 2);
    EXPECT_EQ(nothing, nullptr);
    parts_.all[0].second = same;
    EXPECT_EQ(left(), (Spans{{1, 1}}));
}

class WildNumbers : public Cutter {
protected:
    static std::vector<SourceData> one() { return {whole(0, 100)}; }
    /// Blocks of one event each, a second apart, so that each has been overtaken when the next one comes.
    void bring(PartCutter& cutter, const std::vector<std::uint64_t>& numbers, const std::vector<SourceData>& sources) {
        for (const std::uint64_t number : numbers) {
            now_ += core::ns_per_s;
            cutter.append(EventMaker().add(number, sources, now_).blocks(), now_);
            cutter.look(now_ + 10 * ms, true, 0);
        }
    }
    WildNumbers() { config_.block = 2; }
    core::TimeNs now_ = 0;
};

TEST_F(WildNumbers, OneTakesNothingWithIt) {
    PartCutter cutter(config_, memory_, parts_);
    const std::uint64_t far = std::uint64_t{1} << 40U;
    bring(cutter, {0, 2, 4, far, 6, 8, 10}, one());
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4, 6, 8}));
    cutter.finish();
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4, 6, 8, 10, far}));
    EXPECT_EQ(cutter.stats().stragglers, 0U);
}

TEST_F(WildNumbers, AsTheFirstItTakesNothingWithIt) {
    PartCutter cutter(config_, memory_, parts_);
    const std::uint64_t far = std::uint64_t{1} << 40U;
    bring(cutter, {far, 0, 2, 4, 6}, one());
    cutter.finish();
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4, 6, far}));
    EXPECT_EQ(cutter.stats().stragglers, 0U);
}

TEST_F(WildNumbers, ThreeInARowAreAJump) {
    PartCutter cutter(config_, memory_, parts_);
    const std::uint64_t far = std::uint64_t{1} << 40U;
    bring(cutter, {0, 2, 4, far, far + 2}, one());
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4}));
    bring(cutter, {far + 4}, one());
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4, far}));
    cutter.finish();
    EXPECT_EQ(parts_.blocks(), (std::vector<cluster::Block>{0, 2, 4, far, far + 2, far + 4}));
}

TEST_F(WildNumbers, EveryNumberMayBeAJump) {
    PartCutter cutter(config_, memory_, parts_);
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 20; ++i) numbers.push_back(i * 200'000);
    bring(cutter, numbers, one());
    cutter.finish();
    EXPECT_EQ(cutter.stats().events, 20U);
}

TEST_F(WildNumbers, TwoSourcesAreBelieved) {
    PartCutter cutter(config_, memory_, parts_);
    bring(cutter, {0, 2, std::uint64_t{1} << 40U}, two());
    cutter.finish();
    EXPECT_EQ(cutter.stats().events, 3U);
}

TEST_F(Cutter, EventsOfARestartedSourceAreCountedAndNotSent) {
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(EventMaker().add(0, two()).add(0, two(), 1, store::Cause::complete, 1).blocks(), 0);
    cutter.finish();
    EXPECT_EQ(cutter.stats().restarted, 1U);
    ASSERT_EQ(parts_.all.size(), 1U);
    EXPECT_EQ(parts_.head(0).events, 1U);
}

TEST_F(Cutter, AnEventMayGoOnInTheNextBuffer) {
    const EventMaker maker = std::move(EventMaker().add(0, two()));
    PartCutter cutter(config_, memory_, parts_);
    const std::span<std::byte> blocks = maker.blocks();
    cutter.append(blocks.first(128), 0);
    EXPECT_FALSE(cutter.send_oldest());
    EXPECT_TRUE(parts_.all.empty());
    EXPECT_THROW(cutter.finish(), core::RunError);
    cutter.append(blocks.subspan(128), 0);
    EXPECT_TRUE(cutter.send_oldest());
    EXPECT_EQ(parts_.all.size(), 1U);
    EXPECT_FALSE(cutter.send_oldest());
}

TEST_F(Cutter, APartLeavesInTheMiddleOfAnEventOfALaterBlock) {
    EventMaker maker;
    for (std::uint64_t number = 0; number < 4; ++number) maker.add(number, two());
    const std::size_t whole_bytes = maker.blocks().size();
    maker.add(4, two());
    PartCutter cutter(config_, memory_, parts_);
    cutter.append(maker.blocks().first(whole_bytes + 128), 0);
    EXPECT_EQ(parts_.blocks(), std::vector<cluster::Block>{0});
    cutter.append(maker.blocks().subspan(whole_bytes + 128), 0);
    cutter.finish();
    EXPECT_EQ(cutter.stats().events, 5U);
}

TEST_F(Cutter, WhatHasNotLeftIsGivenBack) {
    {
        PartCutter cutter(config_, memory_, parts_);
        cutter.append(EventMaker().add(0, two()).blocks(), 0);
        EXPECT_EQ(memory_.used(), cutter.open_bytes());
        EXPECT_GT(memory_.used(), 0U);
    }
    EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(Cutter, BlocksThatAreNoneAreRefused) {
    PartCutter cutter(config_, memory_, parts_);
    std::vector<std::byte> noise(128, std::byte{0x55});
    EXPECT_THROW(cutter.append(noise, 0), core::RunError);
    EXPECT_THROW(cutter.append(EventMaker().add(0, {whole(2, 10)}).blocks(), 0), core::RunError);  // no such source
}

TEST(PartMemory, KeepsToItsBoundAndGivesPiecesAgain) {
    PartMemory memory(100'000);
    EXPECT_TRUE(memory.has_room(1'000'000));  // one piece may always be had
    const PartMemory::Piece first = memory.take(50'000);
    EXPECT_GE(first.capacity, 50'000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data) % 64, 0U);
    EXPECT_TRUE(memory.has_room(10'000));
    EXPECT_FALSE(memory.has_room(60'000));
    memory.give_back(first);
    EXPECT_EQ(memory.used(), 0U);
    EXPECT_EQ(memory.take(50'000).data, first.data);
    EXPECT_EQ(memory.used_highest(), first.capacity);
    memory.give_back(first.data);
}

}  // namespace
}  // namespace weir::fabric
