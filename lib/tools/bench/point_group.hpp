// The repeats of one measurement, together.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/results.hpp"
#include "bench/spread.hpp"

namespace weir::bench {

/// What makes two points the same measurement.
struct PointKey {
    std::string transport;
    std::string sender;
    std::string depth;
    std::string goal;
    std::uint32_t packets = 1;    ///< in a message
    std::uint32_t bytes = 0;      ///< of UDP payload in a packet
    std::uint32_t sources = 1;    ///< that take turns to send a message
    std::uint32_t addresses = 1;  ///< places in memory that payload went to
    friend auto operator<=>(const PointKey&, const PointKey&) = default;
};

[[nodiscard]] PointKey key_of(const Point& point);

/// Points into the results it was made of.
struct PointGroup {
    PointKey key;
    std::vector<const Point*> repeats;  ///< at least one

    /// Why no repeat could be done; empty: at least one could.
    [[nodiscard]] std::string not_available() const;
    /// Of the repeats that have the value.
    [[nodiscard]] std::vector<double> values(std::optional<double> Point::*member) const;
    [[nodiscard]] std::optional<Spread> spread(std::optional<double> Point::*member) const;
    [[nodiscard]] std::optional<Spread> latency(double Latency::*member) const;  ///< s
    /// Whether the median of the rates is a lower limit: it would be higher if repeats that found no upper bound had
    /// found more, because the sender could do no more, or more was not asked for.
    [[nodiscard]] bool is_at_least() const;
    [[nodiscard]] std::size_t trials() const;
    [[nodiscard]] std::size_t invalid_trials() const;
};

/// In the order in which they first occur.
[[nodiscard]] std::vector<PointGroup> group_points(const Results& results);

/// Adds the packets of each layer.
void add(Losses& sum, const Losses& more);

/// What was lost at the lowest load above the lower bounds at which packets were lost.
struct LossAbove {
    double loss_ratio = 0;  ///< the median over the repeats that saw loss
    Losses lost;            ///< packets, of those trials together
};

/// Of valid trials only; none if no repeat saw loss above its lower bound.
[[nodiscard]] std::optional<LossAbove> loss_above(const PointGroup& group);

}  // namespace weir::bench
