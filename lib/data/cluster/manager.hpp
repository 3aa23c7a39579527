// A node as the manager: it gives blocks to builders, and knows what became of each.
//
// What it knows can be found again from the reports of the living: a builder knows what it was given and what it built,
// a readout node which parts were released. So another node can go on when this one goes away.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cluster/block_grid.hpp"
#include "cluster/block_ranges.hpp"
#include "cluster/builder_turns.hpp"
#include "cluster/message_sender.hpp"
#include "cluster/peers.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class Manager {
public:
    struct Stats {
        std::uint64_t assigned = 0;        ///< blocks, each once
        std::uint64_t pieces = 0;          ///< of these, what is not all of its numbers: see BlockGrid
        std::uint64_t assigned_again = 0;  ///< because their builder went away
        std::uint64_t committed = 0;
        std::uint64_t lost = 0;

        Stats& operator+=(const Stats& other);
    };

    /// `settled`, `losses`: what this node has heard from the manager before.
    Manager(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender, Block settled,
            const std::set<Loss>& losses);

    void begin(core::TimeNs now);
    /// From a node that has answered the claim. False: it has a history that does not fit, and must begin anew.
    [[nodiscard]] bool report(NodeId node, const Report& report, core::TimeNs now);
    void take(NodeId from, const Message& message, core::TimeNs now);
    void node_up(NodeId node);
    void node_gone(NodeId node);
    /// A builder, about to go.
    void node_leaves(NodeId node) { turns_.leaves(node); }
    void look(core::TimeNs now);

    /// What is built and not over, and of that what no part came of, for whoever manages next.
    void hand_over(std::map<Block, Recorded>& recorded, std::set<Loss>& empty) const;
    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }
    [[nodiscard]] const std::vector<Loss>& losses() const noexcept { return losses_; }
    [[nodiscard]] bool is_collecting() const noexcept { return collecting_; }

private:
    enum class Stage : std::uint8_t { assigned, recording, committed, over };
    struct Entry {
        Stage stage = Stage::assigned;
        NodeId builder = 0;
        Block end = 0;
        NodeId witness = 0;        ///< recording: who is asked to know of it
        Part empty = Part::whole;  ///< from recording on: why no part of it came, if none did
    };
    struct Known {
        bool reported = false;
        Block first = ~Block{0};  ///< that it had a part of
        Block ready = 0;
        bool ended = false;
        BlockRanges told{};          ///< what it has told of: messages overtake each other
        BlockRanges gaps{};          ///< of these, of which it has no part
        core::TimeNs behind_ns = 0;  ///< others have been ahead of it since then, and were waiting; 0: nobody was
        Block reached = 0;           ///< step
        NodeLife stands_with = 0;    ///< a builder that takes nothing from it; 0: none
        bool is_slow = false;        ///< a witness that has not answered in time, nor since
        std::uint64_t list = 0;      ///< of members, the newest that it has been told as a builder
    };

    void claim(NodeId node);
    [[nodiscard]] bool knows_all_that(const Report& report) const;
    void go_on_if_all_reported(core::TimeNs now);
    void find_again();
    void adopt(NodeId node, const Report& report);
    void adopt(const Recorded& recorded);
    void hear(NodeId from, const Message& message);
    void finish(NodeId from, const Message& message, Entry& entry);
    [[nodiscard]] std::optional<NodeId> witness_for(NodeId builder) const;
    void record(Block block, Entry& entry);
    void commit(Block block, Entry& entry);
    void ask_others_in_place_of_slow_ones();
    void begin_blocks(core::TimeNs now);
    void give();
    [[nodiscard]] bool finds_next();
    [[nodiscard]] Block end_of_gap(Block block, bool& is_known);
    void skip_to(Block block);
    void note_what_it_has(Block from, Block to, const std::vector<Block>& gaps);
    void adopt_released(const std::map<Block, Block>& released);
    void give_again_or_skip();
    void give_to(BlockSpan span, NodeId builder);
    void tell(BlockSpan span, NodeId builder);
    void step_if_all_have_reached(core::TimeNs now);
    [[nodiscard]] std::uint64_t round_of(Block block) const noexcept;
    [[nodiscard]] Block last_step_given() const noexcept;
    void step_to(Block step);
    void lose(BlockSpan span, LossCause cause);
    void lose_with_builder(BlockSpan span, bool is_listed);
    void end_if_all_have(core::TimeNs now);
    void announce_settled(core::TimeNs now, bool at_once);
    [[nodiscard]] NodeLife waits_for() const;
    [[nodiscard]] Message settled_message(std::size_t losses_from) const;
    [[nodiscard]] bool may_commit() const;
    [[nodiscard]] bool is_there(NodeId node) const { return peers_.is_up(node) && nodes_[node].reported; }

    const Settings& settings_;
    BlockGrid grid_;
    NodeId self_;
    const Peers& peers_;
    MessageSender& sender_;
    std::vector<Known> nodes_;
    std::vector<NodeLife> members_;  ///< readout nodes that are there; empty: to be looked for
    std::uint64_t list_ = 0;         ///< the number of that list
    core::TimeNs now_ = 0;
    bool collecting_ = true;
    core::TimeNs collect_by_ = 0;
    std::map<NodeId, Report> reports_;
    std::vector<std::pair<NodeId, Message>> unheard_;     ///< from before all had reported
    std::vector<std::pair<NodeId, Message>> unanswered_;  ///< finished, while nothing could be committed
    bool begun_ = false;
    core::TimeNs begin_by_ = 0;

    std::map<Block, Entry> blocks_;  ///< from settled_ up to next_
    struct Asked {
        Block block = 0;
        NodeId witness = 0;
        core::TimeNs since = 0;
    };
    std::deque<Asked> asked_;       ///< witnesses; may have answered
    BlockRanges had_;               ///< from next_ on: of which some readout node had a part, also if it has gone since
    BlockRanges skipped_;           ///< what nobody has a part of, from settled_ up to next_
    std::map<Block, Block> again_;  ///< spans
    Block settled_;
    Block next_ = 0;
    Block step_ = 0;             ///< Settings::barrier: up to which readout nodes may send
    core::TimeNs round_by_ = 0;  ///< its round begins, whole or not; 0: nothing of it has been given out
    Block ready_ = 0;            ///< the highest of all, ever
    bool any_ended_ = false;
    bool ended_and_left_ = false;  ///< a readout node did not wait for the others
    BuilderTurns turns_;
    std::vector<Loss> losses_;
    std::size_t losses_told_ = 0;
    Block settled_told_ = 0;
    NodeLife waits_for_told_ = 0;
    core::TimeNs settled_told_at_ = 0;
    bool ended_ = false;
    Stats stats_;
};

}  // namespace weir::cluster
