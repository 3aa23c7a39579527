// Three nodes of a cluster whose parts arrive when the test says so, and whose time passes when it says so.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/node.hpp"

namespace weir::cluster::test {

constexpr NodeId node_count = 3;
using Pairs = std::set<std::pair<NodeId, NodeId>>;

/// Nodes that are readout and builder. Words arrive at once and in order; parts when the test says so.
class Hall {
public:
    explicit Hall(const Settings& settings) {
        for (NodeId node = 0; node < node_count; ++node)
            members_.push_back(std::make_unique<Member>(*this, settings, node));
        for (NodeId node = 0; node < node_count; ++node)
            for (NodeId other = 0; other < node_count; ++other)
                if (other != node) members_[node]->node.peer_up(other, 1, 1);
        settle();
    }

    void offer(Block blocks, Block first = 0) {
        for (Block block = first; block < first + blocks; ++block)
            for (const auto& member : members_)
                if (member != nullptr) member->node.readout().offer({block, block + 1}, block + 1, {1, 1});
        settle();
    }

    /// From now on `node` says nothing of what it has written.
    void keep_back(NodeId node) { kept_back_.insert(node); }

    void pass(core::TimeNs time) {
        now_ += time;
        settle();
    }

    void prepare_to_leave(NodeId node) {
        members_[node]->node.prepare_to_leave();
        settle();
    }

    [[nodiscard]] bool others_build(NodeId node) const { return members_[node]->node.others_build(); }

    /// Blocks that each builder has been given.
    [[nodiscard]] std::vector<std::uint64_t> assigned() const {
        std::vector<std::uint64_t> blocks;
        for (const auto& member : members_)
            blocks.push_back(member == nullptr ? 0 : member->node.builder_stats().assigned);
        return blocks;
    }

    void close() {
        for (const auto& member : members_) member->node.readout().close();
        settle();
    }

    /// Parts over the network that have not arrived: (from, to).
    [[nodiscard]] Pairs on_their_way() const {
        Pairs pairs;
        for (const auto& [from, to, block] : parts_) pairs.emplace(from, to);
        return pairs;
    }

    [[nodiscard]] std::size_t parts_on_their_way() const { return parts_.size(); }

    void tick(core::TimeNs shared) {
        for (const auto& member : members_)
            if (member != nullptr) member->node.readout().tick(shared);
        settle();
    }

    /// The first part from `from`, to `to` or a node after that.
    void arrive(NodeId from, NodeId least_to = 0) {
        const auto part = *parts_.lower_bound({from, least_to, 0});
        parts_.erase(part);
        const auto& [sender, to, block] = part;
        ASSERT_EQ(sender, from);
        bring(from, to, {.kind = Kind::part, .from = 1, .to = 1, .block = block, .end = block + 1}, {1, 1});
        members_[from]->node.sent(to, block);
        settle();
    }

    /// `unseen_by`: who has not noticed.
    void fall(NodeId node, std::optional<NodeId> unseen_by = {}) {
        members_[node].reset();
        std::erase_if(parts_, [node](const auto& part) { return std::get<0>(part) == node; });
        for (const auto& member : members_)
            if (member != nullptr && member->self != unseen_by) member->node.peer_down(node, 1, Ending::over, now_);
        settle();
    }

    [[nodiscard]] const Builder::Stats& builder_stats(NodeId node) const {
        return members_[node]->node.builder_stats();
    }

    [[nodiscard]] std::uint64_t steps_told() const noexcept { return steps_told_; }

    /// Who holds up all, as a node knows it.
    [[nodiscard]] std::optional<NodeId> waited_for(NodeId by) const { return members_[by]->node.waits_for(); }

    [[nodiscard]] std::uint64_t built() const {
        std::uint64_t sum = 0;
        for (const auto& member : members_) sum += member == nullptr ? 0 : member->node.builder_stats().complete;
        return sum;
    }

private:
    struct Member final : Network, Application {
        Member(Hall& hall, const Settings& settings, NodeId self)
            : hall(hall), self(self), node(settings, self, 1, *this, *this) {}
        void send(NodeId to, const Message& message, Payload payload) override {
            if (message.kind == Kind::step) ++hall.steps_told_;
            if (payload.handle != 0 && to != self)
                hall.parts_.emplace(self, to, message.block);
            else
                hall.words_.push_back({self, to, message, payload});
        }
        void built(BlockSpan span, std::span<const BuiltPart> /*parts*/) override {
            hall.written_.emplace_back(self, span.block);
        }
        void release(Payload /*payload*/) override {}
        void drop(Payload /*payload*/) override {}
        void expelled() override { ADD_FAILURE() << "node " << self << " was expelled"; }
        void ended() override {}

        Hall& hall;
        NodeId self;
        Node node;
    };
    struct Word {
        NodeId from = 0;
        NodeId to = 0;
        Message message;
        Payload payload;
    };

    void bring(NodeId from, NodeId to, const Message& message, Payload payload) {
        if (members_[to] != nullptr) members_[to]->node.receive(from, message, payload, now_);
    }

    void settle() {
        for (const auto& member : members_)
            if (member != nullptr) member->node.look(now_);
        while (!words_.empty() || !written_.empty()) {
            if (!words_.empty()) {
                const Word word = std::move(words_.front());
                words_.pop_front();
                bring(word.from, word.to, word.message, word.payload);
                if (word.payload.handle != 0) members_[word.from]->node.sent(word.to, word.message.block);
                continue;
            }
            const auto [node, block] = written_.front();
            written_.pop_front();
            if (members_[node] != nullptr && !kept_back_.contains(node)) members_[node]->node.written(block);
        }
    }

    core::TimeNs now_ = 2;
    std::set<NodeId> kept_back_;
    std::uint64_t steps_told_ = 0;
    std::deque<Word> words_;
    std::deque<std::pair<NodeId, Block>> written_;
    std::set<std::tuple<NodeId, NodeId, Block>> parts_;
    std::vector<std::unique_ptr<Member>> members_;
};

inline Settings in_step(bool barrier) {
    Settings settings;
    settings.nodes = node_count;
    settings.strategy = Strategy::push;
    settings.credits = 4;
    settings.parallel = 1;
    settings.barrier = barrier;
    settings.managers.insert(1);
    settings.managers.insert(2);
    for (NodeId node = 0; node < node_count; ++node) settings.readouts.insert(node), settings.builders.insert(node);
    return settings;
}

}  // namespace weir::cluster::test
