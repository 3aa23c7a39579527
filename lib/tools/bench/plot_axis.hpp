// Where a value lies on an axis, and which values are marked there.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace weir::bench {

struct Tick {
    double value = 0;
    std::string label;
};

/// Every axis has a length, whatever it is made of: values that are not finite, or of which a logarithm has none, do
/// not count, and where no others are left it goes from 0 to 1 or from 1 to 10.
class Axis {
public:
    /// From 0 to a round number at or above all values.
    [[nodiscard]] static Axis from_zero(std::span<const double> values);
    /// Whole powers of ten around all values.
    [[nodiscard]] static Axis decades(std::span<const double> values);
    /// Logarithmic, with the values themselves as ticks.
    [[nodiscard]] static Axis of_sizes(std::span<const double> values);

    /// From 0 at the beginning to 1 at the end; what lies beyond is at the end that it lies beyond.
    [[nodiscard]] double place(double value) const;
    [[nodiscard]] const std::vector<Tick>& ticks() const noexcept { return ticks_; }

private:
    Axis(double low, double high, bool logarithmic) : low_(low), high_(high), logarithmic_(logarithmic) {}

    double low_;  // logarithms, if it is logarithmic
    double high_;
    bool logarithmic_;
    std::vector<Tick> ticks_;
};

}  // namespace weir::bench
