#include "stages/time_bound.hpp"

#include <fmt/format.h>
#include <time.h>

#include <optional>
#include <string_view>

#include "core/error.hpp"

namespace weir::stages {

using core::TimeNs;

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Takes digits off the front: at least one, at most `most`.
std::optional<std::int64_t> take_number(std::string_view& text, std::size_t most) {
    std::int64_t value = 0;
    std::size_t count = 0;
    for (; count < text.size() && is_digit(text[count]); ++count) {
        if (count == most) return std::nullopt;
        value = value * 10 + (text[count] - '0');
    }
    text.remove_prefix(count);
    return count > 0 ? std::optional(value) : std::nullopt;
}

/// Takes ".digits" off the front, if it is there: billionths. Digits beyond them must be zeros.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
    if (!text.starts_with('.')) return 0;
    text.remove_prefix(1);
    std::int64_t value = 0;
    std::size_t count = 0;
    for (; count < text.size() && is_digit(text[count]); ++count) {
        if (count < 9) value = value * 10 + (text[count] - '0');
        if (count >= 9 && text[count] != '0') return std::nullopt;
    }
    text.remove_prefix(count);
    if (count == 0) return std::nullopt;
    for (; count < 9; ++count) value *= 10;
    return value;
}

bool take(std::string_view& text, char wanted) {
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(1);
    return true;
}

/// A number and a unit.
std::optional<TimeNs> parse_distance(std::string_view text) {
    const auto whole = take_number(text, 10);
    const auto fraction = whole ? take_fraction(text) : std::nullopt;
    if (!fraction) return std::nullopt;
    std::int64_t unit_ns = 0;
    if (text.empty() || text == "s") unit_ns = core::ns_per_s;
    if (text == "ms") unit_ns = core::ns_per_ms;
    if (text == "us") unit_ns = 1000;
    if (text == "ns") unit_ns = 1;
    if (unit_ns == 0 || *whole > 9'000'000'000 || (*fraction * unit_ns) % core::ns_per_s != 0) return std::nullopt;
    return *whole * unit_ns + *fraction / (core::ns_per_s / unit_ns);
}

/// RFC 3339, section 5.6.
std::optional<TimeNs> parse_date(std::string_view text) {
    struct tm date {};
    const auto field = [&](int& out, std::size_t digits, std::int64_t low, std::int64_t high) {
        const std::size_t before = text.size();
        const auto value = take_number(text, digits);
        if (!value || before - text.size() != digits || *value < low || *value > high) return false;
        out = static_cast<int>(*value);
        return true;
    };
    if (!field(date.tm_year, 4, 1970, 2261) || !take(text, '-') || !field(date.tm_mon, 2, 1, 12) || !take(text, '-') ||
        !field(date.tm_mday, 2, 1, 31) || !(take(text, 'T') || take(text, 't') || take(text, ' ')) ||
        !field(date.tm_hour, 2, 0, 23) || !take(text, ':') || !field(date.tm_min, 2, 0, 59) || !take(text, ':') ||
        !field(date.tm_sec, 2, 0, 60))
        return std::nullopt;
    const auto fraction = take_fraction(text);
    if (!fraction) return std::nullopt;
    std::int64_t zone_s = 0;
    if (!take(text, 'Z') && !take(text, 'z')) {
        const std::int64_t sign = text.starts_with('-') ? -1 : 1;
        int hours = 0;
        int minutes = 0;
        if (!(take(text, '+') || take(text, '-')) || !field(hours, 2, 0, 23) || !take(text, ':') ||
            !field(minutes, 2, 0, 59))
            return std::nullopt;
        zone_s = sign * (hours * 3600 + minutes * 60);
    }
    if (!text.empty()) return std::nullopt;
    const int day = date.tm_mday;
    date.tm_year -= 1900;
    date.tm_mon -= 1;
    const time_t seconds = ::timegm(&date);
    if (date.tm_mday != day && date.tm_sec < 60 && day > 28 && date.tm_mday < 4) return std::nullopt;  // 30 February
    return (seconds - zone_s) * core::ns_per_s + *fraction;
}

}  // namespace

TimeBound parse_time_bound(const std::string& option, const std::string& text) {
    const std::string_view view = text;
    std::optional<TimeNs> found;
    const bool relative = view.starts_with('+');
    if (relative)
        found = parse_distance(view.substr(1));
    else if (view.find('-') != std::string_view::npos)
        found = parse_date(view);
    else if (!view.empty() && is_digit(view.back()))
        found = parse_distance(view);
    if (found.has_value()) return {relative, *found};
    throw core::UsageError(
        fmt::format("{}: found '{}'; accepted: a distance from the first record such as +1.5s (ns, us, ms, s), "
                    "seconds since 1970 such as 1700000000.25, or a date such as 2026-11-21T13:05:00.25Z (RFC 3339)",
                    option, text));
}

}  // namespace weir::stages
