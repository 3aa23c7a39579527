// The words and numbers of a configuration as they are written: names of choices, sizes, quoted text.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::options {

/// A word of the configuration and the value that it stands for. One array per choice serves reading, printing and the
/// list of what is accepted.
template <class E>
struct Named {
    std::string_view name;
    E value;
};
template <class E>
Named(const char*, E) -> Named<E>;  // clang 14 does not deduce it for aggregates

template <class Table, class E>
constexpr std::string_view name_of(const Table& table, E value) {
    for (const auto& entry : table)
        if (entry.value == value) return entry.name;
    return "?";
}

template <class Table>
std::vector<std::string_view> names_in(const Table& table) {
    std::vector<std::string_view> words;
    for (const auto& entry : table) words.push_back(entry.name);
    return words;
}

/// The nearest of `known` to `word`, if it is near enough to be a slip of the pen.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      const std::vector<std::string_view>& known);

/// "a", "a or b", "a, b or c" in quotes.
[[nodiscard]] std::string any_of(const std::vector<std::string_view>& words);

/// Reads "16MiB", "100MB" or "4096"; nothing if it is not a size or does not fit.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// First and last of "50001-50008", or "50001" twice; nothing in place of what is not a number.
[[nodiscard]] std::pair<std::optional<std::uint64_t>, std::optional<std::uint64_t>> parse_range(std::string_view text);

/// Bytes as the largest binary unit that divides them: "16MiB", "1000".
[[nodiscard]] std::string format_size(std::uint64_t bytes);

/// Text in double quotes with control characters escaped as TOML wants them.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// A value as TOML, in one line. toml++ can print, too, but breaks long lists, and knows neither sizes nor which
/// numbers read better in hexadecimal.
[[nodiscard]] std::string toml_text(const nlohmann::json& value);
/// A number of bytes: "16MiB" in quotes.
[[nodiscard]] std::string size_text(const nlohmann::json& value);
/// A number, or each of a list, in hexadecimal.
[[nodiscard]] std::string hex_text(const nlohmann::json& value);
/// A list of integers, with runs of four and more as "50001-50008".
[[nodiscard]] std::string ranges_text(const nlohmann::json& value);

/// What a number may be: "1..1024"; "1.." and "number" where the bound is only that of the type.
[[nodiscard]] std::string bounds_text(std::uint64_t min, std::uint64_t max);
[[nodiscard]] std::string bounds_text(double min, double max);
/// "size, 1MiB..16TiB".
[[nodiscard]] std::string size_bounds_text(std::uint64_t min, std::uint64_t max);
/// Each in quotes, for the reference: `"auto"`, `"on"`, `"off"`.
[[nodiscard]] std::string quoted_words(const std::vector<std::string_view>& words);

}  // namespace weir::options
