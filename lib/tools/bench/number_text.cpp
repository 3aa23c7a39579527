#include "bench/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace weir::bench {

std::string number_text(double value, int digits) {
    if (!std::isfinite(value)) return "?";
    const double size = std::abs(value);
    if (value == 0) return "0";
    if (size < 1e-3 || size >= 1e6) return fmt::format("{:.{}e}", value, digits - 2);
    const int before_point = static_cast<int>(std::floor(std::log10(size))) + 1;
    return fmt::format("{:.{}f}", value, std::clamp(digits - before_point, 0, digits + 2));
}

std::string number_text(const std::optional<double>& value, int digits) {
    return value ? number_text(*value, digits) : "";
}

std::string range_text(double low, double high) {
    return number_text(low) + ".." + number_text(high);
}

std::string loss_text(double ratio) {
    return number_text(ratio, ratio < 1e-3 ? 3 : 2);
}

std::string layers_text(const Losses& lost) {
    std::array<std::pair<std::uint64_t, std::string_view>, 5> layers{{{lost.wire, "wire"},
                                                                      {lost.device, "device"},
                                                                      {lost.kernel, "kernel"},
                                                                      {lost.application, "application"},
                                                                      {lost.unknown, "unknown"}}};
    std::ranges::stable_sort(layers, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [packets, name] : layers)
        if (packets > 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    return text;
}

std::string usec_text(double seconds) {
    return number_text(seconds * 1e6, 3);
}

}  // namespace weir::bench
