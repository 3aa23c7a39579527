#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace weir::cluster::test {

using core::ns_per_ms;

constexpr core::TimeNs block_interval_ns = 2 * ns_per_ms;
constexpr core::TimeNs look_interval_ns = 5 * ns_per_ms;
constexpr core::TimeNs us = 1000;
constexpr core::TimeNs tick_interval_ns = 100 * us;
constexpr core::TimeNs silence_ns = 40 * ns_per_ms;
/// Of a builder that leaves in order, for others to know what it has built.
constexpr core::TimeNs drain_patience_ns = 500 * ns_per_ms;
/// Faults::takes_no_parts, in time-outs: longer than a builder waits.
constexpr core::TimeNs stuck_parts_take = 50;

/// With WEIR_MODEL_TRACE in the environment all messages are printed: set WEIR_MODEL_SEED to the run that went wrong.
bool traces() {
    static const bool is_set = std::getenv("WEIR_MODEL_TRACE") != nullptr;
    return is_set;
}

/// A node while it lives, with its network and what it is for.
class World::Life final : public Network, public Application {
public:
    Life(World& world, NodeId self, Incarnation life)
        : self(self), life(life), world_(world), node(world.settings_, self, life, *this, *this) {}

    void send(NodeId to, const Message& message, Payload payload) override {
        world_.carry(*this, to, message, payload);
    }
    void built(BlockSpan span, std::span<const BuiltPart> parts) override {
        const Block block = span.block;
        world_.check_part_of(*this, span, parts);
        const bool committed = world_.settings_.keep == Keep::assembled;
        world_.builds_[block].push_back({self, life, span.end, false, committed, false, {parts.begin(), parts.end()}});
        const bool slow = world_.faults_.slow_node && self == world_.slow_;
        const core::TimeNs takes = static_cast<core::TimeNs>(world_.random(slow ? 40 : 4) + 1) * ns_per_ms;
        world_.at(world_.now_ + takes, [&world = world_, self = self, life = life, block] {
            Life* const me = world.alive(self, life);
            if (me == nullptr) return;
            for (Build& build : world.builds_[block]) {
                if (build.node != self || build.life != life) continue;
                build.written = true;
                for (const BuiltPart& part : build.parts)
                    if (part.part == Part::whole) me->release(part.payload);
            }
            me->node.written(block);
        });
    }
    void release(Payload payload) override {
        Content& content = world_.contents_.at(payload.handle);
        if (content.free) world_.wrong(fmt::format("a part of {} is released twice", *content.numbers.begin()));
        if (unsent.contains(payload.handle))
            world_.wrong(fmt::format("nobody was sent a part of {}, and it is not counted", *content.numbers.begin()));
        content.free = true;
        mine.erase(payload.handle);
        parts.erase(payload.handle);
    }
    void drop(Payload payload) override {
        ++dropped;
        if (unsent.erase(payload.handle) == 0) world_.wrong("a part was sent, and is counted as dropped");
        release(payload);
    }
    std::pair<Payload, Payload> split(Payload part, Block at) override {
        const std::set<Block> all = world_.contents_.at(part.handle).numbers;
        const auto middle = all.lower_bound(at);
        const std::pair<Payload, Payload> halves = {remake({part}, {all.begin(), middle}),
                                                    remake({part}, {middle, all.end()})};
        forget(part);
        return halves;
    }
    Payload join(Payload first, Payload second) override {
        std::set<Block> numbers = world_.contents_.at(first.handle).numbers;
        const std::set<Block>& more = world_.contents_.at(second.handle).numbers;
        numbers.insert(more.begin(), more.end());
        const Payload joined = remake({first, second}, numbers);
        forget(first);
        forget(second);
        return joined;
    }
    void expelled() override { world_.wrong(fmt::format("node {} is alive and was expelled", self)); }
    void ended() override {
        has_ended = true;
        if (!world_.faults_.leaves) return;
        world_.at(world_.now_ + static_cast<core::TimeNs>(world_.random(20)) * ns_per_ms,
                  [&world = world_, self = self, life = life] {
                      if (Life* const me = world.alive(self, life)) world.depart(*me);
                  });
    }

    Payload make(const std::set<Block>& numbers, NodeId of) {
        const std::uint64_t handle = world_.next_handle_++;
        world_.contents_[handle] = {numbers, of};
        mine.insert(handle);
        return {1000, handle};
    }
    /// A part in place of others; of no numbers it is none.
    Payload remake(const std::vector<Payload>& from, const std::set<Block>& numbers) {
        if (numbers.empty()) return {};
        const Payload made = make(numbers, self);
        const auto all_in = [&](const std::set<std::uint64_t>& handles) {
            return std::ranges::all_of(from, [&](const Payload& part) { return handles.contains(part.handle); });
        };
        for (auto* handles : {&parts, &unsent, &again})
            if (all_in(*handles)) handles->insert(made.handle);
        return made;
    }
    void forget(Payload part) {
        world_.contents_.at(part.handle).free = true;
        for (auto* handles : {&mine, &parts, &unsent, &again}) handles->erase(part.handle);
    }

    NodeId self;
    Incarnation life;
    std::set<std::uint64_t> mine;    ///< payload in its memory
    std::set<std::uint64_t> parts;   ///< of these, what was offered
    std::set<std::uint64_t> unsent;  ///< of these, what nobody was sent
    std::set<std::uint64_t> again;   ///< parts that the life before had offered, and that nobody was sent since
    std::uint64_t dropped = 0;
    std::map<NodeId, std::uint32_t> on_their_way;  ///< parts, by receiver
    std::map<NodeId, core::TimeNs> arrivals;       ///< of the last message that was sent to each
    std::map<NodeId, Incarnation> known;           ///< by node: the last of its lives that was seen
    std::set<Block> open;                          ///< numbers that have not been offered
    Block offered = 0;                             ///< all before this one have been
    bool has_ended = false;
    bool has_left = false;
    core::TimeNs leaves_by = 0;  ///< it has been told to go, and others build; 0: not so

private:
    World& world_;

public:
    Node node;  // last: it may call at once
};

World::World(Settings settings, Faults faults, Block numbers, std::uint64_t seed)
    : settings_(std::move(settings)),
      grid_(settings_.block),
      faults_(faults),
      numbers_(numbers),
      seed_(seed),
      random_(seed),
      nodes_(settings_.nodes),
      silent_(settings_.nodes),
      lives_(settings_.nodes, faults.clocks_are_lost ? 1'000'000 : 0),
      highest_lives_(lives_),
      lives_without_clock_(settings_.nodes),
      deaths_(settings_.nodes),
      link_free_(settings_.nodes),
      offered_(settings_.nodes) {
    slow_ = static_cast<NodeId>(random(settings_.nodes));
    for (NodeId node = 0; node < settings_.nodes; ++node) clocks_ahead_.push_back(random(2 * ns_per_ms));
}

World::~World() = default;

World::Outcome& World::Outcome::operator+=(const Outcome& other) noexcept {
    runs += other.runs;
    built += other.built;
    complete += other.complete;
    lost += other.lost;
    assigned += other.assigned;
    pieces += other.pieces;
    built_twice += other.built_twice;
    deaths += other.deaths;
    drained += other.drained;
    turned_away += other.turned_away;
    offered_again += other.offered_again;
    sent_again += other.sent_again;
    managers += other.managers;
    longest_interregnum_ns = std::max(longest_interregnum_ns, other.longest_interregnum_ns);
    return *this;
}

void World::wrong(const std::string& what) const {
    throw std::logic_error(fmt::format("seed {}, {} ms: {}", seed_, now_ / ns_per_ms, what));
}

void World::note(const std::string& what) const {
    if (traces()) fmt::print("{:.3f} ms: {}\n", static_cast<double>(now_) / ns_per_ms, what);
}

void World::at(core::TimeNs time, std::function<void()> act) {
    queue_.push({time, actions_++, std::move(act)});
}

World::Life* World::alive(NodeId node, Incarnation life) const {
    return nodes_[node] != nullptr && nodes_[node]->life == life ? nodes_[node].get() : nullptr;
}

core::TimeNs World::delay(NodeId from, NodeId to) {
    if (from == to) return 1 + static_cast<core::TimeNs>(random(2)) * us;
    core::TimeNs takes = static_cast<core::TimeNs>(10 + random(1000)) * us;
    if (faults_.slow_node && (from == slow_ || to == slow_)) takes *= 10;
    if (faults_.stalls && random(200) == 0) takes += static_cast<core::TimeNs>(random(300)) * ns_per_ms;
    return takes;
}

/// `told`: what a life was told of a later one, as it begins anew; 0: a process begins. No number comes twice: those
/// without a clock are far apart, and who was told of one that has died since begins with the one after that. (Its
/// death is told here to all, whether they had seen it or not.)
Incarnation World::next_life(NodeId node, Incarnation told) {
    constexpr Incarnation step = 1000;
    if (!faults_.clocks_are_lost) return lives_[node] + 1;
    if (told > 0) {
        while (!told_lives_.emplace(node, ++told).second) {
        }
        return told;
    }
    const bool has_clock = deaths_[node].empty() || random(2) == 0;
    return (has_clock ? highest_lives_ : lives_without_clock_)[node] += step;
}

void World::start(NodeId node, Incarnation told) {
    const Incarnation life = next_life(node, told);
    lives_[node] = life;
    note(fmt::format("node {} begins life {}", node, life));
    nodes_[node] = std::make_unique<Life>(*this, node, life);
    for (NodeId other = 0; other < settings_.nodes; ++other) {
        if (is_between_parts(node, other)) {
            find_absent(node, other);
        } else if (other != node && nodes_[other] != nullptr) {
            see(node, other);
            see(other, node);
        }
    }
}

/// Who is alive sees another one that is, soon.
void World::see(NodeId who, NodeId whom) {
    at(now_ + delay(who, whom) * 3, [this, who, whom, my_life = lives_[who], its_life = lives_[whom]] {
        Life* const me = alive(who, my_life);
        if (me == nullptr || alive(whom, its_life) == nullptr) return;
        Incarnation& known = me->known[whom];
        if (its_life < known) return turn_away(whom, its_life, known);
        known = its_life;
        me->node.peer_up(whom, its_life, now_);
    });
}

/// As the network does it: who is told that a later life of it is over begins one after that.
void World::turn_away(NodeId node, Incarnation life, Incarnation known) {
    ++outcome_.turned_away;
    note(fmt::format("node {} hears that its life {} was before {}", node, life, known));
    if (nodes_[node]->node.manager() != nullptr) manager_deaths_.push_back(now_);
    deaths_[node].push_back(now_);
    silent_[node] = std::move(nodes_[node]);
    tell_of_end(node, life, Ending::over);
    begin_again(node, std::max(life, known));
}

void World::tell_of_end(NodeId node, Incarnation life, Ending ending) {
    for (NodeId other = 0; other < settings_.nodes; ++other) {
        if (other == node) continue;
        at(now_ + static_cast<core::TimeNs>(random(30)) * ns_per_ms,
           [this, other, node, life, ending, its_life = lives_[other]] {
               if (Life* const who = alive(other, its_life)) who->node.peer_down(node, life, ending, now_);
           });
    }
}

/// Nothing answers where the other one should be.
void World::find_absent(NodeId node, NodeId other) {
    at(now_ + static_cast<core::TimeNs>(random(silence_ns)), [this, node, other, life = lives_[node]] {
        Life* const me = alive(node, life);
        if (me != nullptr && is_between_parts(node, other)) me->node.peer_absent(other, Ending::silent, now_);
    });
}

void World::kill(NodeId node, Ending ending) {
    const auto living = std::ranges::count_if(nodes_, [](const auto& life) { return life != nullptr; });
    const auto roles = [&](const NodeSet& set) {
        NodeId count = 0;
        for (NodeId other = 0; other < settings_.nodes; ++other)
            if (other != node && nodes_[other] != nullptr && set.contains(other)) ++count;
        return count;
    };
    if (nodes_[node] == nullptr || nodes_[node]->has_left || living < 2) return;
    if (roles(settings_.readouts) == 0 && !faults_.readouts_die) return;
    if (roles(settings_.builders) == 0 || roles(settings_.managers) == 0) return;
    ++outcome_.deaths;
    note(fmt::format("node {} {}", node, ending == Ending::silent ? "falls silent" : "dies"));
    const Incarnation life = nodes_[node]->life;
    if (nodes_[node]->node.manager() != nullptr) {
        manager_deaths_.push_back(now_);
        is_interregnum_ = faults_.manager_dies;
    }
    deaths_[node].push_back(now_);
    if (ending == Ending::silent) silent_[node] = std::move(nodes_[node]);
    nodes_[node].reset();
    tell_of_end(node, life, ending);
    if (ending == Ending::silent || (faults_.come_back && (faults_.readouts_die || random(3) != 0)))
        at(now_ + static_cast<core::TimeNs>(1 + random(150)) * ns_per_ms, [this, node] { begin_again(node); });
}

/// Who had only fallen silent goes on with the parts that it had.
void World::begin_again(NodeId node, Incarnation told) {
    if (nodes_[node] != nullptr) return;
    const std::unique_ptr<Life> before = std::move(silent_[node]);
    start(node, told);
    if (before == nullptr) return;
    Life& life = *nodes_[node];
    life.mine = life.parts = before->parts;
    life.node.go_on_from(before->node);
    life.unsent = life.parts;
    life.again = life.parts;
    life.open = before->open;
    life.offered = before->offered;
    outcome_.offered_again += life.parts.size();
}

/// Others hear of it when they have all that it sent.
void World::depart(Life& life) {
    note(fmt::format("node {} leaves", life.self));
    life.has_left = true;
    for (NodeId other = 0; other < settings_.nodes; ++other) {
        if (other == life.self) continue;
        at(std::max(now_, life.arrivals[other]) + delay(life.self, other),
           [this, other, node = life.self, its = life.life, other_life = lives_[other]] {
               Life* const who = alive(other, other_life);
               if (who != nullptr && !who->has_left) who->node.peer_down(node, its, Ending::over, now_);
           });
    }
}

/// A builder is told to go, in order: see fabric::ClusterThread.
void World::drain(NodeId node) {
    Life* const life = nodes_[node].get();
    if (life == nullptr || life->has_left) return;
    note(fmt::format("node {} is told to go", node));
    life->node.prepare_to_leave();
    leave_when_done(node, life->life);
}

void World::leave_when_done(NodeId node, Incarnation life) {
    Life* const me = alive(node, life);
    if (me == nullptr || me->has_left || me->has_ended) return;
    if (me->leaves_by == 0 && me->node.others_build()) me->leaves_by = now_ + drain_patience_ns;
    if (me->leaves_by != 0) {
        me->node.leave();
        if (me->node.is_idle() && (me->node.is_settled() || now_ >= me->leaves_by)) return depart_for_a_while(*me);
    }
    at(now_ + ns_per_ms, [this, node, life] { leave_when_done(node, life); });
}

void World::depart_for_a_while(Life& life) {
    ++outcome_.drained;
    depart(life);
    at(now_ + static_cast<core::TimeNs>(1 + random(100)) * ns_per_ms, [this, node = life.self] {
        nodes_[node].reset();
        start(node);
    });
}

void World::plan_drains(core::TimeNs end) {
    if (faults_.drains == 0) return;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (settings_.readouts.contains(node)) continue;
        std::poisson_distribution<int> often(faults_.drains);
        for (int i = often(random_); i > 0; --i)
            at(static_cast<core::TimeNs>(random(static_cast<std::uint64_t>(end))), [this, node] { drain(node); });
    }
}

void World::plan_deaths() {
    const core::TimeNs end = static_cast<core::TimeNs>(numbers_) * block_interval_ns + 50 * ns_per_ms;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        std::poisson_distribution<int> often(faults_.crashes);
        for (int i = faults_.crashes > 0 ? often(random_) : 0; i > 0; --i)
            at(static_cast<core::TimeNs>(random(static_cast<std::uint64_t>(end))),
               [this, node] { kill(node, Ending::over); });
        std::poisson_distribution<int> silences(faults_.silences);
        for (int i = faults_.silences > 0 ? silences(random_) : 0; i > 0; --i)
            at(static_cast<core::TimeNs>(random(static_cast<std::uint64_t>(end))),
               [this, node] { kill(node, Ending::silent); });
    }
    plan_drains(end);
    constexpr core::TimeNs all_have_met = 60 * ns_per_ms;
    if (faults_.parts)
        at(all_have_met + static_cast<core::TimeNs>(random(static_cast<std::uint64_t>(end - all_have_met))),
           [this] { fall_apart(); });
    if (!faults_.readouts_die) return;
    const auto moment = static_cast<core::TimeNs>(random(static_cast<std::uint64_t>(end)));
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (settings_.readouts.contains(node) && !settings_.builders.contains(node))
            at(moment + static_cast<core::TimeNs>(random(10)) * ns_per_ms, [this, node] { kill(node, Ending::over); });
}

/// As the network tells it: who was heard last within a beat is quiet after half the silence, and gone after all of it.
void World::fall_apart() {
    note("the network falls apart");
    part_of_.resize(settings_.nodes);
    const NodeId one = static_cast<NodeId>(random(settings_.nodes));
    for (NodeId node = 0; node < settings_.nodes; ++node) part_of_[node] = node == one || random(2) == 0;
    if (std::ranges::count(part_of_, true) == settings_.nodes) part_of_[one == 0 ? 1 : 0] = false;
    int counted = 0;
    int in_true = 0;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (settings_.spares.contains(node)) continue;
        ++counted;
        if (part_of_[node]) ++in_true;
    }
    goes_on_ = 2 * in_true > counted || (2 * in_true == counted && part_of_[0]);
    for (const auto& life : nodes_)
        if (life != nullptr && life->node.manager() != nullptr && part_of_[life->self] != goes_on_)
            manager_deaths_.push_back(now_);
    for (NodeId node = 0; node < settings_.nodes; ++node)
        for (NodeId other = 0; other < settings_.nodes; ++other) {
            if (!is_between_parts(node, other)) continue;
            const core::TimeNs heard = now_ - static_cast<core::TimeNs>(random(silence_ns / 4));
            const auto tell = [&](core::TimeNs after, auto what) {
                at(heard + after, [this, node, other, what, life = lives_[node], its = lives_[other]] {
                    if (Life* const me = alive(node, life)) what(me->node, other, its, now_);
                });
            };
            tell(silence_ns / 2,
                 [](Node& me, NodeId its, Incarnation /*life*/, core::TimeNs now) { me.peer_quiet(its, true, now); });
            tell(silence_ns, [](Node& me, NodeId its, Incarnation life, core::TimeNs now) {
                me.peer_down(its, life, Ending::silent, now);
            });
        }
    at(now_ + 2 * silence_ns + static_cast<core::TimeNs>(random(14 * silence_ns)), [this] { meet_again(); });
}

/// The part that does not go on finds nothing out from silence.
void World::check_part_of(const Life& builder, BlockSpan span, std::span<const BuiltPart> parts) const {
    if (part_of_.empty() || part_of_[builder.self] == goes_on_) return;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (is_between_parts(builder.self, node) && parts[node].part == Part::node_down && had_any(node, span))
            wrong(fmt::format("node {} built block {} without what node {} has", builder.self, span.block, node));
}

bool World::had_any(NodeId node, BlockSpan span) const {
    const auto first = offered_[node].lower_bound(span.block);
    return first != offered_[node].end() && *first < span.end;
}

/// Those that did not go on begin anew, as who has been expelled does; but nobody expels who had never been there.
void World::meet_again() {
    note("the network is whole again");
    const std::vector<bool> part_of = std::exchange(part_of_, {});
    if (faults_.parts_at_start) {
        for (NodeId node = 0; node < settings_.nodes; ++node)
            for (NodeId other = 0; other < settings_.nodes; ++other)
                if (part_of[node] != part_of[other] && nodes_[node] != nullptr && nodes_[other] != nullptr)
                    see(node, other);
        return;
    }
    std::vector<NodeId> again;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (part_of[node] != goes_on_ && nodes_[node] != nullptr) again.push_back(node);
    for (const NodeId node : again) {
        deaths_[node].push_back(now_);
        silent_[node] = std::move(nodes_[node]);
    }
    for (const NodeId node : again) begin_again(node);
}

/// Of those that the detector sends, in order.
Block World::number_of(Block place) const {
    constexpr Block leap = 3'000'000'000;
    return faults_.jumps ? place + place / 7 * leap : place;
}

/// As fabric::PartCutter does it: a block leaves when it is full, or a part of it before that.
void World::take_from_detector(NodeId node, Block number) {
    Life* const life = nodes_[node].get();
    if (life == nullptr) return;
    if (chance(faults_.not_taken)) {
        if (settings_.block == 1) life->node.readout().skip_to(number + 1);
        return;
    }
    offered_[node].insert(number);
    if (!life->open.empty() && grid_.begin_of(number) != grid_.begin_of(*life->open.begin()))
        offer(*life, grid_.end_of(*life->open.begin()));
    life->open.insert(number);
    const bool leaves_early = !settings_.barrier && settings_.slot_ns == 0 && chance(0.3);
    if (number + 1 == grid_.end_of(number) || leaves_early) offer(*life, number + 1);
}

/// All that it has of numbers before this one.
void World::offer(Life& life, Block end) {
    const BlockSpan span{std::max(life.offered, grid_.begin_of(*life.open.begin())), end};
    const Block rest = *life.open.rbegin() + 1;
    const Payload part = life.make(std::exchange(life.open, {}), life.self);
    life.offered = end;
    life.parts.insert(part.handle);
    life.unsent.insert(part.handle);
    life.node.readout().offer(span, rest, part);
}

void World::carry(Life& from, NodeId to, const Message& message, Payload payload) {
    if (message.kind == Kind::claim) terms_.insert(message.term);
    const bool manages = message.kind == Kind::assign || message.kind == Kind::committed;
    if (manages && std::exchange(is_interregnum_, false))
        outcome_.longest_interregnum_ns = now_ - manager_deaths_.back();
    if (message.kind == Kind::assign && first_assigned_ == ~Block{0} && faults_.manager_dies)
        at(now_ + static_cast<core::TimeNs>(random(30)) * ns_per_ms,
           [this, manager = from.self] { kill(manager, Ending::over); });
    if (message.kind == Kind::assign) first_assigned_ = std::min(first_assigned_, message.block);
    if (message.kind == Kind::assign) {
        ++outcome_.assigned;
        if (grid_.is_piece({message.block, message.end})) ++outcome_.pieces;
    }
    if (message.kind == Kind::finished)
        for (Build& build : builds_[message.block]) build.said |= build.node == from.self && build.life == from.life;
    if (message.kind == Kind::committed)
        for (Build& build : builds_[message.block]) build.committed |= build.node == to && build.life == message.to;
    core::TimeNs arrives = now_ + delay(from.self, to);
    if (payload.handle != 0) {
        from.unsent.erase(payload.handle);
        outcome_.sent_again += from.again.erase(payload.handle);
        if (faults_.takes_no_parts && to == slow_ && to != from.self)
            arrives += stuck_parts_take * settings_.timeout_ns;
        if (faults_.slow_links && to != from.self) {
            core::TimeNs& free = link_free_[from.self];
            free = std::max(free, now_) + settings_.timeout_ns / 4;
            arrives = std::max(arrives, free);
        }
        leave(from, to, message.block, payload, random(2) == 0 ? arrives : arrives + delay(from.self, to));
    }
    from.arrivals[to] = std::max(from.arrivals[to], arrives);
    at(arrives, [this, self = from.self, life = from.life, to, to_life = message.to, message, payload] {
        // What a dead node sent may arrive, or not.
        if (alive(self, life) == nullptr && random(2) == 0) return;
        deliver(self, to, to_life, message, payload);
    });
}

void World::leave(Life& from, NodeId to, Block block, Payload payload, core::TimeNs leaves) {
    if (!from.mine.contains(payload.handle)) wrong("a part is sent that is not in memory any more");
    const bool has_limit = settings_.sends > 0 && to != from.self;
    if (++from.on_their_way[to] > settings_.sends && has_limit) wrong("more parts are on their way than may be");
    at(leaves, [this, self = from.self, life = from.life, to, block, handle = payload.handle] {
        Life* const me = alive(self, life);
        if (me == nullptr) return;
        if (!me->mine.contains(handle)) wrong("a part was released while it was sent");
        --me->on_their_way[to];
        me->node.sent(to, block);
    });
}

void World::deliver(NodeId from, NodeId to, Incarnation to_life, const Message& message, Payload payload) {
    Life* const life = alive(to, to_life);
    if (life == nullptr || life->has_left || is_between_parts(from, to)) return;
    Payload copy;
    if (payload.handle != 0) {
        const Content& content = contents_.at(payload.handle);
        copy = life->make(content.numbers, content.node);
    }
    note(fmt::format("{} to {}: {}, block {}, term {:x}{}", from, to, name_of(message.kind), message.block,
                     message.term, message.kind == Kind::part ? fmt::format(", {}", name_of(message.part)) : ""));
    if (message.kind == Kind::expelled && faults_.clocks_are_lost) return turn_away(to, to_life, message.life);
    life->node.receive(from, message, copy, now_);
}

bool World::is_over() const {
    return std::ranges::all_of(nodes_, [](const auto& life) { return life == nullptr || life->has_ended; });
}

/// Spares, and who is left out, at any time or never. But who comes while the network falls apart does not know whom it
/// lacks.
void World::start_all() {
    if (faults_.parts_at_start) fall_apart();
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        const bool is_spare = settings_.spares.contains(node) || settings_.left_out.contains(node);
        if (is_spare && chance(0.2)) continue;
        const std::uint64_t within_ms = is_spare && !faults_.parts ? 120 : 20;
        at(static_cast<core::TimeNs>(random(within_ms)) * ns_per_ms, [this, node] { start(node); });
    }
}

void World::run() {
    start_all();
    const core::TimeNs begin = 60 * ns_per_ms;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node)) continue;
        for (Block place = 0; place < numbers_; ++place)
            at(begin + static_cast<core::TimeNs>(place) * block_interval_ns +
                   static_cast<core::TimeNs>(random(1800)) * us,
               [this, node, place] { take_from_detector(node, number_of(place)); });
    }
    plan_deaths();
    const core::TimeNs end = begin + static_cast<core::TimeNs>(numbers_ + 1) * block_interval_ns;
    const core::TimeNs limit = end + (faults_.takes_no_parts ? 900 : 60) * core::ns_per_s;
    std::function<void()> look = [&] {
        for (const auto& life : nodes_) {
            if (life == nullptr || life->has_left) continue;
            life->node.look(now_);
            if (now_ <= end) continue;
            if (!life->open.empty()) offer(*life, grid_.end_of(*life->open.begin()));
            life->node.readout().close();
        }
        if (now_ > limit) wrong("it does not end");
        at(now_ + look_interval_ns, look);
    };
    at(0, look);
    std::function<void()> tick = [&] {
        for (const auto& life : nodes_)
            if (life != nullptr && !life->has_left)
                life->node.readout().tick(now_ + static_cast<core::TimeNs>(clocks_ahead_[life->self]));
        at(now_ + tick_interval_ns, tick);
    };
    if (settings_.slot_ns > 0) at(0, tick);
    while (now_ < end || !is_over()) {
        Action next = queue_.top();
        queue_.pop();
        now_ = next.time;
        next.act();
    }
    // What is on its way yet must do no harm.
    const core::TimeNs settle =
        now_ + (faults_.takes_no_parts ? 2 * stuck_parts_take * settings_.timeout_ns : core::ns_per_s);
    while (now_ < settle) {
        Action next = queue_.top();
        queue_.pop();
        now_ = next.time;
        next.act();
    }
    check();
}

void World::check() {
    std::set<Block> lost;
    Block settled = 0;
    for (const auto& life : nodes_) {
        if (life == nullptr) continue;
        for (const Loss& loss : life->node.losses())
            for (Block number = loss.block; number < loss.end; ++number) lost.insert(number);
        settled = std::max(settled, life->node.settled());
        if (life->node.builder_stats().open_highest > settings_.credits)
            wrong("a builder had more blocks than credits");
        if (life->node.readout_stats().dropped != life->dropped) wrong("other parts were dropped than are counted");
        if (life->node.readout_stats().held > 0) wrong(fmt::format("node {} still holds parts", life->self));
        if (!life->mine.empty()) wrong(fmt::format("node {} has {} parts in memory", life->self, life->mine.size()));
    }
    Block first = ~Block{0};
    Block last = 0;
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (offered_[node].empty() || nodes_[node] == nullptr || !deaths_[node].empty()) continue;
        first = std::min(first, *offered_[node].begin());
        last = std::max(last, *offered_[node].rbegin());
    }
    for (Block place = 0; place < numbers_; ++place) {
        const Block number = number_of(place);
        // What only those had that died may have been nobody's before others heard of it.
        bool had_anybody = false;
        for (NodeId node = 0; node < settings_.nodes; ++node)
            had_anybody |= deaths_[node].empty() && offered_[node].contains(number);
        if (had_anybody && number >= std::max(first, first_assigned_) && number <= last) check_number(number, lost);
    }
    for (const auto& [block, builds] : builds_)
        for (const Build& build : builds) check_parts(block, build);
    if (last > 0 && settled <= last) wrong(fmt::format("nobody knows what became of block {}", last));
    outcome_.lost = lost.size();
    outcome_.managers = terms_.size();
}

std::vector<const World::Build*> World::builds_of(Block number) const {
    std::vector<const Build*> found;
    for (auto at = builds_.lower_bound(grid_.begin_of(number)); at != builds_.end() && at->first <= number; ++at)
        for (const Build& build : at->second)
            if (number < build.end) found.push_back(&build);
    return found;
}

bool World::has(const Build& build, NodeId node, Block number) const {
    const BuiltPart& part = build.parts[node];
    return part.part == Part::whole && contents_.at(part.payload.handle).numbers.contains(number);
}

void World::check_number(Block number, const std::set<Block>& lost) {
    std::vector<const Build*> there;
    const Build* may_count = nullptr;  // Keep::written: its builder has died, and who knows of it says so
    for (const Build* build : builds_of(number)) {
        // Who dies between writing and the manager's answer leaves something that counts for nothing.
        if (build->written && (build->committed || alive(build->node, build->life) != nullptr)) there.push_back(build);
        if (build->written && build->said) may_count = build;
    }
    if (there.empty() && may_count != nullptr && !lost.contains(number)) there.push_back(may_count);
    if (there.empty() && !lost.contains(number)) wrong(fmt::format("event {} is nowhere, and not lost", number));
    if (!there.empty() && lost.contains(number) &&
        std::ranges::any_of(there, [this](const Build* build) { return alive(build->node, build->life) != nullptr; }))
        wrong(fmt::format("event {} is lost, and built by one that lives", number));
    if (there.size() > 1) {
        const auto dead = std::ranges::count_if(
            there, [this](const Build* build) { return alive(build->node, build->life) == nullptr; });
        const bool may_forget = !manager_deaths_.empty() || faults_.silences > 0;  // it resigns without a quorum
        if (!may_forget || static_cast<std::size_t>(dead) + 1 < there.size())
            wrong(fmt::format("event {} was built {} times", number, there.size()));
        ++outcome_.built_twice;
    }
    if (there.empty()) return;
    ++outcome_.built;
    bool complete = true;
    for (NodeId node = 0; node < settings_.nodes; ++node)
        if (settings_.readouts.contains(node)) complete &= has(*there.front(), node, number);
    if (complete) ++outcome_.complete;
}

/// Nothing but what the node had of these numbers, and all of it.
void World::check_whole_part(BlockSpan span, NodeId node, const BuiltPart& part, bool died) {
    const Content& content = contents_.at(part.payload.handle);
    if (content.node != node || *content.numbers.begin() < span.block || *content.numbers.rbegin() >= span.end)
        wrong(fmt::format("block {} has a part of block {} of node {}", span.block, *content.numbers.begin(),
                          content.node));
    if (died) return;
    for (auto at = offered_[node].lower_bound(span.block); at != offered_[node].end() && *at < span.end; ++at)
        if (!content.numbers.contains(*at))
            wrong(fmt::format("the part of block {} of node {} lacks event {}", span.block, node, *at));
}

void World::check_parts(Block block, const Build& build) {
    const BlockSpan span{block, build.end};
    for (NodeId node = 0; node < settings_.nodes; ++node) {
        if (!settings_.readouts.contains(node)) continue;
        const BuiltPart& part = build.parts[node];
        // Or it has not come yet.
        const bool died = !deaths_[node].empty() || settings_.left_out.contains(node) || faults_.parts_at_start;
        switch (part.part) {
            case Part::whole:
                check_whole_part(span, node, part, died);
                break;
            case Part::not_held:
                if (had_any(node, span) && !died && deaths_[build.node].empty() && manager_deaths_.empty() &&
                    !faults_.stalls && !faults_.slow_node)  // it may join late
                    wrong(fmt::format("node {} had block {}, and is said not to have held it", node, block));
                break;
            case Part::node_down:
                if (!died) wrong(fmt::format("node {} never died", node));
                break;
            case Part::late:
                if (!(faults_.takes_no_parts && build.node == slow_))
                    wrong(fmt::format("the part of block {} of node {} is late", block, node));
                break;
        }
    }
}

}  // namespace weir::cluster::test
