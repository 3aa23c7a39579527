// A node of a cluster that builds events together: its parts, who manages, and who is there. No network, threads or
// clock of its own: they are given to it, so the same code runs on a network, in a simulation, and in a test.
//
// Network::send() must not call back. All calls come from one thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cluster/builder.hpp"
#include "cluster/manager.hpp"
#include "cluster/message_sender.hpp"
#include "cluster/outlet.hpp"
#include "cluster/peers.hpp"
#include "cluster/quorum.hpp"
#include "cluster/readout.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class Node final : MessageSender {
public:
    Node(const Settings& settings, NodeId self, Incarnation incarnation, Network& network, Application& application);

    /// It takes over from the life of this node before, which the others took for dead: what became of blocks, and the
    /// parts that it had and that nobody has done with. Before anything else.
    void go_on_from(Node& before);

    // What the network tells it:
    /// Messages can be sent to `node` and come from it. A node that comes back has a higher incarnation.
    void peer_up(NodeId node, Incarnation incarnation, core::TimeNs now);
    /// That life of it is over, and nothing more comes of it; also if it was never seen.
    void peer_down(NodeId node, Incarnation incarnation, Ending ending, core::TimeNs now);
    /// Of one that has not come: nothing answers where it should be, or its host says that it does not run.
    void peer_absent(NodeId node, Ending why, core::TimeNs now);
    /// Of one that is there: see Quorum.
    void peer_quiet(NodeId node, bool is_quiet, core::TimeNs now);
    void receive(NodeId from, const Message& message, Payload payload, core::TimeNs now);
    /// The payload of the part of `block` has left for `to`, or never will: once for each that was sent.
    void sent(NodeId to, Block block) { readout_.sent(to, block); }
    /// Some times in every interval that matters.
    void look(core::TimeNs now);

    /// What its application tells it: see Readout and Builder.
    [[nodiscard]] Readout& readout() noexcept { return readout_; }
    void written(Block block) { builder_.written(block); }

    [[nodiscard]] const Readout::Stats& readout_stats() const noexcept { return readout_.stats(); }
    [[nodiscard]] const Builder::Stats& builder_stats() const noexcept { return builder_.stats(); }
    /// Of all its reigns.
    [[nodiscard]] Manager::Stats manager_stats() const;
    /// As this node sees it.
    [[nodiscard]] bool is_up(NodeId node) const noexcept { return peers_.is_up(node); }
    /// A builder that is about to go says so: others get its blocks, as long as one of them stays.
    void prepare_to_leave();
    /// Some other builder is there, and not about to go.
    [[nodiscard]] bool others_build() const noexcept;
    /// See Builder.
    void leave() noexcept { builder_.leave(); }
    [[nodiscard]] bool is_idle() const noexcept { return builder_.is_idle(); }
    [[nodiscard]] std::uint64_t unwritten() const noexcept { return builder_.unwritten(); }
    [[nodiscard]] bool is_settled() const noexcept { return builder_.is_settled(); }
    /// False: this node may be in the smaller part of the cluster. It neither manages nor goes on without others.
    [[nodiscard]] bool has_quorum() const noexcept { return has_quorum_; }
    [[nodiscard]] const Quorum& quorum() const noexcept { return quorum_; }
    /// Null: somebody else manages.
    [[nodiscard]] const Manager* manager() const noexcept { return manager_.get(); }
    [[nodiscard]] Block settled() const noexcept { return settled_; }
    /// The builder that holds up all blocks, or has the oldest one, when the manager last said something of it.
    [[nodiscard]] std::optional<NodeId> waits_for() const noexcept;
    /// Blocks that are lost whole, as far as this node has heard.
    [[nodiscard]] const std::set<Loss>& losses() const noexcept { return losses_; }
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }

private:
    void to(NodeId node, Message message, Payload payload) override;
    using MessageSender::to;
    void to_manager(Message message) override;

    [[nodiscard]] bool manager_is_gone(core::TimeNs now) const noexcept;
    [[nodiscard]] bool may_manage(core::TimeNs now) const;
    void manage(core::TimeNs now);
    void consider_managing(core::TimeNs now);
    [[nodiscard]] bool is_known_to(const std::vector<NodeLife>& up) const;
    void follow(NodeId manager, const Message& claim, core::TimeNs now);
    void hear_gone(const std::vector<NodeLife>& list, core::TimeNs now);
    void hear_settled(const Message& message);
    void hear_end();
    void resign();
    void say_hello(NodeId node);
    void hear_leaving(NodeId node);
    void hear_hello(NodeId from, const Message& message, core::TimeNs now);
    void turn_away(NodeId node, Incarnation incarnation);
    void gone(NodeId node, Incarnation incarnation, core::TimeNs now);
    void count_quorum(core::TimeNs now);
    void tell_manager(NodeId from, const Message& message, core::TimeNs now);
    void record(NodeId manager, const Message& message);
    [[nodiscard]] Report make_report() const;
    [[nodiscard]] bool is_manager(NodeId node) const noexcept { return has_manager_ && manager_id_ == node; }
    [[nodiscard]] bool is_from_manager(NodeId from, const Message& message) const noexcept {
        return is_manager(from) && message.term == term_;
    }

    Settings settings_;
    NodeId self_;
    Incarnation incarnation_;
    Network& network_;
    Application& application_;
    Peers peers_;
    Quorum quorum_;
    bool has_quorum_ = true;
    NodeSet not_given_up_;                                 ///< silent readout nodes that open blocks still wait for
    std::vector<std::pair<NodeId, Message>> for_manager_;  ///< once there is a quorum again
    Readout readout_;
    Builder builder_;
    std::unique_ptr<Manager> manager_;
    Manager::Stats reigns_;  ///< that are over
    bool has_manager_ = false;
    NodeId manager_id_ = 0;
    Incarnation manager_life_ = 0;
    Term term_ = 0;
    Term followed_ = 0;  ///< the manager that has been told everything
    core::TimeNs join_by_ = 0;
    bool late_ = false;  ///< it came when others had begun: for a while it does not know of everybody
    std::vector<core::TimeNs> late_until_;  ///< others for which the same is true
    NodeSet said_hello_;
    std::optional<std::pair<NodeId, Message>> postponed_;  ///< a claim that is answered once everybody knows this node
    core::TimeNs manager_by_ = 0;                          ///< a manager that this node has only heard of is waited for
    Block settled_ = 0;
    NodeId waits_for_ = 0;
    Incarnation waits_for_life_ = 0;  ///< 0: nobody
    std::set<Loss> losses_;
    std::map<Block, Recorded> recorded_;  ///< as a witness: what is built, and by whom; from settled_ on
    std::set<Loss> recorded_empty_;       ///< of these, what no part came of
    bool ended_ = false;
    NodeSet hears_of_end_;  ///< who was there when this node did
    bool expelled_ = false;
};

}  // namespace weir::cluster
