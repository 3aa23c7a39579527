// A node as a readout node: it holds its parts of blocks, and sends each to the builder that the block is given to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "cluster/block_grid.hpp"
#include "cluster/block_ranges.hpp"
#include "cluster/message_sender.hpp"
#include "cluster/outlet.hpp"
#include "cluster/peers.hpp"
#include "cluster/send_order.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class Readout {
public:
    struct Stats {
        std::uint64_t offered = 0;      ///< parts; what is given out in pieces counts as so many
        std::uint64_t handed_over = 0;  ///< parts that were sent; more than once if a builder went away
        std::uint64_t not_held = 0;     ///< parts that somebody wanted and that are not here
        std::uint64_t dropped =
            0;  ///< parts that had to go before they were released, or were released and nobody was sent them
        std::uint64_t held = 0;  ///< now
        std::uint64_t held_highest = 0;
        std::vector<std::uint64_t> handed_to;  ///< of those handed over, by node

        Stats& operator+=(const Stats& other);
    };

    Readout(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender, Application& application);

    /// See Node::go_on_from().
    void go_on_from(Readout& before);
    /// All that there is of these numbers, and will be: of those from `rest` on there is nothing. They rise, but some
    /// may be left out.
    void offer(BlockSpan span, Block rest, Payload payload);
    /// There is nothing of any number before `block`, nor will there be.
    void skip_to(Block block);
    /// A manager has been given a report, which says all so far.
    void reported();
    /// Nothing more comes.
    void close();
    /// There is no room for all: the oldest parts go, up to before `block`.
    void drop_before(Block block);

    /// `builder`, in that life of it, is to have the part of these numbers.
    void want(BlockSpan span, NodeId builder, Incarnation life);
    void sent(NodeId to, Block block);
    /// Settings::barrier: what is to be sent in steps up to `step` may be sent.
    void go(Block step);
    void release(BlockSpan span);
    /// What became of all numbers before `block` is known, so nobody wants them.
    void forget_before(Block block);
    /// One that a manager knew of earlier than this node did.
    void builder_up(NodeId builder);
    void builder_gone(NodeId builder);
    void look(core::TimeNs now);
    /// Settings::slot_ns: what time it is by the clocks that all nodes share. To be called early in each slot.
    void tick(core::TimeNs shared);
    /// Somebody waits for what this node may still get of blocks before this one.
    [[nodiscard]] Block wanted_before() const noexcept { return waiting_.empty() ? 0 : waiting_.rbegin()->second.end; }
    /// Something waits for its slot.
    [[nodiscard]] bool wants_ticks() const noexcept;

    void fill(Report& report) const;
    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

private:
    struct Held {
        Block end = 0;
        Payload payload;
        std::uint32_t sending = 0;
        bool released = false;
        bool was_sent = false;
        NodeId sent_to = 0;
        Incarnation sent_to_life = 0;  ///< 0: to nobody
    };
    struct Turn {
        std::uint64_t round = 0;
        std::uint32_t place = 0;
        BlockSpan span;
        NodeId builder = 0;
        auto operator<=>(const Turn&) const = default;
    };
    struct OnItsWay {
        NodeId builder = 0;
        Block block = 0;
        core::TimeNs since = 0;  ///< 0: nobody has looked since it was sent
        bool stands = false;
    };
    struct PartRequest {
        Block end = 0;
        NodeId builder = 0;
        Incarnation life = 0;
        core::TimeNs since = 0;  ///< 0: nobody has looked since it came
    };
    using Parts = std::map<Block, Held>;
    void move_on(Block from, Block to);
    void cut_at(Block at);
    [[nodiscard]] bool is_in_use(BlockSpan span) const;
    [[nodiscard]] Parts::iterator gather(BlockSpan span);
    void mark_released(BlockSpan span);
    void drop_settled();
    [[nodiscard]] bool tells_at_once(bool has_gap) const noexcept;
    void tell_ready();
    void tell_if_nobody_does(core::TimeNs now);
    void answer_requests();
    void say_if_it_stands(core::TimeNs now);
    bool send_oldest_asked(NodeId builder);
    void send_asked(NodeId builder);
    void send_turns();
    [[nodiscard]] bool may_send_more() const noexcept;
    [[nodiscard]] bool takes_more(NodeId builder) const noexcept;
    [[nodiscard]] Block step_of(const Turn& turn) const noexcept;
    void tell_reached();
    void tell_standing();
    void send_part(BlockSpan span, NodeId builder);
    void let_go(Parts::iterator held);

    const Settings& settings_;
    NodeId self_;
    NodeId place_ = 0;  ///< among the readout nodes
    const Peers& peers_;
    MessageSender& sender_;
    Application& application_;
    SendOrder order_;
    BlockGrid grid_;
    Parts held_;
    std::multimap<Block, PartRequest> waiting_;                           ///< wanted, and not here yet
    std::multimap<NodeId, std::pair<BlockSpan, Incarnation>> unreached_;  ///< wanted by builders that are not here yet
    std::vector<std::deque<BlockSpan>> asked_;                            ///< by or for each builder, and not sent yet
    std::set<Turn> turns_;                     ///< the same where this node pushes, but for slots
    std::vector<OnItsWay> on_their_way_;       ///< parts, over the network, where this node pushes
    std::vector<std::uint32_t> in_flight_to_;  ///< how many these are, by builder
    std::uint32_t in_flight_to_max_;
    Block step_ = 0;              ///< up to which it may send
    bool told_reached_ = true;    ///< that it has
    NodeLife told_standing_ = 0;  ///< a builder that takes nothing, as the manager knows it
    std::uint64_t slot_ = 0;
    std::map<Block, Block> released_;    ///< spans
    std::vector<BlockSpan> to_release_;  ///< of these, what is on its way together with others
    Block settled_ = 0;
    Block first_ = 0;
    Block ready_ = 0;
    Block told_ = 0;              ///< the manager, of blocks before it
    Block given_out_ = 0;         ///< blocks before it have been, as far as this node knows
    core::TimeNs silent_ns_ = 0;  ///< the same, given out or not
    core::TimeNs untold_ns_ = 0;  ///< since when there are others; 0: nobody has looked since, or there are none
    Block was_ready_ = 0;         ///< when somebody looked
    core::TimeNs moved_ns_ = 0;   ///< when it was seen to have become more
    BlockRanges gaps_;            ///< of which it has no part; from settled_ on
    BlockRanges rests_;           ///< of parts: what nothing is in from there on; likewise
    bool begun_ = false;
    bool ended_ = false;
    Stats stats_;
};

}  // namespace weir::cluster
