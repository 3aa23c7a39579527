#include "bench/point_group.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace weir::bench {
namespace {

const TrialRecord* nearest_loss(const Point& point) {
    const TrialRecord* nearest = nullptr;
    for (const TrialRecord& trial : point.trials) {
        if (!trial.valid || trial.loss_ratio <= 0 || trial.intended_gbps <= point.lower_gbps.value_or(0)) continue;
        if (nearest == nullptr || trial.intended_gbps < nearest->intended_gbps) nearest = &trial;
    }
    return nearest;
}

}  // namespace

void add(Losses& sum, const Losses& more) {
    sum.wire += more.wire;
    sum.device += more.device;
    sum.kernel += more.kernel;
    sum.application += more.application;
    sum.unknown += more.unknown;
}

PointKey key_of(const Point& point) {
    return {point.transport, point.sender, point.depth,   point.goal,
            point.packets,   point.bytes,  point.sources, point.addresses};
}

std::string PointGroup::not_available() const {
    const auto available = [](const Point* point) { return point->not_available.empty(); };
    return std::ranges::any_of(repeats, available) ? "" : repeats.front()->not_available;
}

std::vector<double> PointGroup::values(std::optional<double> Point::*member) const {
    std::vector<double> values;
    for (const Point* point : repeats)
        if (point->*member) values.push_back(*(point->*member));
    return values;
}

std::optional<Spread> PointGroup::spread(std::optional<double> Point::*member) const {
    return spread_of(values(member));
}

std::optional<Spread> PointGroup::latency(double Latency::*member) const {
    std::vector<double> values;
    for (const Point* point : repeats)
        if (point->latency) values.push_back((*point->latency).*member);
    return spread_of(values);
}

bool PointGroup::is_at_least() const {
    std::vector<double> most;
    for (const Point* point : repeats)
        if (point->conditional_gbps)
            most.push_back(point->upper_gbps ? *point->conditional_gbps : std::numeric_limits<double>::infinity());
    return !most.empty() && median_of(most) > median_of(values(&Point::conditional_gbps));
}

std::size_t PointGroup::trials() const {
    std::size_t count = 0;
    for (const Point* point : repeats) count += point->trials.size();
    return count;
}

std::size_t PointGroup::invalid_trials() const {
    std::size_t count = 0;
    for (const Point* point : repeats)
        count += static_cast<std::size_t>(std::ranges::count(point->trials, false, &TrialRecord::valid));
    return count;
}

std::vector<PointGroup> group_points(const Results& results) {
    std::vector<PointGroup> groups;
    std::map<PointKey, std::size_t> places;
    for (const Point& point : results.points) {
        const auto [place, is_new] = places.emplace(key_of(point), groups.size());
        if (is_new) groups.push_back({place->first, {}});
        groups[place->second].repeats.push_back(&point);
    }
    return groups;
}

std::optional<LossAbove> loss_above(const PointGroup& group) {
    std::vector<double> ratios;
    LossAbove above;
    for (const Point* point : group.repeats) {
        const TrialRecord* nearest = nearest_loss(*point);
        if (nearest == nullptr) continue;
        ratios.push_back(nearest->loss_ratio);
        add(above.lost, nearest->lost);
    }
    if (ratios.empty()) return std::nullopt;
    above.loss_ratio = median_of(ratios);
    return above;
}

}  // namespace weir::bench
