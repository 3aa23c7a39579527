#include "cluster/node.hpp"

#include <algorithm>
#include <utility>

namespace weir::cluster {

namespace {

/// Higher than `last`, and that of no other life of any node. Of two that claim at the same time one counts.
Term next_term(Term last, NodeId self, Incarnation incarnation) {
    return ((last >> 32U) + 1) << 32U | (incarnation & 0xffffU) << 16U | static_cast<NodeId>(~self);
}

}  // namespace

Node::Node(const Settings& settings, NodeId self, Incarnation incarnation, Network& network, Application& application)
    : settings_(settings),
      self_(self),
      incarnation_(incarnation),
      network_(network),
      application_(application),
      peers_(settings.nodes),
      quorum_(settings_, self, peers_),
      readout_(settings_, self, peers_, *this, application),
      builder_(settings_, self, peers_, *this, application) {
    // Whom nobody waits for is as one that has gone: it comes back, as any other.
    for (NodeId node = 0; node < settings.nodes; ++node)
        if (settings.spares.contains(node) || settings.left_out.contains(node)) peers_.set_gone(node, 0);
    peers_.set_up(self, incarnation);
    late_until_.resize(settings.nodes);
}

void Node::go_on_from(Node& before) {
    settled_ = before.settled_;
    // What is not settled it may have found out by itself, where others were only out of its reach.
    for (const Loss& loss : before.losses_)
        if (loss.block < settled_) losses_.insert(loss);
    recorded_ = std::move(before.recorded_);
    recorded_empty_ = std::move(before.recorded_empty_);
    readout_.go_on_from(before.readout_);
    // The builder takes what it is given: who manages may know of less, and give out what was settled here.
    before.builder_.let_go();
}

void Node::to(NodeId node, Message message, Payload payload) {
    if (!peers_.is_up(node)) return;
    message.from = incarnation_;
    message.to = peers_.incarnation(node);
    message.term = term_;
    network_.send(node, message, payload);
}

void Node::to_manager(Message message) {
    if (has_manager_ && followed_ == term_) to(manager_id_, std::move(message), {});  // not before it has the report
}

void Node::peer_up(NodeId node, Incarnation incarnation, core::TimeNs now) {
    if (node == self_) return;
    if (incarnation <= peers_.gone(node)) return turn_away(node, incarnation);
    if (peers_.is_up(node)) {
        if (incarnation <= peers_.incarnation(node)) return;
        gone(node, incarnation - 1, now);
    }
    peers_.set_up(node, incarnation);
    quorum_.up(node);
    if (followed_ != 0 && !late_) late_until_[node] = now + settings_.join_wait_ns;
    say_hello(node);
    builder_.readout_up(node);
    readout_.builder_up(node);
    if (manager_ != nullptr) manager_->node_up(node);
    look(now);
}

/// Others have said that this life of it is over, or a later one, which it may not know: its clock may be behind.
void Node::turn_away(NodeId node, Incarnation incarnation) {
    network_.send(
        node,
        {.kind = Kind::expelled, .life = peers_.gone(node), .from = incarnation_, .to = incarnation, .term = term_},
        {});
}

void Node::peer_down(NodeId node, Incarnation incarnation, Ending ending, core::TimeNs now) {
    // Others may have said so before, but not how.
    if (incarnation >= std::max(peers_.incarnation(node), peers_.gone(node))) quorum_.down(node, ending);
    count_quorum(now);
    if (node == self_ || incarnation <= peers_.gone(node)) return;
    const Incarnation here = peers_.is_up(node) ? peers_.incarnation(node) : incarnation;
    gone(node, incarnation, now);
    if (here < incarnation) turn_away(node, here);
}

/// One that was never seen may have come where others see it, and this node not.
void Node::peer_absent(NodeId node, Ending why, core::TimeNs now) {
    if (peers_.incarnation(node) > 0 || settings_.left_out.contains(node)) return;
    quorum_.down(node, why);
    count_quorum(now);
}

void Node::peer_quiet(NodeId node, bool is_quiet, core::TimeNs now) {
    quorum_.quiet(node, is_quiet);
    count_quorum(now);
}

/// Without a quorum nothing is found out from silence, and what the manager is told waits for its answer: it may be
/// that others have taken this part of the cluster for dead, and build the same blocks.
void Node::count_quorum(core::TimeNs now) {
    has_quorum_ = quorum_.holds();
    if (!has_quorum_) {
        if (manager_ == nullptr || !quorum_.is_lost()) return;
        resign();
        has_manager_ = false;
        for_manager_.clear();
        return;
    }
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!not_given_up_.contains(node)) continue;
        not_given_up_.erase(node);
        builder_.readout_gone(node);
    }
    for (const auto& [from, message] : std::exchange(for_manager_, {})) receive(from, message, {}, now);
}

void Node::gone(NodeId node, Incarnation incarnation, core::TimeNs now) {
    peers_.set_gone(node, incarnation);
    if (peers_.is_up(node)) return;  // it has begun another life already
    said_hello_.erase(node);
    hears_of_end_.erase(node);
    const bool managed = is_manager(node);
    if (managed) has_manager_ = false;
    readout_.builder_gone(node);
    if (has_quorum_)
        builder_.readout_gone(node);
    else
        not_given_up_.insert(node);
    if (manager_ != nullptr) manager_->node_gone(node);
    if (managed)  // who has claimed already does so again
        for (NodeId other = 0; other < settings_.nodes; ++other)
            if (other != self_) say_hello(other);
    look(now);
}

/// One that others said manages may have gone before this node came; also if it has come back since, with a clock that
/// is behind.
bool Node::manager_is_gone(core::TimeNs now) const noexcept {
    const bool is_awaited = !peers_.is_up(manager_id_) || peers_.incarnation(manager_id_) < manager_life_;
    return manager_life_ <= peers_.gone(manager_id_) || (is_awaited && now >= manager_by_) ||
           (!is_awaited && peers_.incarnation(manager_id_) > manager_life_);
}

/// Who has come late leaves it to the others. At the first start nobody has, once all have said so.
bool Node::may_manage(core::TimeNs now) const {
    if (expelled_ || !has_quorum_ || !settings_.managers.contains(self_)) return false;
    if (now >= join_by_) return true;
    if (late_) return false;
    if (followed_ != 0) return true;
    if (term_ != 0) return false;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (peers_.state(node) == Peers::State::awaited) return false;
        if (node != self_ && peers_.is_up(node) && !said_hello_.contains(node)) return false;
    }
    return true;
}

/// The lowest node that may manage does. But who managed, and resigned because too few were in reach, goes on if nobody
/// else has claimed since: the others still wait for it.
void Node::consider_managing(core::TimeNs now) {
    if (has_manager_ && manager_is_gone(now)) has_manager_ = false;
    if (has_manager_ || !may_manage(now)) return;
    const bool is_waited_for = manager_id_ == self_ && manager_life_ == incarnation_;
    for (NodeId node = 0; node < self_ && !is_waited_for; ++node) {
        if (!settings_.managers.contains(node)) continue;
        if (peers_.state(node) != Peers::State::down && now >= late_until_[node]) return;
    }
    manage(now);
}

void Node::manage(core::TimeNs now) {
    resign();
    term_ = next_term(term_, self_, incarnation_);
    has_manager_ = true;
    manager_id_ = self_;
    manager_life_ = incarnation_;
    manager_ =
        std::make_unique<Manager>(settings_, self_, peers_, static_cast<MessageSender&>(*this), settled_, losses_);
    manager_->begin(now);
}

bool Node::is_known_to(const std::vector<NodeLife>& up) const {
    return std::ranges::all_of(up, [this](NodeLife entry) {
        const auto node = node_of(entry);
        return node == self_ || said_hello_.contains(node) || incarnation_of(entry) <= peers_.gone(node);
    });
}

/// Somebody manages: tell it what there is, and take those for gone that it takes for gone.
void Node::follow(NodeId manager, const Message& claim, core::TimeNs now) {
    if (manager == self_ && manager_ == nullptr) return;  // it has resigned since
    if (claim.term < term_) {
        say_hello(manager);
        return;
    }
    late_ |= claim.late && followed_ == 0;
    // Who is given blocks before others know of it would be forgotten if the manager went away.
    if (followed_ == 0 && now < join_by_ && !is_known_to(claim.up)) {
        hear_gone(claim.gone, now);
        term_ = claim.term;
        postponed_ = {manager, claim};
        return;
    }
    postponed_.reset();
    const bool is_new = claim.term != std::exchange(followed_, claim.term);
    term_ = claim.term;
    has_manager_ = true;
    manager_id_ = manager;
    manager_life_ = claim.from;
    if (manager != self_) resign();
    hear_gone(claim.gone, now);
    if (!is_new) return;  // the report of later would count twice what came in between
    to_manager({.kind = Kind::report, .report = make_report()});
    readout_.reported();
    builder_.ask_again();
}

void Node::hear_gone(const std::vector<NodeLife>& list, core::TimeNs now) {
    for (const NodeLife entry : list) {
        const auto node = node_of(entry);
        const auto life = incarnation_of(entry);
        const bool is_known = life > 0 ? life <= peers_.gone(node) : peers_.state(node) != Peers::State::awaited;
        if (node == self_ || is_known) continue;
        if (peers_.is_up(node) && peers_.incarnation(node) <= life)
            to(node, {.kind = Kind::expelled, .life = life}, {});
        gone(node, life, now);
    }
}

void Node::say_hello(NodeId node) {
    Message message{.kind = Kind::hello,
                    .ended = hears_of_end_.contains(node),
                    .managed = has_manager_,
                    .leaving = peers_.is_leaving(self_),
                    .node = manager_id_,
                    .life = manager_life_};
    message.gone = peers_.all_gone();
    to(node, std::move(message), {});
}

/// Who comes back knows neither who has gone meanwhile, nor who manages.
void Node::hear_hello(NodeId from, const Message& message, core::TimeNs now) {
    said_hello_.insert(from);
    if (message.leaving) hear_leaving(from);
    if (message.term <= term_) {
        if (manager_ != nullptr && !message.managed) manager_->node_up(from);
    } else {
        term_ = message.term;
        if (manager_ != nullptr && !manager_->is_collecting()) {  // somebody who came late has claimed
            manage(now);
        } else {
            resign();
            manager_by_ = now + settings_.join_wait_ns;
            has_manager_ = message.managed && message.node != self_;
            manager_id_ = message.node;
            manager_life_ = message.life;
        }
    }
    hear_gone(message.gone, now);
    if (message.ended) hear_end();
    look(now);
}

void Node::prepare_to_leave() {
    if (peers_.is_leaving(self_)) return;
    hear_leaving(self_);
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (node != self_) say_hello(node);
}

/// All nodes know, so that whoever manages next does.
void Node::hear_leaving(NodeId node) {
    peers_.set_leaving(node);
    if (manager_ != nullptr) manager_->node_leaves(node);
}

bool Node::others_build() const noexcept {
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (node != self_ && settings_.builders.contains(node) && peers_.is_up(node) && !peers_.is_leaving(node))
            return true;
    return false;
}

/// Who manages next hears from this node what it had found out.
void Node::resign() {
    if (manager_ == nullptr) return;
    losses_.insert(manager_->losses().begin(), manager_->losses().end());
    manager_->hand_over(recorded_, recorded_empty_);
    reigns_ += manager_->stats();
    manager_.reset();
}

Manager::Stats Node::manager_stats() const {
    Manager::Stats stats = reigns_;
    if (manager_ != nullptr) stats += manager_->stats();
    return stats;
}

Report Node::make_report() const {
    Report report;
    if (settings_.readouts.contains(self_)) readout_.fill(report);
    if (settings_.builders.contains(self_)) builder_.fill(report);
    for (const auto& [block, recorded] : recorded_) report.recorded.push_back(recorded);
    report.empty.insert(report.empty.end(), recorded_empty_.begin(), recorded_empty_.end());
    report.up = peers_.all_up();
    report.settled = settled_;
    report.losses.assign(losses_.begin(), losses_.end());
    return report;
}

void Node::hear_settled(const Message& message) {
    losses_.insert(message.losses.begin(), message.losses.end());
    if (message.block >= settled_) {
        waits_for_ = message.node;
        waits_for_life_ = message.life;
    }
    if (message.block > settled_) {
        settled_ = message.block;
        readout_.forget_before(settled_);
        builder_.forget_before(settled_);
        recorded_.erase(recorded_.begin(), recorded_.lower_bound(settled_));
        recorded_empty_.erase(recorded_empty_.begin(), recorded_empty_.lower_bound({settled_, LossCause{}}));
    }
    if (message.ended) hear_end();
}

/// Who hears of it leaves, the manager as well. Others may learn that it has gone before they hear from it, and would
/// wait for a word that the next manager, which may have left too, does not say again: so everybody says it. Not to who
/// comes while this node is still writing, which may have been started for the next run.
void Node::hear_end() {
    if (std::exchange(ended_, true)) return;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (node == self_ || !peers_.is_up(node)) continue;
        hears_of_end_.insert(node);
        say_hello(node);
    }
    recorded_.clear();
    recorded_empty_.clear();
    readout_.forget_before(~Block{0});
    builder_.forget_before(~Block{0});
    application_.ended();
}

std::optional<NodeId> Node::waits_for() const noexcept {
    if (waits_for_life_ == 0 || waits_for_life_ <= peers_.gone(waits_for_)) return std::nullopt;
    return waits_for_;
}

void Node::receive(NodeId from, const Message& message, Payload payload, core::TimeNs now) {
    if (message.to == incarnation_ && !expelled_ && message.from > peers_.gone(from))
        peer_up(from, message.from, now);  // the network may tell that later
    const bool has_payload = message.kind == Kind::part && message.part == Part::whole;
    // Meant for the life before, or from one that is over.
    if (message.to != incarnation_ || !peers_.is_up(from) || message.from != peers_.incarnation(from) || expelled_) {
        if (has_payload) application_.release(payload);
        return;
    }
    const BlockSpan span{message.block, message.end};
    switch (message.kind) {
        case Kind::claim:
            follow(from, message, now);
            break;
        case Kind::report:
            if (manager_ != nullptr && message.term == term_ && !has_quorum_)
                for_manager_.emplace_back(from, message);
            else if (manager_ != nullptr && message.term == term_ && !manager_->report(from, message.report, now)) {
                to(from, {.kind = Kind::expelled}, {});
                gone(from, message.from, now);
            }
            break;
        case Kind::hello:
            hear_hello(from, message, now);
            break;
        case Kind::ready:
        case Kind::reached:
        case Kind::finished:
        case Kind::done:
        case Kind::recorded:
            tell_manager(from, message, now);
            break;
        case Kind::record:
            if (is_from_manager(from, message)) record(from, message);
            break;
        case Kind::assign:
            if (is_from_manager(from, message)) builder_.assign(span, message.first, message.members, now);
            break;
        case Kind::committed:
            if (is_from_manager(from, message)) builder_.commit(message.block);
            break;
        case Kind::settled:
            if (is_from_manager(from, message)) hear_settled(message);
            break;
        case Kind::request: {
            const bool on_behalf = settings_.strategy == Strategy::push;
            if (!on_behalf || is_from_manager(from, message))
                readout_.want(span, on_behalf ? message.node : from, on_behalf ? message.life : message.from);
            break;
        }
        case Kind::step:
            if (is_from_manager(from, message)) readout_.go(message.block);
            break;
        case Kind::part:
            builder_.take(from, message, payload);
            break;
        case Kind::release:
            readout_.release(span);
            break;
        case Kind::expelled:
            expelled_ = true;
            resign();
            has_manager_ = false;
            application_.expelled();
            break;
    }
}

void Node::record(NodeId manager, const Message& message) {
    if (message.block >= settled_ && !ended_) {
        const BlockSpan span{message.block, message.end};
        recorded_[message.block] = {span, life_of(message.node, message.life)};
        std::erase_if(recorded_empty_, [&](const Loss& loss) { return loss.block == message.block; });
        if (message.empty) recorded_empty_.insert({span.block, cause_of(message.part), span.end});
    }
    to(manager, {.kind = Kind::recorded, .node = message.node, .life = message.life, .block = message.block}, {});
}

void Node::tell_manager(NodeId from, const Message& message, core::TimeNs now) {
    if (manager_ == nullptr || message.term != term_) return;
    if (has_quorum_)
        manager_->take(from, message, now);
    else
        for_manager_.emplace_back(from, message);
}

void Node::look(core::TimeNs now) {
    if (expelled_) return;
    count_quorum(now);
    if (has_quorum_) builder_.look(now);
    readout_.look(now);
    if (join_by_ == 0) join_by_ = now + settings_.join_wait_ns;
    if (now >= join_by_)
        for (NodeId node = 0; node < settings_.nodes; ++node)
            if (peers_.state(node) == Peers::State::awaited) gone(node, 0, now);
    consider_managing(now);
    if (postponed_ && peers_.is_up(postponed_->first) &&
        peers_.incarnation(postponed_->first) == postponed_->second.from) {
        const auto [manager, claim] = *std::exchange(postponed_, std::nullopt);
        follow(manager, claim, now);
    }
    if (manager_ != nullptr && has_quorum_) manager_->look(now);
}

}  // namespace weir::cluster
