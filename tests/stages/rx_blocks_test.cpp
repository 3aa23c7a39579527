// A builder of a cluster: blocks become events, each with its end, and their memory comes back.
#include "stages/rx/rx_blocks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>

#include "../fabric/part_maker.hpp"
#include "assemble/event_builder.hpp"
#include "core/hot_thread.hpp"
#include "port/buffers.hpp"
#include "stages/output_fence.hpp"

namespace weir::stages::test {
namespace {

using assemble::EventCause;
using fabric::made::EventMaker;
using fabric::made::SourceData;
using fabric::made::whole;
using wire::PacketCounter;

/// Two readout nodes with a source each; what comes of their blocks.
class BlocksIn : public ::testing::Test {
protected:
    struct Left {
        EventCause cause = EventCause::complete;
        std::vector<std::uint32_t> received;  ///< bytes by source
        bool operator==(const Left&) const = default;
    };

    BlocksIn() {
        assemble::MessageTable::Config table{.sources = 2, .messages_max = 64, .buffers_max = 1024};
        table.numbers_once = true;
        table.keeps = true;
        table_.emplace(
            table, packets_, messages_, +[](void**, std::uint32_t) {});
        assemble::EventBuilder::Config builder;
        builder.sources = builder.sources_needed = 2;
        builder.ends_told = builder.wait = true;
        builder.owner = {0, 0};
        builder.number_bits = {64, 64};
        builder_.emplace(builder, packets_, messages_, events_);
        blocks_.emplace(&queue_, 4, RxBlocks::Parts{sources_, *table_});
    }
    ~BlocksIn() override {
        for (auto& [block, parts] : parts_) parts.clear();
    }

    /// The parts of both nodes of a block; a node without events has no part, for that reason.
    void give(cluster::Block block, const EventMaker* first, const EventMaker* second,
              cluster::Part why = cluster::Part::not_held) {
        std::vector<cluster::BuiltPart> built(2);
        auto& parts = parts_[block];
        for (const auto& [node, events] : {std::pair(0U, first), std::pair(1U, second)}) {
            built[node].part = why;
            if (events == nullptr) continue;
            parts.push_back(std::make_unique<fabric::made::Parts>(memory_));
            fabric::PartCutter cutter({.block = 4, .sources = {node}}, memory_, *parts.back());
            cutter.append(events->blocks(), 0);
            cutter.finish();
            built[node] = parts.back()->built(0);
        }
        made_.push_back(std::make_unique<fabric::BuiltBlock>());
        made_.back()->fill({{0, 1}}, {4 * block, 4 * block + 4}, built,
                           [](cluster::NodeId, const std::string& why) { FAIL() << why; });
        ASSERT_TRUE(queue_.built.push(made_.back().get()));
    }
    /// One turn of everybody.
    void turn(std::uint32_t messages = 64) {
        core::hot_thread(true);
        received_ += blocks_->take(messages).packets;
        while (!table_->pending().empty()) {
            ASSERT_TRUE(builder_->offer(table_->pending().front()));
            table_->consume_pending(1);
        }
        core::hot_thread(false);
    }
    /// The worker has done with all events that have left.
    void work() {
        while (assemble::Event* const event = builder_->pop_closed()) {
            Left left{event->cause, {}};
            for (assemble::Message*& message : event->messages) {
                left.received.push_back(message != nullptr ? message->received_bytes : 0);
                if (message != nullptr) table_->execute({assemble::Command::Kind::recycle, 0, 0, message}, 0);
                message = nullptr;
            }
            left_[event->number] = left;
            builder_->release(*event);
        }
        for (const assemble::Command& command : builder_->commands(0)) table_->execute(command, 0);
        builder_->consume_commands(0, static_cast<std::uint32_t>(builder_->commands(0).size()));
    }
    [[nodiscard]] std::vector<cluster::Block> given_back() {
        std::vector<cluster::Block> numbers;
        std::array<fabric::BuiltBlock*, 1> taken;
        while (queue_.taken.pop(taken) > 0) numbers.push_back(taken[0]->block());
        return numbers;
    }

    fabric::PartMemory memory_{std::uint64_t{64} << 20U};
    std::map<cluster::Block, std::vector<std::unique_ptr<fabric::made::Parts>>> parts_;
    std::vector<std::unique_ptr<fabric::BuiltBlock>> made_;
    fabric::BlockQueue queue_{16};
    std::vector<StreamRuntime> streams_;
    RxNotes notes_{streams_, 2};
    RxSources sources_{streams_, 2, notes_};
    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    assemble::EventTally events_;
    std::optional<assemble::MessageTable> table_;
    std::optional<assemble::EventBuilder> builder_;
    std::optional<RxBlocks> blocks_;
    std::map<std::uint64_t, Left> left_;
    std::uint64_t received_ = 0;
};

TEST_F(BlocksIn, BecomeEventsAndComeBack) {
    const auto first = std::move(EventMaker().add(0, {whole(0, 100)}).add(1, {whole(0, 50)}));
    const auto second = std::move(EventMaker().add(0, {whole(0, 10)}).add(1, {whole(0, 20)}));
    give(0, &first, &second);
    turn();
    EXPECT_TRUE(given_back().empty());
    work();
    turn();
    EXPECT_EQ(given_back(), std::vector<cluster::Block>{0});
    EXPECT_EQ(left_, (std::map<std::uint64_t, Left>{{0, {EventCause::complete, {100, 10}}},
                                                    {1, {EventCause::complete, {50, 20}}}}));
    EXPECT_EQ(packets_.get(PacketCounter::placed), received_);
    EXPECT_EQ(packets_.get(PacketCounter::in_flight), 0U);
    EXPECT_EQ(sources_.packets(0), 2U);
}

TEST_F(BlocksIn, AnEventThatLacksANodeEndsAtOnceForItsCause) {
    const auto first = std::move(EventMaker().add(0, {whole(0, 100)}));
    give(0, &first, nullptr, cluster::Part::node_down);
    const auto fourth = std::move(EventMaker().add(4, {whole(0, 7)}));
    const auto fifth = std::move(
        EventMaker().add(5, {{0, fabric::made::counting_bytes(30, 1), 40, {{30, 40}}, 2}}, 1, store::Cause::timeout));
    give(1, &fourth, &fifth);
    turn();
    work();
    EXPECT_EQ(left_, (std::map<std::uint64_t, Left>{{0, {EventCause::node_down, {100, 0}}},
                                                    {4, {EventCause::timeout, {7, 0}}},
                                                    {5, {EventCause::timeout, {0, 30}}}}));
    EXPECT_EQ(packets_.get(PacketCounter::placed), 4U);
}

TEST_F(BlocksIn, NumbersMayComeInAnyOrderAndTimesToo) {
    constexpr std::array<cluster::Block, 5> order{900'000, 3, 899'999, 1'000'000'000'000, 4};
    for (const cluster::Block block : order) {
        const auto first =
            std::move(EventMaker().add(4 * block, {whole(0, 8)}, static_cast<core::TimeNs>(block * 1'000'000)));
        const auto second = std::move(EventMaker().add(4 * block, {whole(0, 8)}, 5));
        give(block, &first, &second);
        turn();
        work();
        turn();
        EXPECT_EQ(given_back(), std::vector<cluster::Block>{4 * block});
    }
    EXPECT_EQ(left_.size(), order.size());
    for (const auto& [number, left] : left_) EXPECT_EQ(left.cause, EventCause::complete) << number;
}

TEST_F(BlocksIn, FewMessagesAtATimeAreEnough) {
    const auto first = std::move(EventMaker().add(0, {whole(0, 100)}).add(1, {whole(0, 50)}).add(3, {whole(0, 1)}));
    const auto second = std::move(EventMaker().add(0, {whole(0, 10)}).add(1, {whole(0, 20)}));
    give(0, &first, &second);
    for (int i = 0; i < 8; ++i) {
        turn(1);
        work();
    }
    EXPECT_EQ(left_.size(), 3U);
    EXPECT_EQ(left_[3].cause, EventCause::timeout);
    EXPECT_EQ(given_back(), std::vector<cluster::Block>{0});
}

TEST_F(BlocksIn, TheEndIsTheEndOfTheQueueOnceAllIsGivenBack) {
    const auto first = std::move(EventMaker().add(0, {whole(0, 100)}));
    give(0, &first, nullptr);
    queue_.ended = true;
    turn();
    turn();
    EXPECT_FALSE(blocks_->has_ended());  // its message is still somewhere
    work();
    turn();
    EXPECT_TRUE(blocks_->has_ended());
}

TEST_F(BlocksIn, NoMoreAreTakenThanThereMayBe) {
    const auto first = std::move(EventMaker().add(0, {whole(0, 100)}));
    for (int i = 0; i < 6; ++i) give(0, &first, nullptr);
    turn();
    EXPECT_EQ(queue_.built.count(), 2U);
}

TEST(OutputFence, IsPassedWhenAllBuffersThatHadBegunAreDone) {
    OutputFence fence(2);
    std::vector<std::uint64_t> before;
    fence.mark(before);
    EXPECT_TRUE(fence.has_passed(before));
    fence.begin_buffer(0);
    fence.begin_buffer(1);
    std::vector<std::uint64_t> place;
    fence.mark(place);
    fence.begin_buffer(0);
    EXPECT_TRUE(fence.has_passed(before));
    EXPECT_FALSE(fence.has_passed(place));
    fence.end_buffer(0);
    EXPECT_FALSE(fence.has_passed(place));
    fence.end_buffer(1);
    EXPECT_TRUE(fence.has_passed(place));
}

}  // namespace
}  // namespace weir::stages::test
