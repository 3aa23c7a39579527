// Up to which event number a run is settled while it goes on: no builder can still bring out an event with a lower one,
// so what has not been seen below it never came. On the control thread.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/units.hpp"

namespace weir::pipeline {

class SettledNumbers {
public:
    /// An event number, and the epoch that it is of.
    struct Point {
        std::uint32_t epoch = 0;
        std::uint64_t number = 0;
        auto operator<=>(const Point&) const = default;
    };
    static constexpr core::TimeNs mark_interval_ns = 100 * core::ns_per_ms;
    static constexpr std::size_t marks_max = 1024;

    /// `wait_ns`: for how long an event may stay with a builder that goes on.
    SettledNumbers(std::size_t builders, core::TimeNs wait_ns) : builders_(builders), wait_ns_(wait_ns) {}

    /// Events up to `point` have left the builder.
    void moved(std::size_t builder, Point point, core::TimeNs now) noexcept;
    /// Many times a second, after moved() of all that is known.
    void look(core::TimeNs now);

    /// A builder that stands still, or has nothing to do, holds this back: it may have an event yet.
    [[nodiscard]] const std::optional<Point>& up_to() const noexcept { return up_to_; }

private:
    struct Builder {
        std::optional<Point> highest;
        core::TimeNs moved_ns = 0;
    };
    struct Mark {
        core::TimeNs time_ns = 0;
        Point point;  ///< the lowest of what each builder had reached
    };
    [[nodiscard]] std::optional<Point> reached_by_all() const noexcept;
    [[nodiscard]] bool all_moved_since(core::TimeNs time) const noexcept;

    std::vector<Builder> builders_;
    core::TimeNs wait_ns_;
    std::deque<Mark> marks_;
    std::optional<Point> up_to_;
};

}  // namespace weir::pipeline
