#include "pipeline/settled_numbers.hpp"

#include <algorithm>

namespace weir::pipeline {

void SettledNumbers::moved(std::size_t builder, Point point, core::TimeNs now) noexcept {
    Builder& of = builders_[builder];
    of.highest = std::max(of.highest.value_or(point), point);
    of.moved_ns = now;
}

/// Builders that have not brought out anything have no share in the numbers, or hold their first one: wait_ns tells.
std::optional<SettledNumbers::Point> SettledNumbers::reached_by_all() const noexcept {
    std::optional<Point> lowest;
    for (const Builder& builder : builders_)
        if (builder.highest && (!lowest || *builder.highest < *lowest)) lowest = builder.highest;
    return lowest;
}

bool SettledNumbers::all_moved_since(core::TimeNs time) const noexcept {
    return std::ranges::all_of(builders_,
                               [time](const Builder& builder) { return !builder.highest || builder.moved_ns >= time; });
}

void SettledNumbers::look(core::TimeNs now) {
    while (!marks_.empty() && all_moved_since(marks_.front().time_ns + wait_ns_)) {
        up_to_ = std::max(up_to_.value_or(marks_.front().point), marks_.front().point);
        marks_.pop_front();
    }
    if (marks_.size() == marks_max || (!marks_.empty() && now - marks_.back().time_ns < mark_interval_ns)) return;
    const std::optional<Point> point = reached_by_all();
    if (point && (marks_.empty() || marks_.back().point != *point)) marks_.push_back({now, *point});
}

}  // namespace weir::pipeline
