// How numbers are written in reports: with as many digits as they are worth, and never as a 0 that is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/spread.hpp"
#include "bench/trial_counts.hpp"

namespace weir::bench {

/// Three or four digits that count, without an exponent where that is short; "?" for what is not finite.
[[nodiscard]] std::string number_text(double value, int digits = 4);
[[nodiscard]] std::string number_text(const std::optional<double>& value, int digits = 4);  ///< none: empty

/// "7.101..7.351"
[[nodiscard]] std::string range_text(double low, double high);

/// "0" only if nothing was lost at all: "1.3e-07", "0.021".
[[nodiscard]] std::string loss_text(double ratio);

/// The layers in which packets were lost, the one with most of them first: "kernel", "device, kernel"; empty if none.
[[nodiscard]] std::string layers_text(const Losses& lost);

/// Seconds as microseconds, without the unit.
[[nodiscard]] std::string usec_text(double seconds);

}  // namespace weir::bench
