#include "options/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/nearest.hpp"

namespace weir::options {

namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (byte < 0x20 || byte == 0x7f)
            out += fmt::format("\\u{:04x}", byte);
        else
            out += c;
    }
    return out + '"';
}

std::string format_size(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> units{"", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{}{}", bytes, units[unit]);
}

std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& known) {
    constexpr std::size_t word_max = 64;
    if (word.size() > word_max) return std::nullopt;
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
        return c == '-' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    std::optional<std::string_view> best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string_view candidate : known) {
        std::size_t distance = core::edit_distance(lower, candidate);
        // Not a slip of the pen, but the same thing meant: "port" for "udp_port", "udp_port" for "udp_dst".
        const bool part = lower.size() >= 3 && candidate.find(lower) != std::string_view::npos;
        const bool start = lower.size() >= 4 && candidate.substr(0, 4) == lower.substr(0, 4);
        if (part || start) distance = std::min<std::size_t>(distance, 2);
        if (distance < best_distance && distance < std::max(lower.size(), candidate.size())) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string any_of(const std::vector<std::string_view>& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i != 0) out += i + 1 == words.size() ? " or " : ", ";
        out += in_quotes(words[i]);
    }
    return out;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    constexpr std::array<Named<std::uint64_t>, 11> units{{{"", 1},
                                                          {"B", 1},
                                                          {"KiB", std::uint64_t{1} << 10},
                                                          {"MiB", std::uint64_t{1} << 20},
                                                          {"GiB", std::uint64_t{1} << 30},
                                                          {"TiB", std::uint64_t{1} << 40},
                                                          {"kB", 1000},
                                                          {"KB", 1000},
                                                          {"MB", 1000'000},
                                                          {"GB", 1000'000'000},
                                                          {"TB", 1000'000'000'000}}};
    text = trim(text);
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_number(text.substr(0, digits));
    if (!number) return std::nullopt;
    const std::string_view suffix = trim(text.substr(digits));
    for (const auto& unit : units) {
        if (unit.name != suffix) continue;
        if (*number > std::numeric_limits<std::uint64_t>::max() / unit.value) return std::nullopt;
        return *number * unit.value;
    }
    return std::nullopt;
}

std::pair<std::optional<std::uint64_t>, std::optional<std::uint64_t>> parse_range(std::string_view text) {
    const std::size_t dash = std::min(text.find('-'), text.size());
    const auto first = parse_number(trim(text.substr(0, dash)));
    return {first, dash == text.size() ? first : parse_number(trim(text.substr(dash + 1)))};
}

std::string toml_text(const nlohmann::json& value) {
    if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
    if (value.is_number_float()) return fmt::format("{}", value.get<double>());
    // TOML's integers are signed, so the upper half of 64 bits is written as negative numbers.
    if (value.is_number_unsigned()) return fmt::format("{}", static_cast<std::int64_t>(value.get<std::uint64_t>()));
    if (!value.is_structured()) return value.dump();
    std::vector<std::string> parts;
    for (const auto& [key, element] : value.items())
        parts.push_back(value.is_array() ? toml_text(element) : fmt::format("{} = {}", key, toml_text(element)));
    return fmt::format(fmt::runtime(value.is_array() ? "[{}]" : "{{ {} }}"), fmt::join(parts, ", "));
}

std::string size_text(const nlohmann::json& value) {
    return in_quotes(format_size(value.get<std::uint64_t>()));
}

std::string hex_text(const nlohmann::json& value) {
    if (!value.is_array()) return fmt::format("{:#x}", value.get<std::uint64_t>());
    std::vector<std::string> parts;
    for (const nlohmann::json& element : value) parts.push_back(hex_text(element));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string ranges_text(const nlohmann::json& value) {
    constexpr std::size_t run_min = 4;  // shorter runs read better one by one
    const auto numbers = value.get<std::vector<std::uint32_t>>();
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        if (end - i >= run_min) {
            parts.push_back(fmt::format("\"{}-{}\"", numbers[i], numbers[end - 1]));
            i = end;
        } else {
            parts.push_back(std::to_string(numbers[i++]));
        }
    }
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string bounds_text(std::uint64_t min, std::uint64_t max) {
    if (max == std::numeric_limits<std::uint32_t>::max()) return fmt::format("{}..", min);
    return fmt::format("{}..{}", min, max);
}

std::string bounds_text(double min, double max) {
    constexpr double any = 1e9;
    return min <= -any && max >= any ? std::string("number") : fmt::format("{}..{}", min, max);
}

std::string size_bounds_text(std::uint64_t min, std::uint64_t max) {
    if (max == std::numeric_limits<std::uint32_t>::max()) return "size, less than 4GiB";
    return fmt::format("size, {}..{}", format_size(min), format_size(max));
}

std::string quoted_words(const std::vector<std::string_view>& words) {
    std::string out;
    for (const std::string_view word : words) out += fmt::format("{}`{}`", out.empty() ? "" : ", ", in_quotes(word));
    return out;
}

}  // namespace weir::options
