#include "cluster/manager.hpp"

#include <algorithm>
#include <utility>

namespace weir::cluster {

namespace {

constexpr core::TimeNs announce_interval_ns = 100 * core::ns_per_ms;
constexpr std::uint64_t announce_blocks = 64;
/// Settings::barrier: for the blocks of a round. Where they take longer the network is not what is short.
constexpr core::TimeNs round_wait_ns = 50 * core::ns_per_ms;
/// In blocks. Who manages next does not know of a shorter gap whether it is one, or whether who had its parts has died.
constexpr std::uint64_t gap_min_after_reign = 1024;

/// The first block from `from` on that is in none of these.
Block first_outside(const std::vector<Block>& gaps, Block from) {
    for (std::size_t i = 0; i + 1 < gaps.size() && gaps[i] <= from; i += 2) from = std::max(from, gaps[i + 1]);
    return from;
}

}  // namespace

Manager::Manager(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender, Block settled,
                 const std::set<Loss>& losses)
    : settings_(settings),
      grid_(settings.block),
      self_(self),
      peers_(peers),
      sender_(sender),
      nodes_(settings.nodes),
      settled_(settled),
      turns_(settings),
      losses_(losses.begin(), losses.end()) {}

Manager::Stats& Manager::Stats::operator+=(const Stats& other) {
    assigned += other.assigned;
    pieces += other.pieces;
    assigned_again += other.assigned_again;
    committed += other.committed;
    lost += other.lost;
    return *this;
}

void Manager::begin(core::TimeNs now) {
    collect_by_ = now + settings_.join_wait_ns;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (peers_.is_up(node)) claim(node);
}

void Manager::claim(NodeId node) {
    sender_.to(node, {.kind = Kind::claim, .late = !collecting_, .up = peers_.all_up(), .gone = peers_.all_gone()});
}

void Manager::node_up(NodeId node) {
    claim(node);
}

bool Manager::report(NodeId node, const Report& report, core::TimeNs now) {
    Known& known = nodes_[node];
    if (known.reported) return true;
    const bool has_history = !report.open.empty() || !report.committed.empty() || !report.done.empty();
    if (!collecting_ && has_history) return false;  // its blocks have been given to others
    known = {.reported = true,
             .first = report.ready > 0 ? report.first : ~Block{0},
             .ready = report.ready,
             .ended = report.ended};
    members_.clear();
    known.told.add(0, report.ready);
    known.gaps.add(report.gaps);
    note_what_it_has(report.first, report.ready, report.gaps);
    ready_ = std::max(ready_, report.ready);
    any_ended_ |= report.ended;
    turns_.add(node, report.credits);
    if (peers_.is_leaving(node)) turns_.leaves(node);
    if (collecting_) {
        reports_[node] = report;
    } else {
        std::vector<std::pair<NodeId, Message>> unheard = std::exchange(unheard_, {});
        for (auto& [from, message] : unheard)
            if (from == node)
                hear(from, message);
            else
                unheard_.emplace_back(from, std::move(message));
        sender_.to(node, settled_message(losses_told_));
        if (settings_.barrier) sender_.to(node, {.kind = Kind::step, .block = step_});
        if (may_commit())
            for (auto& [from, message] : std::exchange(unanswered_, {})) hear(from, message);
    }
    look(now);
    return true;
}

bool Manager::knows_all_that(const Report& report) const {
    return std::ranges::all_of(report.up, [this](NodeLife entry) {
        const auto node = node_of(entry);
        const auto life = incarnation_of(entry);
        return life <= peers_.gone(node) || (peers_.is_up(node) && peers_.incarnation(node) >= life);
    });
}

void Manager::go_on_if_all_reported(core::TimeNs now) {
    if (!collecting_) return;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (peers_.is_up(node) && !nodes_[node].reported) return;
        if (peers_.state(node) == Peers::State::awaited) return;
    }
    if (now < collect_by_)
        for (const auto& [node, report] : reports_)
            if (!knows_all_that(report)) return;
    collecting_ = false;
    find_again();
    if (begun_) step_to(last_step_given());  // how far the others were is not known, and what is late goes at once
    for (auto& [from, message] : std::exchange(unheard_, {})) take(from, message, now);
}

/// What the manager before knew, as far as it makes a difference.
void Manager::find_again() {
    for (const auto& [node, report] : reports_) settled_ = std::max(settled_, report.settled);
    next_ = settled_;
    std::set<Loss> losses(losses_.begin(), losses_.end());
    std::map<Block, Block> released;
    for (const auto& [node, report] : reports_) {
        losses.insert(report.losses.begin(), report.losses.end());
        losses.insert(report.empty.begin(), report.empty.end());
        for (const BlockSpan& span : report.released)
            if (span.block >= settled_) released.emplace(span.block, span.end);
    }
    losses_.assign(losses.begin(), losses.end());
    for (const auto& [node, report] : reports_) adopt(node, report);
    for (const auto& [node, report] : reports_)
        for (const Recorded& recorded : report.recorded) adopt(recorded);
    // A builder that is there says so itself, once more.
    std::erase_if(losses_, [this](const Loss& loss) {
        const auto at = blocks_.find(loss.block);
        return at != blocks_.end() && at->second.stage == Stage::assigned && peers_.is_up(at->second.builder);
    });
    for (const Loss& loss : losses_)
        if (loss.block >= settled_) blocks_[loss.block] = {Stage::over, 0, loss.end};
    adopt_released(released);
    for (const auto& [block, entry] : blocks_) next_ = std::max(next_, entry.end);
    begun_ = next_ > 0;
    give_again_or_skip();
    reports_.clear();
}

/// By builders that are not there any more: it was built.
void Manager::adopt_released(const std::map<Block, Block>& released) {
    for (const auto& [block, end] : released) {
        if (!blocks_.try_emplace(block, Entry{Stage::over, 0, end}).second) continue;
        if (settings_.keep == Keep::assembled) lose({block, end}, LossCause::builder_down);
    }
}

/// Numbers that were given out, and that no builder says it has.
void Manager::give_again_or_skip() {
    for (Block block = settled_; block < next_;) {
        if (const auto at = blocks_.find(block); at != blocks_.end()) {
            block = std::max(block + 1, at->second.end);
            continue;
        }
        const auto after = blocks_.upper_bound(block);
        const Block limit = after == blocks_.end() ? next_ : std::min(next_, after->first);
        bool is_known = true;
        const Block end = std::min(end_of_gap(block, is_known), limit);
        if (end - block >= gap_min_after_reign * settings_.block) {
            skipped_.add(block, end);
            block = end;
        } else {
            const Block begin = std::exchange(block, std::min(grid_.end_of(block), limit));
            again_.emplace(begin, block);
        }
    }
}

void Manager::adopt(NodeId node, const Report& report) {
    const auto all = [&](const auto& list, Stage stage) {
        for (const BlockSpan& span : list)
            if (span.block >= settled_) blocks_[span.block] = {stage, node, span.end};
    };
    all(report.open, Stage::assigned);
    all(report.committed, peers_.is_up(node) ? Stage::committed : Stage::over);
    if (!peers_.is_up(node))
        for (const BlockSpan& span : report.committed) lose_with_builder(span, false);
    all(report.done, Stage::over);
    if (settings_.strategy == Strategy::push)
        for (const BlockSpan& span : report.open)
            if (span.block >= settled_) tell(span, node);
}

/// Where its builder is there it says itself how far it is.
void Manager::adopt(const Recorded& recorded) {
    const NodeId builder = node_of(recorded.builder);
    const Block block = recorded.span.block;
    if (block < settled_ || blocks_.contains(block)) return;
    if (peers_.is_up(builder) && peers_.incarnation(builder) == incarnation_of(recorded.builder)) return;
    blocks_[block] = {Stage::over, builder, recorded.span.end};
    lose_with_builder(recorded.span,
                      std::ranges::any_of(losses_, [&](const Loss& loss) { return loss.block == block; }));
}

/// Who sees no readout node may be cut off itself: then others give its blocks to somebody else.
bool Manager::may_commit() const {
    if (ended_and_left_) return true;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (settings_.readouts.contains(node) && is_there(node)) return true;
    return false;
}

void Manager::take(NodeId from, const Message& message, core::TimeNs now) {
    if (collecting_ || !nodes_[from].reported) {
        unheard_.emplace_back(from, message);
        return;
    }
    hear(from, message);
    look(now);
}

void Manager::hear(NodeId from, const Message& message) {
    Known& known = nodes_[from];
    const auto at = blocks_.find(message.block);
    const bool is_its_own = at != blocks_.end() && at->second.builder == from;
    switch (message.kind) {
        case Kind::ready:
            note_what_it_has(message.first, message.block, message.gaps);
            if (const Block held = first_outside(message.gaps, message.first); held < message.block)
                known.first = std::min(known.first, held);
            known.told.add(message.first, message.block);
            if (message.block > known.ready) known.behind_ns = 0;
            known.ready = std::max(known.ready, message.block);
            known.gaps.add(message.gaps);
            known.ended |= message.ended;
            ready_ = std::max(ready_, known.ready);
            any_ended_ |= message.ended;
            break;
        case Kind::reached:
            known.reached = std::max(known.reached, message.block);
            known.stands_with = life_of(message.node, message.life);
            break;
        case Kind::finished:
            if (is_its_own) finish(from, message, at->second);
            break;
        case Kind::recorded:
            known.is_slow = false;
            if (at != blocks_.end() && at->second.stage == Stage::recording && at->second.builder == message.node &&
                peers_.incarnation(message.node) == message.life)
                commit(message.block, at->second);
            break;
        case Kind::done:
            turns_.give_back(from);
            if (is_its_own) at->second.stage = Stage::over;
            break;
        default:
            break;
    }
}

/// A builder and the manager may go away together: before a block counts, a third one knows of it.
void Manager::finish(NodeId from, const Message& message, Entry& entry) {
    if (entry.stage == Stage::over || entry.stage == Stage::recording) return;
    if (entry.stage == Stage::committed) return sender_.to(from, {.kind = Kind::committed, .block = message.block});
    if (!may_commit()) {
        unanswered_.emplace_back(from, message);
        return;
    }
    if (message.empty) entry.empty = message.part;
    record(message.block, entry);
}

/// Who would manage next, else a readout node, that answers.
std::optional<NodeId> Manager::witness_for(NodeId builder) const {
    for (const NodeSet* role : {&settings_.managers, &settings_.readouts})
        for (NodeId node = 0; node < settings_.nodes; ++node)
            if (role->contains(node) && node != self_ && node != builder && is_there(node) && !nodes_[node].is_slow)
                return node;
    return std::nullopt;
}

void Manager::record(Block block, Entry& entry) {
    const auto witness = witness_for(entry.builder);
    if (!witness && !may_commit()) {
        entry.stage = Stage::assigned;
        unanswered_.emplace_back(
            entry.builder,
            Message{.kind = Kind::finished, .part = entry.empty, .empty = entry.empty != Part::whole, .block = block});
        return;
    }
    if (!witness) return commit(block, entry);
    entry.stage = Stage::recording;
    entry.witness = *witness;
    asked_.push_back({block, *witness, now_});
    sender_.to(*witness, {.kind = Kind::record,
                          .part = entry.empty,
                          .empty = entry.empty != Part::whole,
                          .node = entry.builder,
                          .life = peers_.incarnation(entry.builder),
                          .block = block,
                          .end = entry.end});
}

void Manager::ask_others_in_place_of_slow_ones() {
    while (!asked_.empty()) {
        const Asked asked = asked_.front();
        const auto at = blocks_.find(asked.block);
        const bool waits =
            at != blocks_.end() && at->second.stage == Stage::recording && at->second.witness == asked.witness;
        if (waits && now_ - asked.since < settings_.witness_wait_ns) return;
        asked_.pop_front();
        if (!waits) continue;
        nodes_[asked.witness].is_slow = true;
        record(asked.block, at->second);
    }
}

void Manager::commit(Block block, Entry& entry) {
    entry.stage = Stage::committed;
    ++stats_.committed;
    if (entry.empty != Part::whole) lose({block, entry.end}, cause_of(entry.empty));
    sender_.to(entry.builder, {.kind = Kind::committed, .block = block});
}

void Manager::hand_over(std::map<Block, Recorded>& recorded, std::set<Loss>& empty) const {
    for (const auto& [block, entry] : blocks_) {
        if (entry.stage != Stage::recording && entry.stage != Stage::committed) continue;
        recorded[block] = {{block, entry.end}, life_of(entry.builder, peers_.incarnation(entry.builder))};
        if (entry.empty != Part::whole) empty.insert({block, cause_of(entry.empty), entry.end});
    }
}

void Manager::node_gone(NodeId node) {
    turns_.remove(node);
    ended_and_left_ |= nodes_[node].ended;
    nodes_[node] = {};
    members_.clear();
    if (const auto report = reports_.find(node); report != reports_.end()) report->second.open.clear();
    std::erase_if(unanswered_, [node](const auto& entry) { return entry.first == node; });
    std::erase_if(unheard_, [node](const auto& entry) { return entry.first == node; });
    for (auto& [block, entry] : blocks_) {
        if (entry.builder != node && entry.stage == Stage::recording && entry.witness == node) record(block, entry);
        if (entry.builder != node || entry.stage == Stage::over) continue;
        // With Keep::written it is written by then, and its witness will say so.
        const bool is_written = settings_.keep == Keep::written && entry.empty == Part::whole;
        if (entry.stage == Stage::assigned || (entry.stage == Stage::recording && !is_written)) {
            again_.emplace(block, entry.end);
            continue;
        }
        lose_with_builder({block, entry.end}, entry.empty != Part::whole);
        entry.stage = Stage::over;
    }
    for (const auto& [block, end] : again_) blocks_.erase(block);
}

/// A block that was built, and whose builder may have gone before it could say that its parts are not needed.
void Manager::lose_with_builder(BlockSpan span, bool is_listed) {
    for (NodeId readout = 0; readout < settings_.nodes; ++readout)
        if (settings_.readouts.contains(readout))
            sender_.to(readout, {.kind = Kind::release, .block = span.block, .end = span.end});
    if (settings_.keep == Keep::assembled && !is_listed) lose(span, LossCause::builder_down);
}

void Manager::lose(BlockSpan span, LossCause cause) {
    ++stats_.lost;
    losses_.push_back({span.block, cause, span.end});
}

/// The first block of the run is the lowest that any readout node has, once all have one or the others have waited.
void Manager::begin_blocks(core::TimeNs now) {
    if (begun_) return;
    bool all = true;
    bool any = false;
    Block first = ~Block{0};
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node) || !is_there(node)) continue;
        const Known& known = nodes_[node];
        all &= known.ready > 0 || known.ended;
        if (known.ready == 0) continue;
        any = true;
        first = std::min({first, known.first, known.ready});
    }
    if (!any) {
        if (all) ready_ = settled_;  // what there was has gone with those that had it
        return;
    }
    if (begin_by_ == 0) begin_by_ = now + settings_.timeout_ns;
    if (!all && now < begin_by_) return;
    begun_ = true;
    settled_ = next_ = first;
    step_to(round_of(first) * settings_.builders.size());
}

std::uint64_t Manager::round_of(Block block) const noexcept {
    return grid_.index_of(block) / settings_.builders.size();
}

void Manager::step_to(Block step) {
    if (!settings_.barrier) return;
    step_ = step;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (settings_.readouts.contains(node) && is_there(node)) sender_.to(node, {.kind = Kind::step, .block = step});
}

/// Of the round in which the last block is that was given out; counted from 1, as Readout does.
Block Manager::last_step_given() const noexcept {
    return next_ == 0 ? 0 : (round_of(next_ - 1) + 1) * settings_.builders.size();
}

/// A round begins when all its blocks have been given out, or none comes for a while.
void Manager::step_if_all_have_reached(core::TimeNs now) {
    if (!settings_.barrier || step_ >= last_step_given()) return;
    if (round_by_ == 0) round_by_ = now + round_wait_ns;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (settings_.readouts.contains(node) && is_there(node) && nodes_[node].reached < step_) return;
    const Block builders = settings_.builders.size();
    const Block round_end = (step_ / builders + 1) * builders;
    const bool more_comes = !(any_ended_ && next_ >= ready_) && !turns_.empty();
    if (grid_.index_of(next_) < round_end && more_comes && now < round_by_) return;
    step_to(step_ + 1);
    if (step_ == round_end) round_by_ = 0;
}

/// Up to where nobody has a part; `block` itself: somebody has, or had. `is_known` becomes false where a node that is
/// there has not told so far. One that stands still is not waited for as long as another gets on; else there is no
/// hurry, the detector may pause. Where no node is there to ask, nobody has.
Block Manager::end_of_gap(Block block, bool& is_known) {
    if (had_.end_of(block) > block) return block;
    Block end = had_.begin_after(block);
    bool goes_on = false;
    bool all_stand = true;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node) || !is_there(node)) continue;
        Known& known = nodes_[node];
        if (const Block its = known.gaps.end_of(block); its > block) {
            goes_on |= !known.ended;
            if (its < known.ready || !known.ended) end = std::min(end, its);
        } else if (block < known.ready || !known.ended) {
            if (known.behind_ns == 0) known.behind_ns = now_;
            is_known = false;
            all_stand &= now_ - known.behind_ns >= settings_.timeout_ns;
        }
    }
    is_known |= goes_on && all_stand;
    return std::max(block, end);
}

/// Blocks that only a node had which goes are lost, and listed: a builder is given them.
void Manager::note_what_it_has(Block from, Block to, const std::vector<Block>& gaps) {
    for (std::size_t i = 0; i + 1 < gaps.size() && from < to; i += 2) {
        had_.add(from, std::min(to, gaps[i]));
        from = std::max(from, gaps[i + 1]);
    }
    had_.add(from, to);
}

void Manager::skip_to(Block block) {
    skipped_.add(next_, block);
    next_ = block;
    const Block step = round_of(block) * settings_.builders.size();
    if (settings_.barrier && step > step_) step_to(step);
}

/// Whether there is a block that somebody has a part of; skips what nobody has.
bool Manager::finds_next() {
    while (next_ < ready_) {
        bool is_known = true;
        const Block end = end_of_gap(next_, is_known);
        if (end == next_) return true;
        if (!is_known) return false;
        skip_to(std::min(end, ready_));
    }
    return false;
}

void Manager::give() {
    while (!again_.empty() || finds_next()) {
        const auto builder = turns_.next();
        if (!builder) return;
        if (again_.empty()) {
            // What readout nodes say of a block that is not full they say because it would have to wait.
            const Block end = std::min(grid_.end_of(next_), ready_);
            ++stats_.assigned;
            const BlockSpan span{std::exchange(next_, end), end};
            if (grid_.is_piece(span)) ++stats_.pieces;
            give_to(span, *builder);
        } else {
            ++stats_.assigned_again;
            const BlockSpan span{again_.begin()->first, again_.begin()->second};
            again_.erase(again_.begin());
            give_to(span, *builder);
        }
    }
}

void Manager::give_to(BlockSpan span, NodeId builder) {
    blocks_[span.block] = {Stage::assigned, builder, span.end};
    tell(span, builder);
}

void Manager::tell(BlockSpan span, NodeId builder) {
    if (members_.empty()) {
        ++list_;
        for (NodeId node = 0; node < settings_.nodes; ++node)
            if (settings_.readouts.contains(node) && is_there(node))
                members_.push_back(life_of(node, peers_.incarnation(node)));
    }
    if (settings_.strategy == Strategy::push)
        for (const NodeLife member : members_)
            sender_.to(node_of(member), {.kind = Kind::request,
                                         .node = builder,
                                         .life = peers_.incarnation(builder),
                                         .block = span.block,
                                         .end = span.end});
    Message message{.kind = Kind::assign, .block = span.block, .end = span.end, .first = members_.empty() ? 0 : list_};
    if (std::exchange(nodes_[builder].list, list_) != list_) message.members = members_;
    sender_.to(builder, std::move(message));
}

/// A builder that holds up a step holds up all blocks; otherwise it is the one that has the oldest block.
NodeLife Manager::waits_for() const {
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        const NodeLife builder = nodes_[node].stands_with;
        if (incarnation_of(builder) > peers_.gone(node_of(builder))) return builder;
    }
    const auto oldest = blocks_.begin();
    if (oldest == blocks_.end() || oldest->first > settled_ || oldest->second.stage == Stage::over) return 0;
    return life_of(oldest->second.builder, peers_.incarnation(oldest->second.builder));
}

Message Manager::settled_message(std::size_t losses_from) const {
    Message message{.kind = Kind::settled, .ended = ended_, .block = settled_};
    message.losses.assign(losses_.begin() + static_cast<std::ptrdiff_t>(losses_from), losses_.end());
    const NodeLife builder = waits_for();
    message.node = node_of(builder);
    message.life = incarnation_of(builder);
    return message;
}

void Manager::announce_settled(core::TimeNs now, bool at_once) {
    for (bool moved = true; moved;) {
        moved = false;
        if (const Block end = skipped_.end_of(settled_); end > settled_) settled_ = end, moved = true;
        if (blocks_.empty() || blocks_.begin()->first > settled_ || blocks_.begin()->second.stage != Stage::over)
            continue;
        settled_ = std::max(settled_, blocks_.begin()->second.end);
        blocks_.erase(blocks_.begin());
        moved = true;
    }
    if (!at_once && settled_ - settled_told_ < announce_blocks * settings_.block &&
        now - settled_told_at_ < announce_interval_ns)
        return;
    const NodeLife builder = waits_for();
    if (settled_ == settled_told_ && builder == waits_for_told_ && !at_once) return;
    for (Known& known : nodes_) known.told.forget_before(settled_), known.gaps.forget_before(settled_);
    skipped_.forget_before(settled_);
    had_.forget_before(settled_);
    const Message message = settled_message(losses_told_);
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (is_there(node)) sender_.to(node, message);
    losses_told_ = losses_.size();
    settled_told_ = settled_;
    waits_for_told_ = builder;
    settled_told_at_ = now;
}

void Manager::look(core::TimeNs now) {
    now_ = now;
    if (collecting_) go_on_if_all_reported(now);
    if (collecting_ || ended_) return;
    begin_blocks(now);
    ask_others_in_place_of_slow_ones();
    if (begun_) {
        give();
        step_if_all_have_reached(now);
        announce_settled(now, false);
    }
    if (any_ended_ && settled_ >= ready_ && again_.empty()) end_if_all_have(now);
}

void Manager::end_if_all_have(core::TimeNs now) {
    bool any = ended_and_left_;
    bool all = true;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node)) continue;
        any |= is_there(node);
        all &= !is_there(node) || nodes_[node].ended;
    }
    if (!any || !all) return;
    ended_ = true;
    announce_settled(now, true);
}

}  // namespace weir::cluster
