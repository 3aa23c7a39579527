#include "cluster/builder.hpp"

#include <algorithm>
#include <utility>

namespace weir::cluster {

namespace {

/// In time-outs: a node that lives, and of which no part has come for so long, although it was asked, cannot reach this
/// one with parts, only with words.
constexpr core::TimeNs stuck_timeouts = 30;

}  // namespace

Builder::Builder(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender,
                 Application& application)
    : settings_(settings),
      self_(self),
      peers_(peers),
      sender_(sender),
      application_(application),
      order_(settings, self, settings.builders, settings.readouts),
      listed_(settings.nodes),
      ways_(settings.nodes) {
    for (auto* counts :
         {&stats_.received, &stats_.late, &stats_.not_held, &stats_.node_down, &stats_.timed_out, &stats_.awaited_ns})
        counts->resize(settings.nodes);
}

Builder::Stats& Builder::Stats::operator+=(const Stats& other) {
    assigned += other.assigned;
    complete += other.complete;
    incomplete += other.incomplete;
    empty += other.empty;
    add_counts(received, other.received);
    add_counts(late, other.late);
    add_counts(not_held, other.not_held);
    add_counts(node_down, other.node_down);
    add_counts(timed_out, other.timed_out);
    add_counts(awaited_ns, other.awaited_ns);
    open_highest = std::max(open_highest, other.open_highest);
    return *this;
}

void Builder::assign(BlockSpan span, std::uint64_t list, const std::vector<NodeLife>& members, core::TimeNs now) {
    if (list == 0) return take_on(span, list, {}, now);
    if (!members.empty()) note_list(list, members);
    const auto known = lists_.find(list);
    if (known == lists_.end()) {
        unlisted_[list].push_back(span);
        return;
    }
    take_on(span, list, known->second, now);
    const auto waiting = unlisted_.extract(list);
    if (waiting.empty()) return;
    for (const BlockSpan& one : waiting.mapped()) take_on(one, list, known->second, now);
}

void Builder::note_list(std::uint64_t list, const std::vector<NodeLife>& members) {
    lists_[list] = members;
    for (const NodeLife member : members) {
        Listed& listed = listed_[node_of(member)];
        if (listed.life < incarnation_of(member))
            listed = {incarnation_of(member), list};
        else if (listed.life == incarnation_of(member))
            listed.since = std::min(listed.since, list);
    }
}

/// One that was listed before and is not any more has gone: the manager may know that first. One that was not has only
/// just come.
bool Builder::has_gone(NodeId node, std::uint64_t list) const noexcept {
    if (peers_.state(node) == Peers::State::down) return true;
    return peers_.is_up(node) && listed_[node].life == peers_.incarnation(node) && listed_[node].since < list;
}

void Builder::take_on(BlockSpan span, std::uint64_t list, const std::vector<NodeLife>& members, core::TimeNs now) {
    const Block block = span.block;
    if (leaving_ || block < settled_ || done_.contains(block) || open_.contains(block)) return;
    ++stats_.assigned;
    now_ = now;
    const auto at = open_.try_emplace(block).first;
    Open& open = at->second;
    stats_.open_highest = std::max<std::uint64_t>(stats_.open_highest, open_.size());
    open.parts.resize(settings_.nodes);
    open.members.resize(settings_.nodes);
    for (const NodeLife member : members) open.members[node_of(member)] = incarnation_of(member);
    open.end = span.end;
    open.since_ns = now;
    open.asked_ns.resize(settings_.nodes, now);
    for (const NodeId node : order_.of(block)) {
        if (open.members[node] == 0)
            open.parts[node].part = has_gone(node, list) ? Part::node_down : Part::not_held;
        else if (is_over(open, node))
            open.parts[node].part = Part::node_down;
        else
            open.awaited.insert(node), open.order.push_back(node);
    }
    take_early(span, open);
    ask(block, open);
    finish_if_all_here(at);
}

/// The life of the node that may have the part.
bool Builder::is_over(const Open& open, NodeId node) const noexcept {
    return open.members[node] <= peers_.gone(node) || open.members[node] < peers_.incarnation(node);
}

bool Builder::can_be_asked(const Open& open, NodeId node) const noexcept {
    return open.awaited.contains(node) && peers_.is_up(node) && peers_.incarnation(node) == open.members[node];
}

void Builder::take_early(BlockSpan span, Open& open) {
    const auto early = early_.find(span);
    if (early == early_.end()) return;
    for (const auto& [node, part] : early->second) {
        if (part.part == Part::whole) ++(open.awaited.contains(node) ? stats_.received : stats_.late)[node];
        if (open.awaited.contains(node))
            open.parts[node] = part;
        else if (part.part == Part::whole)
            application_.release(part.payload);
        open.awaited.erase(node);
    }
    early_.erase(early);
}

void Builder::ask(Block block, Open& open) {
    if (settings_.strategy == Strategy::push) return;  // the manager has told them
    while (open.next < open.order.size() && open.asked.size() < settings_.parallel) {
        const NodeId node = open.order[open.next++];
        if (!can_be_asked(open, node)) continue;  // it may not be here yet: see readout_up
        open.asked.insert(node);
        open.asked_ns[node] = now_;
        sender_.to(node, {.kind = Kind::request, .block = block, .end = open.end});
    }
}

void Builder::take(NodeId from, const Message& message, Payload payload) {
    if (message.part == Part::whole) note_arrival(from);
    const auto at = open_.find(message.block);
    const bool is_known = at != open_.end() || message.block < settled_ || done_.contains(message.block);
    if (settings_.strategy == Strategy::push && !is_known) {
        const BlockSpan span{message.block, message.end};
        if (early_[span].try_emplace(from, BuiltPart{message.part, payload}).second) return;
    }
    const bool is_wanted = at != open_.end() && at->second.stage == Stage::collecting &&
                           at->second.end == message.end && at->second.awaited.contains(from);
    if (!is_wanted) {
        if (message.part == Part::whole) {
            ++stats_.late[from];
            application_.release(payload);
        }
        return;
    }
    Open& open = at->second;
    open.parts[from] = {message.part, payload};
    open.awaited.erase(from);
    open.asked.erase(from);
    if (message.part == Part::whole) ++stats_.received[from];
    ask(message.block, open);
    finish_if_all_here(at);
}

void Builder::lacks(Open& open, NodeId node, Part why) {
    open.parts[node].part = why;
    open.awaited.erase(node);
    open.asked.erase(node);
}

bool Builder::is_empty(const Open& open) {
    return std::ranges::none_of(open.parts, [](const BuiltPart& part) { return part.part == Part::whole; });
}

/// What came nearest to having one.
Part Builder::why_empty(const Open& open) const {
    Part why = Part::not_held;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node)) continue;
        const Part part = open.parts[node].part;
        if (part == Part::late || (part == Part::node_down && why == Part::not_held)) why = part;
    }
    return why;
}

void Builder::count(const Open& open) {
    bool complete = true;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node)) continue;
        const Part part = open.parts[node].part;
        complete &= part == Part::whole;
        if (part == Part::not_held) ++stats_.not_held[node];
        if (part == Part::node_down) ++stats_.node_down[node];
        if (part == Part::late) ++stats_.timed_out[node];
    }
    ++(complete ? stats_.complete : stats_.incomplete);
}

void Builder::finish_if_all_here(Blocks::iterator at) {
    auto& [block, open] = *at;
    if (!open.awaited.empty()) return;
    const bool asks_first = settings_.keep == Keep::assembled || is_empty(open);
    open.stage = asks_first ? Stage::finished : Stage::given;
    if (asks_first)
        ask_manager(block, open);
    else
        give(block, open);
}

void Builder::ask_manager(Block block, const Open& open) {
    const bool empty = is_empty(open);
    sender_.to_manager(
        {.kind = Kind::finished, .part = empty ? why_empty(open) : Part::whole, .empty = empty, .block = block});
}

void Builder::give(Block block, const Open& open) {
    application_.built({block, open.end}, open.parts);
}

void Builder::commit(Block block) {
    const auto at = open_.find(block);
    if (at == open_.end() || at->second.stage != Stage::finished) return;
    Open& open = at->second;
    open.stage = Stage::committed;
    if (is_empty(open)) {  // and nothing is released: that would say that it was built
        ++stats_.empty;
        empty_.insert({block, cause_of(why_empty(open)), open.end});
        end(at);
        return;
    }
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (open.members[node] != 0) sender_.to(node, {.kind = Kind::release, .block = block, .end = open.end});
    count(open);
    if (settings_.keep == Keep::assembled)
        give(block, open);
    else
        end(at);
}

void Builder::written(Block block) {
    const auto at = open_.find(block);
    if (at == open_.end()) return;
    if (at->second.stage == Stage::committed) {
        end(at);
    } else if (at->second.stage == Stage::given) {
        at->second.stage = Stage::finished;
        ask_manager(block, at->second);
    }
}

void Builder::end(Blocks::iterator at) {
    const BlockSpan span{at->first, at->second.end};
    open_.erase(at);
    if (span.block >= settled_) done_.emplace(span.block, span.end);
    sender_.to_manager({.kind = Kind::done, .block = span.block});
}

/// A node that the manager has seen and this one had not. Of a life before, which this node may never have seen,
/// nothing comes any more.
void Builder::readout_up(NodeId node) {
    readout_gone(node);
    for (auto& [block, open] : open_) {
        if (open.stage != Stage::collecting || !can_be_asked(open, node) || open.asked.contains(node)) continue;
        const bool comes_later = std::find(open.order.begin() + static_cast<std::ptrdiff_t>(open.next),
                                           open.order.end(), node) != open.order.end();
        if (!comes_later) open.order.push_back(node);
        ask(block, open);
    }
}

void Builder::readout_gone(NodeId node) {
    for (auto at = open_.begin(); at != open_.end();) {
        const auto here = at++;
        Open& open = here->second;
        if (open.stage != Stage::collecting || !open.awaited.contains(node) || !is_over(open, node)) continue;
        lacks(open, node, Part::node_down);
        ask(here->first, open);
        finish_if_all_here(here);
    }
}

void Builder::let_go() {
    const auto release = [this](const BuiltPart& part) {
        if (part.part == Part::whole) application_.release(part.payload);
    };
    for (const auto& [block, open] : open_) {
        const bool is_given = open.stage == Stage::given || open.stage == Stage::committed ||
                              (open.stage == Stage::finished && settings_.keep == Keep::written);
        if (!is_given) std::ranges::for_each(open.parts, release);
    }
    for (const auto& [span, parts] : early_)
        for (const auto& [node, part] : parts) release(part);
    open_.clear();
    early_.clear();
}

void Builder::forget_before(Block block) {
    if (block <= settled_) return;
    settled_ = block;
    done_.erase(done_.begin(), done_.lower_bound(block));
    empty_.erase(empty_.begin(), empty_.lower_bound({block, LossCause{}}));
    for (auto early = early_.begin(); early != early_.end() && early->first.block < block; early = early_.erase(early))
        for (const auto& [node, part] : early->second) {
            if (part.part != Part::whole) continue;
            ++stats_.late[node];
            application_.release(part.payload);
        }
}

void Builder::note_awaited(core::TimeNs now) {
    const core::TimeNs since = std::exchange(looked_ns_, now);
    const auto oldest =
        std::ranges::find_if(open_, [](const auto& one) { return one.second.stage == Stage::collecting; });
    if (since == 0 || oldest == open_.end() || oldest->second.awaited.size() != 1) return;
    stats_.awaited_ns[oldest->second.awaited.first()] += static_cast<std::uint64_t>(now - since);
}

/// A node says itself that it stands still (see Readout): a part that one has which lives is waited for, however slow
/// the network is. This is for parts that do not arrive at all.
bool Builder::is_stuck(const Open& open, NodeId node) const noexcept {
    // It may not be here yet.
    if (!can_be_asked(open, node))
        return now_ - open.since_ns >= std::max(settings_.timeout_ns, settings_.join_wait_ns);
    if (settings_.strategy == Strategy::pull && !open.asked.contains(node)) return false;
    const core::TimeNs since = std::max(open.asked_ns[node], ways_[node].heard_ns);
    const bool has_been_long = now_ - since >= stuck_timeouts * settings_.timeout_ns;
    const bool is_known = ways_[node].is_stuck || any_way_.is_stuck;
    return has_been_long || (is_known && now_ - open.asked_ns[node] >= settings_.timeout_ns);
}

void Builder::note_arrival(NodeId from) {
    ways_[from] = {.heard_ns = now_};
    if (from != self_) any_way_ = {.heard_ns = now_};
}

bool Builder::give_up_stuck(Open& open) {
    bool any = false;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!open.awaited.contains(node) || !is_stuck(open, node)) continue;
        any = ways_[node].is_stuck = true;
        any_way_.is_stuck |= now_ - any_way_.heard_ns >= stuck_timeouts * settings_.timeout_ns;
        lacks(open, node, Part::late);
    }
    return any;
}

void Builder::look(core::TimeNs now) {
    now_ = now;
    note_awaited(now);
    for (auto at = open_.begin(); at != open_.end();) {
        const auto here = at++;
        Open& open = here->second;
        if (open.stage != Stage::collecting || now - open.since_ns < settings_.timeout_ns) continue;
        if (!give_up_stuck(open)) continue;
        ask(here->first, open);
        finish_if_all_here(here);
    }
}

void Builder::ask_again() {
    lists_.clear();
    for (Listed& listed : listed_) listed.since = 0;  // the numbers begin anew
    unlisted_.clear();                                // the report did not have them, so they are given out again
    for (const auto& [block, open] : open_)
        if (open.stage == Stage::finished) ask_manager(block, open);
}

std::uint64_t Builder::unwritten() const noexcept {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(open_, [](const auto& one) { return one.second.stage == Stage::committed; }));
}

void Builder::fill(Report& report) const {
    report.credits =
        settings_.credits - std::min<std::uint32_t>(settings_.credits, static_cast<std::uint32_t>(open_.size()));
    for (const auto& [block, open] : open_)
        (open.stage == Stage::committed ? report.committed : report.open).push_back({block, open.end});
    for (const auto& [block, end] : done_) report.done.push_back({block, end});
    report.empty.assign(empty_.begin(), empty_.end());
}

}  // namespace weir::cluster
