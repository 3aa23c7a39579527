#include "watch_numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace weir::app {

namespace {

constexpr std::array<std::pair<double, char>, 4> watch_prefixes{{{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}};

/// Three digits, without zeros at the end.
std::string three_digits(double value) {
    const double size = std::abs(value);
    std::string text = fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
    if (text.find('.') == std::string::npos) return text;
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

std::string grouped_digits(const std::string& digits) {
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string with_prefix(double value, std::string_view unit, std::string_view space) {
    constexpr double nearly = 0.9995;  // so that 999,999 is 1 M and not 1000 k
    auto prefix = watch_prefixes.back();
    for (const auto& one : watch_prefixes)
        if (std::abs(value) >= one.first * nearly) {
            prefix = one;
            break;
        }
    return fmt::format("{} {}{}{}", three_digits(value / prefix.first), prefix.second, space, unit);
}

}  // namespace

std::string watch_count(const nlohmann::json& value) {
    if (!value.is_number()) return "unknown";
    if (value.is_number_float()) return grouped_digits(fmt::format("{:.0f}", value.get<double>()));
    return grouped_digits(value.dump());
}

std::string watch_rate(const nlohmann::json& value, std::string_view unit) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return "unknown";
    const auto number = value.get<double>();
    constexpr double whole_max = 9999.5;
    const std::string_view space = unit.empty() ? "" : " ";
    if (std::abs(number) >= whole_max) return with_prefix(number, unit, space);
    const std::string text =
        std::abs(number) >= 1000 ? grouped_digits(fmt::format("{:.0f}", number)) : three_digits(number);
    return fmt::format("{}{}{}", text, space, unit);
}

std::string watch_bytes(const nlohmann::json& value) {
    if (!value.is_number()) return "unknown";
    const auto number = value.get<double>();
    return number < 1000 ? fmt::format("{:.0f} B", number) : with_prefix(number, "B", "");
}

std::string watch_percent(double part) {
    constexpr double rounds_to_nothing = 0.005;
    if (part > 0 && part < rounds_to_nothing) return "< 1 %";
    return fmt::format("{:.0f} %", 100 * part);
}

std::string watch_duration(const nlohmann::json& seconds) {
    if (!seconds.is_number()) return "unknown";
    const auto value = seconds.get<double>();
    constexpr double still_tenths = 9.95;
    if (value == 0) return "0 s";
    if (value < 1e-3) return fmt::format("{:.0f} us", 1e6 * value);
    if (value < 0.1) return fmt::format("{} ms", three_digits(1e3 * value));
    if (value < still_tenths) return fmt::format("{:.1f} s", value);
    const auto whole = static_cast<std::uint64_t>(std::llround(value));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
    return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

}  // namespace weir::app
