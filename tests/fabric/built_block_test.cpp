#include "fabric/built_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "part_maker.hpp"

namespace weir::fabric {
namespace {

using assemble::EventCause;
using made::counting_bytes;
using made::EventMaker;
using made::Parts;
using made::SourceData;
using made::whole;

/// Two readout nodes, 0 with sources 0 and 1, 1 with source 2; node 2 is the builder.
class Built : public ::testing::Test {
protected:
    BuiltBlock::Layout layout_{.readouts = {0, 0, 1}};
    PartMemory memory_{std::uint64_t{64} << 20U};
    Parts first_{memory_};
    Parts second_{memory_};
    BuiltBlock block_;
    std::vector<std::pair<cluster::NodeId, std::string>> rejected_;

    static void cut(const EventMaker& events, std::vector<std::uint32_t> sources, PartMemory& memory, Parts& parts) {
        PartCutter cutter({.block = 4, .sources = std::move(sources)}, memory, parts);
        cutter.append(events.blocks(), 0);
        cutter.finish();
    }
    void of_first(const EventMaker& events) { cut(events, {0, 1}, memory_, first_); }
    void of_second(const EventMaker& events) { cut(events, {2}, memory_, second_); }
    void fill(cluster::Part first = cluster::Part::whole, cluster::Part second = cluster::Part::whole) {
        std::vector<cluster::BuiltPart> parts(3);
        parts[0] = first == cluster::Part::whole ? first_.built(0) : cluster::BuiltPart{first, {}};
        parts[1] = second == cluster::Part::whole ? second_.built(0) : cluster::BuiltPart{second, {}};
        block_.fill(layout_, {0, 4}, parts,
                    [this](cluster::NodeId node, const std::string& why) { rejected_.emplace_back(node, why); });
    }
    std::vector<std::byte> payload_of(const BuiltBlock::Message& message) {
        std::vector<std::byte> all;
        for (const BuiltBlock::Piece& piece : block_.pieces(message))
            all.insert(all.end(), piece.data, piece.data + piece.bytes);
        return all;
    }
};

TEST_F(Built, EventsAreMadeOfThePartsOfAllNodes) {
    of_first(std::move(EventMaker().add(2, {whole(0, 100, 5), whole(1, 30, 6)}).add(1, {whole(0, 10), whole(1, 20)})));
    of_second(std::move(EventMaker().add(1, {whole(0, 64)}).add(2, {whole(0, 7, 9)})));
    fill();
    EXPECT_TRUE(rejected_.empty());
    ASSERT_EQ(block_.events().size(), 2U);
    const BuiltBlock::Event& second = block_.events()[1];
    EXPECT_EQ(block_.events()[0].number, 1U);
    EXPECT_EQ(second.number, 2U);
    ASSERT_EQ(second.messages, 3U);
    for (std::uint32_t source = 0; source < 3; ++source) {
        EXPECT_EQ(block_.messages(second)[source].source, source);
        EXPECT_TRUE(block_.messages(second)[source].complete);
    }
    EXPECT_EQ(payload_of(block_.messages(second)[0]), counting_bytes(100, 5));
    EXPECT_EQ(payload_of(block_.messages(second)[2]), counting_bytes(7, 9));
    EXPECT_EQ(block_.leases().size(), 6U);
    EXPECT_EQ(block_.memory().size(), 2U);
}

TEST_F(Built, MissingRangesLeaveTheirPlaces) {
    of_first(std::move(
        EventMaker().add(0, {{0, counting_bytes(60, 1), 100, {{10, 30}, {80, 100}}, 3}, {1, {}, 50, {{0, 50}}, 0}}, 1,
                         store::Cause::timeout)));
    fill(cluster::Part::whole, cluster::Part::not_held);
    ASSERT_EQ(block_.events().size(), 1U);
    EXPECT_EQ(block_.events()[0].cause, EventCause::timeout);
    ASSERT_EQ(block_.events()[0].messages, 1U);  // of source 1 nothing came
    const BuiltBlock::Message& message = block_.messages(block_.events()[0])[0];
    EXPECT_FALSE(message.complete);
    EXPECT_EQ(message.total, 100U);
    EXPECT_EQ(message.packets, 3U);
    const auto pieces = block_.pieces(message);
    ASSERT_EQ(pieces.size(), 2U);
    EXPECT_EQ(pieces[0].offset, 0U);
    EXPECT_EQ(pieces[0].bytes, 10U);
    EXPECT_EQ(pieces[1].offset, 30U);
    EXPECT_EQ(pieces[1].bytes, 50U);
    EXPECT_EQ(payload_of(message), counting_bytes(60, 1));
}

TEST_F(Built, SizesMayBeUnknownAndPayloadEmpty) {
    of_first(std::move(EventMaker().add(0, {{0, counting_bytes(40, 1), 0}, whole(1, 0)}, 1, store::Cause::end_of_run)));
    fill(cluster::Part::whole, cluster::Part::late);
    const auto messages = block_.messages(block_.events()[0]);
    EXPECT_FALSE(messages[0].total_known);
    EXPECT_EQ(payload_of(messages[0]).size(), 40U);
    EXPECT_TRUE(messages[1].complete);
    EXPECT_EQ(block_.pieces(messages[1]).size(), 1U);
}

TEST_F(Built, TheCauseIsThatOfTheNodeOrOfThePartThatIsMissing) {
    const auto cause_with = [this](store::Cause cause, cluster::Part second) {
        Parts first(memory_);
        std::swap(first.all, first_.all);
        of_first(std::move(EventMaker().add(0, {whole(0, 10), whole(1, 10)}, 1, cause)));
        fill(cluster::Part::whole, second);
        return block_.events()[0].cause;
    };
    EXPECT_EQ(cause_with(store::Cause::complete, cluster::Part::not_held), EventCause::timeout);
    EXPECT_EQ(cause_with(store::Cause::complete, cluster::Part::late), EventCause::timeout);
    EXPECT_EQ(cause_with(store::Cause::complete, cluster::Part::node_down), EventCause::node_down);
    EXPECT_EQ(cause_with(store::Cause::evicted, cluster::Part::not_held), EventCause::evicted);
    EXPECT_EQ(cause_with(store::Cause::evicted, cluster::Part::node_down), EventCause::node_down);
}

TEST_F(Built, APartOfSourcesOfAnotherNodeIsRejectedAndTheOthersStay) {
    of_first(std::move(EventMaker().add(0, {whole(0, 10), whole(1, 10)})));
    cut(std::move(EventMaker().add(0, {whole(0, 10)})), {1}, memory_, second_);
    fill();
    ASSERT_EQ(rejected_.size(), 1U);
    EXPECT_EQ(rejected_[0].first, 1U);
    EXPECT_EQ(block_.events()[0].messages, 2U);
    EXPECT_EQ(block_.memory().size(), 2U);  // its memory has to be given back all the same
}

TEST_F(Built, OfARejectedPartNothingIsTaken) {
    of_first(std::move(EventMaker().add(0, {whole(0, 10), whole(1, 10)})));
    // Its first source is the node's, its second one is not.
    cut(std::move(EventMaker().add(0, {whole(0, 10), whole(1, 10)}, 1, store::Cause::evicted)), {2, 1}, memory_,
        second_);
    fill();
    ASSERT_EQ(rejected_.size(), 1U);
    ASSERT_EQ(block_.events().size(), 1U);
    EXPECT_EQ(block_.events()[0].messages, 2U);
    EXPECT_EQ(block_.events()[0].cause, EventCause::timeout);
}

TEST_F(Built, DamagedPartsDoNoHarm) {
    std::mt19937_64 random(7);
    of_first(std::move(
        EventMaker()
            .add(0, {{0, counting_bytes(60, 1), 100, {{10, 30}, {80, 100}}, 3}, whole(1, 33)}, 1, store::Cause::timeout)
            .add(1, {whole(0, 500), whole(1, 33)})));
    const PartHead head = first_.head(0);
    const std::vector<std::byte> good(first_.all[0].second, first_.all[0].second + head.bytes);
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::byte> bad = good;
        for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips)
            bad[random() % bad.size()] ^= static_cast<std::byte>(1U << random() % 8);
        if (random() % 4 == 0) bad.resize(random() % bad.size());
        const cluster::BuiltPart part{cluster::Part::whole, {bad.size(), reinterpret_cast<std::uint64_t>(bad.data())}};
        block_.fill(layout_, {0, 4}, std::vector<cluster::BuiltPart>{part, {}, {}},
                    [](cluster::NodeId, const std::string&) {});
        for (const BuiltBlock::Event& event : block_.events())
            for (const BuiltBlock::Message& message : block_.messages(event))
                for (const BuiltBlock::Piece& piece : block_.pieces(message)) {
                    ASSERT_GE(piece.data, bad.data());
                    ASSERT_LE(piece.data + piece.bytes, bad.data() + bad.size());
                }
    }
}

}  // namespace
}  // namespace weir::fabric
