// What the manager hears for a block: of many readout nodes one tells of it, and others only if that one does not.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "cluster/node.hpp"

namespace weir::cluster::test {
namespace {

constexpr NodeId builders = 4;

/// Builders, the first of which manages, and after them readout nodes. Everything arrives at once and in order.
class Crowd {
public:
    Crowd(NodeId readouts, std::uint16_t tellers) {
        settings_.nodes = static_cast<std::uint16_t>(builders + readouts);
        settings_.tellers = tellers;
        settings_.managers.insert(0);
        for (NodeId node = 0; node < settings_.nodes; ++node)
            (node < builders ? settings_.builders : settings_.readouts).insert(node);
        for (NodeId node = 0; node < settings_.nodes; ++node)
            members_.push_back(std::make_unique<Member>(*this, settings_, node));
        for (NodeId node = 0; node < settings_.nodes; ++node)
            for (NodeId other = 0; other < settings_.nodes; ++other)
                if (other != node) members_[node]->node.peer_up(other, 1, now_);
        pass(0);
    }

    /// A block that each readout node has a part of, but for `without`.
    void offer(Block block, NodeId without = 0) {
        for (NodeId node = builders; node < settings_.nodes; ++node) {
            if (node == without)
                members_[node]->node.readout().skip_to(block + 1);
            else
                members_[node]->node.readout().offer({block, block + 1}, block + 1, {1, 1});
            bring();
        }
    }
    void pass(core::TimeNs time) {
        for (const core::TimeNs end = now_ + time; now_ <= end; now_ += core::ns_per_ms) {
            for (const auto& member : members_) member->node.look(now_);
            bring();
        }
    }
    /// From now on nothing comes of it; nobody has seen that yet.
    void keep_back(NodeId node) { kept_back_ = node; }

    [[nodiscard]] std::uint64_t built() const {
        std::uint64_t sum = 0;
        for (const auto& member : members_) sum += member->node.builder_stats().complete;
        return sum;
    }
    [[nodiscard]] std::uint64_t incomplete() const {
        std::uint64_t sum = 0;
        for (const auto& member : members_) sum += member->node.builder_stats().incomplete;
        return sum;
    }
    /// Since the last call.
    [[nodiscard]] std::map<Kind, std::uint64_t> take_heard() { return std::exchange(heard_, {}); }
    /// Of nodes that have parts, which builders were told.
    [[nodiscard]] std::uint64_t lists() const noexcept { return lists_; }
    [[nodiscard]] static NodeId readout(NodeId place) { return static_cast<NodeId>(builders + place); }

private:
    struct Member final : Network, Application {
        Member(Crowd& crowd, const Settings& settings, NodeId self)
            : crowd(crowd), self(self), node(settings, self, 1, *this, *this) {}
        void send(NodeId to, const Message& message, Payload payload) override {
            crowd.words_.push_back({self, to, message, payload});
        }
        void built(BlockSpan span, std::span<const BuiltPart> /*parts*/) override {
            crowd.written_.emplace_back(self, span.block);
        }
        void release(Payload /*payload*/) override {}
        void drop(Payload /*payload*/) override {}
        void expelled() override { ADD_FAILURE() << "node " << self << " was expelled"; }
        void ended() override {}

        Crowd& crowd;
        NodeId self;
        Node node;
    };
    struct Word {
        NodeId from = 0;
        NodeId to = 0;
        Message message;
        Payload payload;
    };

    void bring() {
        while (!words_.empty() || !written_.empty()) {
            if (words_.empty()) {
                const auto [node, block] = written_.front();
                written_.pop_front();
                members_[node]->node.written(block);
                continue;
            }
            const Word word = std::move(words_.front());
            words_.pop_front();
            if (word.from == kept_back_ && word.message.kind == Kind::ready) continue;
            if (word.to == 0 && word.from != 0) ++heard_[word.message.kind];
            if (!word.message.members.empty()) ++lists_;
            members_[word.to]->node.receive(word.from, word.message, word.payload, now_);
            if (word.payload.handle != 0) members_[word.from]->node.sent(word.to, word.message.block);
        }
    }

    Settings settings_;
    core::TimeNs now_ = 1;
    NodeId kept_back_ = 0;
    std::map<Kind, std::uint64_t> heard_;
    std::uint64_t lists_ = 0;
    std::deque<Word> words_;
    std::deque<std::pair<NodeId, Block>> written_;
    std::vector<std::unique_ptr<Member>> members_;
};

constexpr Block blocks = 200;

TEST(Messages, OfManyReadoutNodesOneTellsOfABlock) {
    for (const NodeId readouts : {32, 64, 128}) {
        Crowd crowd(readouts, 16);
        crowd.offer(0);  // of the first one all tell
        static_cast<void>(crowd.take_heard());
        for (Block block = 1; block <= blocks; ++block) crowd.offer(block);
        auto heard = crowd.take_heard();
        EXPECT_EQ(crowd.built(), blocks + 1);
        EXPECT_EQ(heard[Kind::ready], blocks) << readouts;
        EXPECT_EQ(heard[Kind::recorded], blocks);
        EXPECT_LE(heard[Kind::finished], blocks);
        EXPECT_LE(heard[Kind::done], blocks);
    }
}

/// Of so many nodes a list is long, and stays the same for a long time.
TEST(Messages, ABuilderIsToldOnceWhoHasParts) {
    Crowd crowd(64, 16);
    for (Block block = 0; block <= blocks; ++block) crowd.offer(block);
    EXPECT_EQ(crowd.built(), blocks + 1);
    EXPECT_EQ(crowd.lists(), builders);
}

TEST(Messages, OfFewEachTells) {
    Crowd crowd(16, 16);
    crowd.offer(0);
    static_cast<void>(crowd.take_heard());
    for (Block block = 1; block <= blocks; ++block) crowd.offer(block);
    EXPECT_EQ(crowd.take_heard()[Kind::ready], 16 * blocks);
    EXPECT_EQ(crowd.built(), blocks + 1);
}

/// The one after it does: what it says goes back to what it had said before. Only of the last block nobody tells in
/// turn.
TEST(Messages, WhereOneDoesNotTellOthersDo) {
    constexpr NodeId readouts = 32;
    constexpr NodeId silent = 5;
    constexpr Block last = 6 * readouts + silent;
    Crowd crowd(readouts, 16);
    crowd.offer(0);
    crowd.keep_back(Crowd::readout(silent));
    static_cast<void>(crowd.take_heard());
    for (Block block = 1; block <= last; ++block) crowd.offer(block);
    EXPECT_EQ(crowd.built(), last);
    crowd.pass(core::ns_per_ms);
    EXPECT_EQ(crowd.built(), last) << "its turn is not over";
    crowd.pass(20 * core::ns_per_ms);
    EXPECT_EQ(crowd.built(), last + 1);
    EXPECT_LE(crowd.take_heard()[Kind::ready], last + readouts);
}

/// Whoever lacks what others may have says so at once, so that nobody waits for it.
TEST(Messages, WhoHasAGapTells) {
    constexpr NodeId readouts = 32;
    Crowd crowd(readouts, 16);
    crowd.offer(0);
    static_cast<void>(crowd.take_heard());
    for (Block block = 1; block <= blocks; ++block) crowd.offer(block, Crowd::readout(7));
    crowd.pass(20 * core::ns_per_ms);
    EXPECT_EQ(crowd.built() + crowd.incomplete(), blocks + 1);
    EXPECT_EQ(crowd.incomplete(), blocks);
    EXPECT_LE(crowd.take_heard()[Kind::ready], 2 * blocks + readouts);
}

}  // namespace
}  // namespace weir::cluster::test
