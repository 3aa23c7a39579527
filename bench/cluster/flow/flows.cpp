#include "flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weir::cluster::bench {

namespace {

/// A level that still moves after so many links does not come to rest by itself.
constexpr std::size_t links_per_solution = 20'000;

}  // namespace

Flows::Flows(const Config& config)
    : config_(config), links_(config.links), levels_(config.links, config.bytes_per_ns) {}

FlowId Flows::begin(const Route& route, std::uint64_t bytes, core::TimeNs now) {
    FlowId id = static_cast<FlowId>(flows_.size());
    if (free_.empty()) {
        flows_.emplace_back();
        routes_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    Flow& flow = flows_[id];
    routes_[id] = route;
    flow = {.left = static_cast<double>(bytes), .since_ns = static_cast<double>(now)};
    flow.end_ns = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < route.count; ++i) {
        Link& link = links_[route.links[i]];
        flow.places[i] = static_cast<std::uint32_t>(link.flows.size());
        link.flows.push_back(id);
        wait(route.links[i]);
    }
    heap_.push_back(id);
    flow.heap_place = static_cast<std::uint32_t>(heap_.size() - 1);
    touch(id);
    ++stats_.flows;
    return id;
}

std::optional<core::TimeNs> Flows::next_end(core::TimeNs now) {
    solve(now);
    if (heap_.empty()) return std::nullopt;
    return std::max(now, static_cast<core::TimeNs>(std::ceil(flows_[heap_.front()].end_ns)));
}

FlowId Flows::end(core::TimeNs now) {
    solve(now);
    const FlowId id = heap_.front();
    const FlowId last = heap_.back();
    heap_.pop_back();
    if (last != id) {
        place(0, last);
        sink(0);
    }
    for (std::uint32_t i = 0; i < routes_[id].count; ++i) {
        const LinkId link = routes_[id].links[i];
        const std::uint32_t place = flows_[id].places[i];
        const FlowId moved = links_[link].flows.back();
        links_[link].flows[place] = moved;
        links_[link].flows.pop_back();
        const Route& route = routes_[moved];
        for (std::uint32_t j = 0; j < route.count; ++j)
            if (route.links[j] == link) flows_[moved].places[j] = place;
        wait(link);
    }
    free_.push_back(id);
    return id;
}

void Flows::wait(LinkId link) {
    if (!std::exchange(links_[link].is_waiting, true)) waiting_.push_back(link);
}

void Flows::touch(FlowId id) {
    if (!std::exchange(flows_[id].is_touched, true)) touched_.push_back(id);
}

void Flows::solve(core::TimeNs now) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        links_[waiting_[i]].is_waiting = false;
        if (i < links_per_solution) find_level(waiting_[i]);
    }
    stats_.cut_off += waiting_.size() > links_per_solution ? 1 : 0;
    waiting_.clear();
    for (const FlowId id : touched_) {
        flows_[id].is_touched = false;
        set_rate(id, now);
    }
    touched_.clear();
}

/// What the other links on its way leave it.
double Flows::elsewhere(const Route& route, LinkId link) const noexcept {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < route.count; ++i)
        if (route.links[i] != link) least = std::min(least, levels_[route.links[i]]);
    return least;
}

/// Flows that get less elsewhere leave the rest to the others. Where all do, one may have all that is left.
double Flows::level_of(LinkId id) {
    const Link& link = links_[id];
    if (link.flows.empty()) return config_.bytes_per_ns;
    limits_.clear();
    for (const FlowId flow : link.flows) limits_.push_back(elsewhere(routes_[flow], id));
    double left = config_.bytes_per_ns;
    auto open = limits_.begin();
    for (;;) {
        const double level = left / static_cast<double>(limits_.end() - open);
        const auto above = std::partition(open, limits_.end(), [level](double limit) { return limit < level; });
        if (above == open) return level;
        for (; open != above; ++open) left -= *open;
        if (open == limits_.end()) return left + *std::ranges::max_element(limits_);
    }
}

void Flows::find_level(LinkId id) {
    ++stats_.levels;
    const double level = level_of(id);
    const double before = levels_[id];
    if (std::abs(level - before) <= config_.tolerance * before) return;
    for (const FlowId flow : links_[id].flows) {
        const Route& route = routes_[flow];
        touch(flow);
        for (std::uint32_t i = 0; i < route.count; ++i) {
            const LinkId other = route.links[i];
            if (other == id) continue;
            // Where it is bounded by that link before and after, nothing changes there.
            if (std::min(before, level) >= levels_[other]) continue;
            wait(other);
        }
    }
    levels_[id] = level;
}

void Flows::set_rate(FlowId id, core::TimeNs now) {
    Flow& flow = flows_[id];
    const double rate = elsewhere(routes_[id], std::numeric_limits<LinkId>::max());
    if (rate == flow.rate) return;
    const auto at = static_cast<double>(now);
    flow.left = std::max(0.0, flow.left - flow.rate * (at - flow.since_ns));
    flow.since_ns = at;
    flow.rate = rate;
    flow.end_ns = at + flow.left / rate;
    rise(flow.heap_place);
    sink(flow.heap_place);
}

void Flows::place(std::uint32_t where, FlowId id) noexcept {
    heap_[where] = id;
    flows_[id].heap_place = where;
}

void Flows::rise(std::uint32_t where) noexcept {
    const FlowId id = heap_[where];
    while (where > 0) {
        const std::uint32_t above = (where - 1) / 2;
        if (flows_[heap_[above]].end_ns <= flows_[id].end_ns) break;
        place(where, heap_[above]);
        where = above;
    }
    place(where, id);
}

void Flows::sink(std::uint32_t where) noexcept {
    const FlowId id = heap_[where];
    for (;;) {
        std::uint32_t below = 2 * where + 1;
        if (below >= heap_.size()) break;
        if (below + 1 < heap_.size() && flows_[heap_[below + 1]].end_ns < flows_[heap_[below]].end_ns) ++below;
        if (flows_[heap_[below]].end_ns >= flows_[id].end_ns) break;
        place(where, heap_[below]);
        where = below;
    }
    place(where, id);
}

}  // namespace weir::cluster::bench
