#include "cluster/readout.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace weir::cluster {

namespace {

/// A part that has been under way for so long is with a builder that stands still.
constexpr core::TimeNs standing_ns = 50 * core::ns_per_ms;

/// Until somebody else tells of a block whose turn it is not, and so much more for each place after the one whose it
/// is.
constexpr core::TimeNs tell_wait_ns = 2 * core::ns_per_ms;
constexpr core::TimeNs tell_step_ns = 20'000;
/// Who never has anything to tell would be taken for one that stands still.
constexpr core::TimeNs tell_anyway_ns = 200 * core::ns_per_ms;

std::uint32_t sends_to_each(const Settings& settings) {
    constexpr std::size_t enough = 8;
    const std::size_t builders = std::max<std::size_t>(1, settings.builders.size());
    return settings.sends > 0 ? settings.sends : static_cast<std::uint32_t>((enough + builders - 1) / builders);
}

}  // namespace

Readout::Readout(const Settings& settings, NodeId self, const Peers& peers, MessageSender& sender,
                 Application& application)
    : settings_(settings),
      self_(self),
      peers_(peers),
      sender_(sender),
      application_(application),
      order_(settings, self, settings.readouts, settings.builders),
      grid_(settings.block),
      in_flight_to_max_(sends_to_each(settings)) {
    for (NodeId node = 0; node < self; ++node) place_ += settings.readouts.contains(node) ? 1 : 0;
    stats_.handed_to.resize(settings.nodes);
    asked_.resize(settings.nodes);
    in_flight_to_.resize(settings.nodes);
}

Readout::Stats& Readout::Stats::operator+=(const Stats& other) {
    offered += other.offered;
    handed_over += other.handed_over;
    not_held += other.not_held;
    dropped += other.dropped;
    held += other.held;
    held_highest = std::max(held_highest, other.held_highest);
    add_counts(handed_to, other.handed_to);
    return *this;
}

/// Among many, one block is told of by one node: its turn is by the number. Where some lack what others have the
/// manager has to hear it of each.
bool Readout::tells_at_once(bool has_gap) const noexcept {
    const std::size_t nodes = settings_.readouts.size();
    if (nodes <= settings_.tellers || has_gap || told_ == 0) return true;
    return ready_ > given_out_ && grid_.index_of(ready_ - 1) % nodes == place_;
}

void Readout::tell_ready() {
    Message message{.kind = Kind::ready, .ended = ended_, .block = ready_, .first = told_};
    // Whether there is anything in the rest of a block matters until it has been given out.
    BlockRanges gaps;
    gaps.add(gaps_.list(told_, ready_));
    gaps.add(rests_.list(std::max(told_, given_out_), ready_));
    message.gaps = gaps.list();
    told_ = ready_;
    untold_ns_ = silent_ns_ = 0;
    sender_.to_manager(std::move(message));
}

/// One that others were to tell of, and that nobody has asked for. Of the others now and then, how far this node is.
void Readout::tell_if_nobody_does(core::TimeNs now) {
    if (ready_ <= told_) silent_ns_ = 0;
    if (ready_ > told_ && silent_ns_ == 0) silent_ns_ = now;
    if (silent_ns_ != 0 && now - silent_ns_ >= tell_anyway_ns) tell_ready();
    if (ready_ <= std::max(told_, given_out_)) {
        untold_ns_ = 0;
        return;
    }
    if (untold_ns_ == 0) untold_ns_ = now;
    const std::size_t nodes = settings_.readouts.size();
    const std::size_t places = (place_ + nodes - grid_.index_of(ready_ - 1) % nodes) % nodes;
    if (now - untold_ns_ >= tell_wait_ns + static_cast<core::TimeNs>(places) * tell_step_ns) tell_ready();
}

void Readout::reported() {
    told_ = ready_;
    given_out_ = 0;
}

/// A part that was sent in the life before counts as one that was not: whether somebody has taken it is not known.
void Readout::go_on_from(Readout& before) {
    for (auto& [block, part] : std::exchange(before.held_, {})) {
        if (part.released) {
            application_.release(part.payload);
            continue;
        }
        held_[block] = {.end = part.end, .payload = part.payload};
    }
    stats_.held = stats_.held_highest = held_.size();
    released_ = std::move(before.released_);
    gaps_ = std::move(before.gaps_);
    rests_ = std::move(before.rests_);
    settled_ = before.settled_;
    first_ = before.first_;
    ready_ = told_ = before.ready_;
    begun_ = before.begun_;
    ended_ = before.ended_;
}

void Readout::offer(BlockSpan span, Block rest, Payload payload) {
    ++stats_.offered;
    rests_.add(rest, span.end);
    if (span.end <= settled_) {  // the others had waited for long enough
        ++stats_.dropped;
        application_.drop(payload);
    } else {
        held_[span.block] = {.end = span.end, .payload = payload};
        stats_.held_highest = std::max(stats_.held_highest, ++stats_.held);
        if (span.block < settled_) drop_settled();
    }
    move_on(span.block, span.end);
}

/// What is held of the numbers before `at` and of those after it becomes a part each, if it is one.
void Readout::cut_at(Block at) {
    const auto next = held_.lower_bound(at);
    if (next == held_.begin() || std::prev(next)->second.end <= at) return;
    const auto here = std::prev(next);
    Held& before = here->second;
    Held after = before;
    std::tie(before.payload, after.payload) = application_.split(before.payload, at);
    after.end = std::exchange(before.end, at);
    before.sent_to_life = after.sent_to_life = 0;
    const bool is_nothing = before.payload.handle == 0;
    if (after.payload.handle != 0) {
        held_.emplace_hint(next, at, after);
        ++stats_.offered;
        ++stats_.held;
    }
    if (is_nothing) {
        held_.erase(here);
        --stats_.offered;
        --stats_.held;
    }
    stats_.held_highest = std::max(stats_.held_highest, stats_.held);
}

/// Somebody is being sent a part that has some of these numbers, and others.
bool Readout::is_in_use(BlockSpan span) const {
    const auto exact = held_.find(span.block);
    if (exact != held_.end() && exact->second.end == span.end) return false;
    auto at = held_.lower_bound(span.block);
    if (at != held_.begin() && std::prev(at)->second.end > span.block) --at;
    for (; at != held_.end() && at->first < span.end; ++at)
        if (at->second.sending > 0) return true;
    return false;
}

/// One part of all that is held of these numbers. A manager may not know what another one has given out.
Readout::Parts::iterator Readout::gather(BlockSpan span) {
    const auto exact = held_.find(span.block);
    if (exact != held_.end() && exact->second.end == span.end) return exact;
    cut_at(span.block);
    cut_at(span.end);
    const auto first = held_.lower_bound(span.block);
    if (first == held_.end() || first->first >= span.end) return held_.end();
    Held part = first->second;
    part.sent_to_life = 0;  // as it was
    for (auto next = held_.erase(first); next != held_.end() && next->first < span.end; next = held_.erase(next)) {
        part.payload = application_.join(part.payload, next->second.payload);
        part.was_sent |= next->second.was_sent;
        --stats_.held;
    }
    part.end = span.end;
    return held_.emplace(span.block, part).first;
}

void Readout::skip_to(Block block) {
    move_on(block, block);
}

/// There is no part of anything from ready_ on up to before `from`.
void Readout::move_on(Block from, Block to) {
    if (!begun_) first_ = from;
    begun_ = true;
    if (to <= ready_) return;
    const bool has_gap = from > ready_;
    gaps_.add(ready_, from);
    ready_ = to;
    if (tells_at_once(has_gap)) tell_ready();
    answer_requests();
}

void Readout::answer_requests() {
    std::vector<std::pair<BlockSpan, PartRequest>> requests;
    for (auto at = waiting_.begin(); at != waiting_.end() && (at->first < ready_ || ended_);) {
        const auto here = at++;
        const BlockSpan span{here->first, here->second.end};
        if ((span.end > ready_ && !ended_) || is_in_use(span)) continue;
        requests.emplace_back(span, here->second);
        waiting_.erase(here);
    }
    for (const auto& [span, request] : requests) want(span, request.builder, request.life);
}

void Readout::close() {
    if (ended_) return;
    ended_ = true;
    tell_ready();
    answer_requests();
}

void Readout::drop_before(Block block) {
    for (auto held = held_.begin(); held != held_.end() && held->first < block;) {
        const auto here = held++;
        if (here->second.released) continue;
        if (here->second.was_sent) ++stats_.dropped;  // the others are when they go
        here->second.released = true;
        let_go(here);
    }
}

void Readout::want(BlockSpan span, NodeId builder, Incarnation life) {
    const Block block = span.block;
    if (life <= peers_.gone(builder)) return;
    if (block < settled_) {  // who asks does not know that it is, or comes from another history: it gets an answer
        if (settled_ != ~Block{0})
            sender_.to(builder, {.kind = Kind::part, .part = Part::not_held, .block = block, .end = span.end});
        return;
    }
    given_out_ = std::max(given_out_, span.end);
    if (!peers_.is_up(builder) || peers_.incarnation(builder) < life) {
        unreached_.emplace(builder, std::pair(span, life));
        return;
    }
    if ((span.end > ready_ && !ended_) || is_in_use(span)) {
        waiting_.emplace(block, PartRequest{span.end, builder, life, 0});
        return;
    }
    if (const auto held = gather(span); held != held_.end()) {
        Held& part = held->second;
        if (part.sent_to_life == life && part.sent_to == builder) return;
        part.sent_to = builder;
        part.sent_to_life = life;
    }
    if (settings_.strategy == Strategy::pull) {
        asked_[builder].push_back(span);
        send_asked(builder);
    } else if (settings_.slot_ns > 0) {
        asked_[builder].push_back(span);
    } else {
        const std::uint64_t round = grid_.index_of(block) / settings_.builders.size();
        turns_.insert({round, order_.place_of(round, builder), span, builder});
        send_turns();
    }
}

bool Readout::send_oldest_asked(NodeId builder) {
    std::deque<BlockSpan>& asked = asked_[builder];
    while (!asked.empty()) {
        const BlockSpan span = asked.front();
        asked.pop_front();
        if (span.block < settled_) continue;
        send_part(span, builder);
        return true;
    }
    return false;
}

/// Each builder has a limit of its own, so one that stands still holds up nobody.
void Readout::send_asked(NodeId builder) {
    while (in_flight_to_[builder] < in_flight_to_max_ && send_oldest_asked(builder)) {
    }
}

/// One part to the builder whose turn it is; one that takes nothing costs nobody else a slot. What comes in the second
/// half of a slot would be in the way in the next one, and waits for its next turn.
void Readout::tick(core::TimeNs shared) {
    const auto slot = static_cast<std::uint64_t>(shared / settings_.slot_ns);
    const bool has_begun = std::exchange(slot_, slot) == slot;
    if (has_begun || shared % settings_.slot_ns > settings_.slot_ns / 2) return;
    const NodeId builder = order_.at(slot % settings_.builders.size());
    if (takes_more(builder)) send_oldest_asked(builder);
}

bool Readout::wants_ticks() const noexcept {
    return settings_.slot_ns > 0 &&
           std::ranges::any_of(asked_, [](const std::deque<BlockSpan>& spans) { return !spans.empty(); });
}

void Readout::send_turns() {
    for (auto at = turns_.begin(); at != turns_.end() && may_send_more();) {
        const Turn turn = *at;
        if (settings_.barrier && step_of(turn) > step_) break;
        if (!takes_more(turn.builder)) {
            ++at;
            continue;
        }
        at = turns_.erase(at);
        send_part(turn.span, turn.builder);
    }
    tell_reached();
}

bool Readout::may_send_more() const noexcept {
    const auto moving = std::ranges::count(on_their_way_, false, &OnItsWay::stands);
    return static_cast<std::uint64_t>(moving) < settings_.parallel;
}

bool Readout::takes_more(NodeId builder) const noexcept {
    return in_flight_to_[builder] < in_flight_to_max_ &&
           std::ranges::none_of(on_their_way_,
                                [builder](const OnItsWay& part) { return part.stands && part.builder == builder; });
}

/// Others are ahead of this node, and it does not get on: they go on without what it may still get.
void Readout::say_if_it_stands(core::TimeNs now) {
    if (std::exchange(was_ready_, ready_) != ready_) moved_ns_ = now;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        const auto here = at++;
        PartRequest& request = here->second;
        if (request.since == 0) request.since = now;
        if (now - std::max(request.since, moved_ns_) < settings_.timeout_ns) continue;
        sender_.to(request.builder, {.kind = Kind::part, .part = Part::late, .block = here->first, .end = request.end});
        waiting_.erase(here);
    }
}

void Readout::look(core::TimeNs now) {
    say_if_it_stands(now);
    tell_if_nobody_does(now);
    if (settings_.strategy == Strategy::pull) return;
    for (OnItsWay& part : on_their_way_) {
        if (part.since == 0) part.since = now;
        part.stands = now - part.since >= standing_ns;
    }
    send_turns();
    tell_standing();
}

/// Counted from 1: a round has one for each builder.
Block Readout::step_of(const Turn& turn) const noexcept {
    return turn.round * settings_.builders.size() + turn.place + 1;
}

void Readout::go(Block step) {
    step_ = std::max(step_, step);
    told_reached_ = false;
    told_standing_ = 0;  // the manager may be another one
    send_turns();
}

void Readout::tell_reached() {
    if (told_reached_ || !on_their_way_.empty() || (!turns_.empty() && step_of(*turns_.begin()) <= step_)) return;
    told_reached_ = true;
    sender_.to_manager({.kind = Kind::reached, .block = step_});
}

/// In step, the others wait for such a builder as well.
void Readout::tell_standing() {
    if (!settings_.barrier) return;
    const auto part = std::ranges::find(on_their_way_, true, &OnItsWay::stands);
    const NodeLife builder =
        part == on_their_way_.end() ? 0 : life_of(part->builder, peers_.incarnation(part->builder));
    if (std::exchange(told_standing_, builder) == builder) return;
    sender_.to_manager({.kind = Kind::reached, .node = node_of(builder), .life = incarnation_of(builder)});
}

void Readout::send_part(BlockSpan span, NodeId builder) {
    const Block block = span.block;
    Message message{.kind = Kind::part, .block = block, .end = span.end};
    const auto held = held_.find(block);
    if (held == held_.end() || held->second.end != span.end || held->second.released) {
        ++stats_.not_held;
        message.part = Part::not_held;
        sender_.to(builder, std::move(message));
        return;
    }
    ++stats_.handed_over;
    ++stats_.handed_to[builder];
    ++held->second.sending;
    held->second.was_sent = true;
    if (builder != self_) {
        if (settings_.strategy == Strategy::push) on_their_way_.push_back({builder, block});
        ++in_flight_to_[builder];
    }
    sender_.to(builder, std::move(message), held->second.payload);
}

void Readout::sent(NodeId builder, Block block) {
    if (builder != self_) {
        const auto part = std::ranges::find_if(
            on_their_way_, [&](const OnItsWay& one) { return one.builder == builder && one.block == block; });
        if (part != on_their_way_.end()) on_their_way_.erase(part);
        --in_flight_to_[builder];
    }
    if (const auto held = held_.find(block); held != held_.end()) {
        --held->second.sending;
        let_go(held);
    }
    for (const BlockSpan& span : std::exchange(to_release_, {})) mark_released(span);
    if (!waiting_.empty()) answer_requests();
    settings_.strategy == Strategy::pull ? send_asked(builder) : send_turns();
}

void Readout::release(BlockSpan span) {
    if (span.block < settled_) return;
    released_[span.block] = span.end;
    mark_released(span);
}

void Readout::mark_released(BlockSpan span) {
    if (is_in_use(span)) {
        to_release_.push_back(span);
        return;
    }
    if (const auto held = gather(span); held != held_.end()) {
        held->second.released = true;
        let_go(held);
    }
}

void Readout::forget_before(Block block) {
    if (block <= settled_) return;
    settled_ = block;
    gaps_.forget_before(block);
    rests_.forget_before(block);
    released_.erase(released_.begin(), released_.lower_bound(block));
    waiting_.erase(waiting_.begin(), waiting_.lower_bound(block));
    std::erase_if(turns_, [block](const Turn& turn) { return turn.span.block < block; });
    tell_reached();
    drop_settled();
}

void Readout::drop_settled() {
    if (!is_in_use({settled_, settled_ + 1})) cut_at(settled_);
    for (auto held = held_.begin(); held != held_.end() && held->second.end <= settled_;) {
        const auto here = held++;
        here->second.released = true;
        let_go(here);
    }
}

void Readout::builder_up(NodeId builder) {
    std::vector<std::pair<BlockSpan, Incarnation>> requests;
    const auto [begin, end] = unreached_.equal_range(builder);
    for (auto at = begin; at != end; ++at) requests.push_back(at->second);
    unreached_.erase(begin, end);
    for (const auto& [span, life] : requests) want(span, builder, life);
}

/// What it was given may be given out again.
void Readout::builder_gone(NodeId builder) {
    given_out_ = 0;
    std::erase_if(unreached_, [&](const auto& request) {
        return request.first == builder && request.second.second <= peers_.gone(builder);
    });
    std::erase_if(waiting_, [builder](const auto& request) { return request.second.builder == builder; });
    std::erase_if(turns_, [builder](const Turn& turn) { return turn.builder == builder; });
    tell_reached();
    asked_[builder].clear();
}

void Readout::let_go(Parts::iterator held) {
    if (!held->second.released || held->second.sending > 0) return;
    const Held part = held->second;
    held_.erase(held);
    --stats_.held;
    if (part.was_sent) return application_.release(part.payload);
    ++stats_.dropped;
    application_.drop(part.payload);
}

void Readout::fill(Report& report) const {
    report.first = first_;
    report.ready = ready_;
    report.ended = ended_;
    BlockRanges gaps = gaps_;
    gaps.add(rests_.list());
    report.gaps = gaps.list();
    for (const auto& [block, end] : released_) report.released.push_back({block, end});
}

}  // namespace weir::cluster
