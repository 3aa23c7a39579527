// A node as a builder: it collects the parts of the blocks that it is given.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cluster/message_sender.hpp"
#include "cluster/outlet.hpp"
#include "cluster/peers.hpp"
#include "cluster/send_order.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class Builder {
public:
    struct Stats {
        std::uint64_t assigned = 0;
        std::uint64_t complete = 0;           ///< built, with all parts
        std::uint64_t incomplete = 0;         ///< built, and parts are missing
        std::uint64_t empty = 0;              ///< nobody had a part
        std::vector<std::uint64_t> received;  ///< parts, by node
        std::vector<std::uint64_t> late;      ///< parts that came when their block had been built, by node
        std::vector<std::uint64_t> not_held;  ///< missing parts of built blocks, by cause, by node
        std::vector<std::uint64_t> node_down;
        std::vector<std::uint64_t> timed_out;
        std::vector<std::uint64_t> awaited_ns;  ///< how long the oldest block lacked nothing but its part, by node
        std::uint64_t open_highest = 0;

        Stats& operator+=(const Stats& other);
    };

    Builder(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender, Application& application);

    /// Readout nodes of the list with the number `list` have parts (0: none). `members`: that list; empty: it came
    /// before, or is still on its way.
    void assign(BlockSpan span, std::uint64_t list, const std::vector<NodeLife>& members, core::TimeNs now);
    void take(NodeId from, const Message& message, Payload payload);
    void commit(Block block);
    /// The application is done with a block that it was given, and with its payload.
    void written(Block block);
    void readout_up(NodeId node);
    void readout_gone(NodeId node);
    void forget_before(Block block);
    /// This life is over: the parts that the application has not been given are released.
    void let_go();
    void look(core::TimeNs now);

    /// This node is about to go: it builds what it has, and what it is given from now on somebody else does when it is
    /// gone.
    void leave() noexcept { leaving_ = true; }
    /// It has no block.
    [[nodiscard]] bool is_idle() const noexcept { return open_.empty(); }
    /// Counted as built, and not written.
    [[nodiscard]] std::uint64_t unwritten() const noexcept;
    /// Everybody knows what became of all that it had.
    [[nodiscard]] bool is_settled() const noexcept { return done_.empty(); }

    /// Somebody else manages: what the one before was asked is asked again.
    void ask_again();
    void fill(Report& report) const;
    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

private:
    enum class Stage : std::uint8_t {
        collecting,
        given,      ///< Keep::written: the application has it
        finished,   ///< the manager is asked
        committed,  ///< the application has it, or need not have it: it is empty
    };
    struct Open {
        Stage stage = Stage::collecting;
        Block end = 0;
        std::vector<BuiltPart> parts;
        NodeSet awaited;
        std::vector<NodeId> order;
        std::size_t next = 0;                ///< in `order`: whom to ask
        NodeSet asked;                       ///< and not answered
        std::vector<Incarnation> members;    ///< by node; 0: it is none
        core::TimeNs since_ns = 0;           ///< assigned
        std::vector<core::TimeNs> asked_ns;  ///< by node, from `since_ns` on
    };
    using Blocks = std::map<Block, Open>;

    void note_list(std::uint64_t list, const std::vector<NodeLife>& members);
    [[nodiscard]] bool has_gone(NodeId node, std::uint64_t list) const noexcept;
    void take_on(BlockSpan span, std::uint64_t list, const std::vector<NodeLife>& members, core::TimeNs now);
    void take_early(BlockSpan span, Open& open);
    void ask(Block block, Open& open);
    [[nodiscard]] bool is_over(const Open& open, NodeId node) const noexcept;
    [[nodiscard]] bool can_be_asked(const Open& open, NodeId node) const noexcept;
    void lacks(Open& open, NodeId node, Part why);
    void finish_if_all_here(Blocks::iterator at);
    void note_arrival(NodeId from);
    [[nodiscard]] bool is_stuck(const Open& open, NodeId node) const noexcept;
    bool give_up_stuck(Open& open);
    void ask_manager(Block block, const Open& open);
    void give(Block block, const Open& open);
    void end(Blocks::iterator at);
    void count(const Open& open);
    void note_awaited(core::TimeNs now);
    [[nodiscard]] static bool is_empty(const Open& open);
    [[nodiscard]] Part why_empty(const Open& open) const;

    const Settings& settings_;
    NodeId self_;
    const Peers& peers_;
    MessageSender& sender_;
    Application& application_;
    SendOrder order_;
    Blocks open_;
    std::map<std::uint64_t, std::vector<NodeLife>> lists_;  ///< of members, by their numbers; of this manager
    struct Listed {
        Incarnation life = 0;
        std::uint64_t since = 0;  ///< the first list that has this life
    };
    std::vector<Listed> listed_;                                ///< by node
    std::map<std::uint64_t, std::vector<BlockSpan>> unlisted_;  ///< blocks whose list is still on its way
    /// Parts that readout nodes pushed, of blocks whose assignment is still on its way.
    std::map<BlockSpan, std::map<NodeId, BuiltPart>> early_;
    std::map<Block, Block> done_;  ///< spans, from settled_ on
    std::set<Loss> empty_;         ///< of these, what nobody had a part of
    Block settled_ = 0;
    core::TimeNs now_ = 0;
    core::TimeNs looked_ns_ = 0;
    struct Way {
        core::TimeNs heard_ns = 0;  ///< when the last part came
        bool is_stuck = false;      ///< none has come since one was given up
    };
    std::vector<Way> ways_;  ///< from each node
    Way any_way_;            ///< from any other node
    bool leaving_ = false;
    Stats stats_;
};

}  // namespace weir::cluster
