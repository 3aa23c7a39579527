#include "config/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace weir::pipeline::detail {

namespace {

// Lists longer than this are a slip: "1-65535" is the longest that means anything.
constexpr std::size_t list_max = 65536;

std::uint32_t line_of(const toml::node& node) {
    const std::uint32_t line = node.source().begin.line;
    if (line != 0 || !node.is_table()) return line == 0 ? 1 : line;
    // A table that exists only because of a dotted key has no place of its own: its first key's will do.
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    for (const auto& [key, child] : *node.as_table()) first = std::min(first, line_of(child));
    return first == std::numeric_limits<std::uint32_t>::max() ? 1 : first;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view text) {
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
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

void fail(const Place& place, std::string_view key, std::string_view found, std::string_view accepted) {
    throw core::UsageError(
        fmt::format("{}:{}: {}: found {}; accepted: {}", place.file, place.line, key, found, accepted));
}

std::string describe(const toml::node& node) {
    constexpr std::size_t shown_max = 60;
    if (const auto* text = node.as_string()) {
        const std::string_view value = text->get();
        if (value.size() <= shown_max) return "the string " + in_quotes(value);
        return fmt::format("a string of {} bytes", value.size());
    }
    if (const auto* integer = node.as_integer()) return fmt::format("the integer {}", integer->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("the number {}", number->get());
    if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
    if (const auto* array = node.as_array()) return array->empty() ? "an empty array" : "an array";
    if (node.is_table()) return "a table";
    return "a date or time";
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
        std::size_t distance = edit_distance(lower, candidate);
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
    const auto number = parse_integer<std::uint64_t>(text.substr(0, digits));
    if (!number) return std::nullopt;
    const std::string_view suffix = trim(text.substr(digits));
    for (const auto& unit : units) {
        if (unit.name != suffix) continue;
        if (*number > std::numeric_limits<std::uint64_t>::max() / unit.value) return std::nullopt;
        return *number * unit.value;
    }
    return std::nullopt;
}

TableReader::TableReader(const toml::table& table, std::string section, std::string_view file)
    : table_(&table), section_(std::move(section)), file_(file) {}

Place TableReader::place() const {
    return place(*table_);
}

Place TableReader::place(const toml::node& node) const {
    return {std::string(file_), line_of(node)};
}

std::string TableReader::full_key(std::string_view key) const {
    return section_.empty() ? std::string(key) : fmt::format("{}.{}", section_, key);
}

const toml::node* TableReader::get(std::string_view key) {
    known_.emplace_back(key);
    return table_->get(key);
}

void TableReader::refuse(std::string_view key, std::string_view why) {
    if (const toml::node* node = get(key)) fail(place(*node), full_key(key), describe(*node), why);
}

void TableReader::missing(std::string_view key, std::string_view accepted) const {
    fail(place(), full_key(key), "nothing, it is required", accepted);
}

void TableReader::wrong(std::string_view key, std::string_view found, std::string_view accepted) const {
    const toml::node* node = table_->get(key);
    fail(node == nullptr ? place() : place(*node), full_key(key), found, accepted);
}

std::optional<std::string> TableReader::text(std::string_view key) {
    constexpr std::size_t text_max = 4096;
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const auto* value = node->as_string();
    if (value == nullptr || value->get().empty() || value->get().size() > text_max)
        wrong(key, describe(*node), "a string that is not empty");
    const bool printable =
        std::all_of(value->get().begin(), value->get().end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
    if (!printable) wrong(key, describe(*node), "a string without control characters");
    return value->get();
}

std::optional<std::string> TableReader::name(std::string_view key) {
    constexpr std::size_t name_max = 64;
    auto value = text(key);
    if (!value) return std::nullopt;
    const bool good =
        value->size() <= name_max && value->front() != '.' && std::all_of(value->begin(), value->end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                   c == '.';
        });
    if (!good) wrong(key, describe(*get(key)), "1 to 64 letters, digits, '_', '-' or '.', not beginning with '.'");
    return value;
}

std::optional<std::uint64_t> TableReader::integer(std::string_view key, Bounds bounds) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < 0 || static_cast<std::uint64_t>(value->get()) < bounds.min ||
        static_cast<std::uint64_t>(value->get()) > bounds.max)
        wrong(key, describe(*node), fmt::format("an integer, {}..{}", bounds.min, bounds.max));
    return static_cast<std::uint64_t>(value->get());
}

std::optional<bool> TableReader::boolean(std::string_view key) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const auto* value = node->as_boolean();
    if (value == nullptr) wrong(key, describe(*node), "true or false");
    return value->get();
}

std::optional<std::int64_t> TableReader::signed_integer(std::string_view key) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const auto* value = node->as_integer();
    if (value == nullptr) wrong(key, describe(*node), "an integer");
    return value->get();
}

std::optional<double> TableReader::number(std::string_view key, double min, double max) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= min && *value <= max))
        wrong(key, describe(*node), fmt::format("a number, {}..{}", min, max));
    return value;
}

std::optional<std::uint64_t> TableReader::size(std::string_view key, Bounds bounds) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    std::optional<std::uint64_t> bytes;
    if (const auto* text = node->as_string()) bytes = parse_size(text->get());
    if (const auto* value = node->as_integer(); value != nullptr && value->get() >= 0)
        bytes = static_cast<std::uint64_t>(value->get());
    if (!bytes || *bytes < bounds.min || *bytes > bounds.max)
        wrong(key, describe(*node),
              fmt::format("{} to {}, as \"16MiB\", \"100MB\" or a number of bytes", format_size(bounds.min),
                          format_size(bounds.max)));
    return bytes;
}

void TableReader::append_integers(std::vector<std::uint32_t>& out, const toml::node& node, std::string_view key,
                                  Bounds bounds, std::string_view what) const {
    std::optional<std::uint64_t> first;
    std::optional<std::uint64_t> last;
    if (const auto* value = node.as_integer(); value != nullptr && value->get() >= 0) {
        first = last = static_cast<std::uint64_t>(value->get());
    } else if (const auto* text = node.as_string()) {
        const std::string_view range = text->get();
        const std::size_t dash = std::min(range.find('-'), range.size());
        first = parse_integer<std::uint64_t>(trim(range.substr(0, dash)));
        last = dash == range.size() ? first : parse_integer<std::uint64_t>(trim(range.substr(dash + 1)));
    }
    if (!first || !last || *first > *last || *first < bounds.min || *last > bounds.max)
        fail(place(node), full_key(key), describe(node),
             fmt::format("{}, {}..{}, or a range of them as \"{}-{}\"", what, bounds.min, bounds.max,
                         std::max<std::uint64_t>(bounds.min, 1), std::max<std::uint64_t>(bounds.min, 1) + 7));
    if (*last - *first >= list_max || out.size() + (*last - *first) >= list_max)
        fail(place(node), full_key(key), describe(node), fmt::format("at most {} in all", list_max));
    for (std::uint64_t value = *first; value <= *last; ++value) out.push_back(static_cast<std::uint32_t>(value));
}

std::vector<std::uint32_t> TableReader::integers(std::string_view key, Bounds bounds, std::string_view what) {
    std::vector<std::uint32_t> out;
    const toml::node* node = get(key);
    if (node == nullptr) return out;
    if (const toml::array* array = node->as_array()) {
        for (const toml::node& element : *array) append_integers(out, element, key, bounds, what);
        if (out.empty()) wrong(key, describe(*node), fmt::format("at least one {}", what));
    } else {
        append_integers(out, *node, key, bounds, what);
    }
    std::vector<std::uint32_t> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        wrong(key, fmt::format("{} twice", *twice), fmt::format("each {} once", what));
    return out;
}

std::vector<std::string> TableReader::texts(std::string_view key, std::string_view what) {
    std::vector<std::string> out;
    const toml::node* node = get(key);
    if (node == nullptr) return out;
    const auto append = [&](const toml::node& element) {
        const auto* text = element.as_string();
        if (text == nullptr)
            fail(place(element), full_key(key), describe(element), fmt::format("{}, as a string", what));
        if (out.size() == list_max)
            fail(place(element), full_key(key), "too many", fmt::format("at most {} in all", list_max));
        out.push_back(text->get());
    };
    if (const toml::array* array = node->as_array()) {
        for (const toml::node& element : *array) append(element);
        if (out.empty()) wrong(key, describe(*node), fmt::format("at least one: {}", what));
    } else {
        append(*node);
    }
    return out;
}

std::optional<TableReader> TableReader::table(std::string_view key) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    const toml::table* inner = node->as_table();
    if (inner == nullptr)
        wrong(key, describe(*node),
              section_.empty() ? fmt::format("one table, [{}]", key) : fmt::format("a table, {} = {{ ... }}", key));
    return TableReader(*inner, full_key(key), file_);
}

std::vector<TableReader> TableReader::tables(std::string_view key) {
    std::vector<TableReader> out;
    const toml::node* node = get(key);
    if (node == nullptr) return out;
    const toml::array* array = node->as_array();
    if (array == nullptr) wrong(key, describe(*node), fmt::format("tables that begin with [[{}]]", key));
    for (const toml::node& element : *array) {
        const toml::table* inner = element.as_table();
        if (inner == nullptr)
            fail(place(element), full_key(key), describe(element), fmt::format("tables that begin with [[{}]]", key));
        out.emplace_back(*inner, full_key(key), file_);
    }
    return out;
}

std::optional<std::size_t> TableReader::word(std::string_view key, const std::vector<std::string_view>& words) {
    const toml::node* node = get(key);
    if (node == nullptr) return std::nullopt;
    if (const auto* text = node->as_string()) {
        const auto found = std::find(words.begin(), words.end(), std::string_view(text->get()));
        if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    }
    wrong(key, describe(*node), any_of(words));
}

void TableReader::finish() const {
    allow({known_.begin(), known_.end()});
}

void TableReader::allow(const std::vector<std::string_view>& keys) const {
    for (const auto& [key, node] : *table_) {
        const std::string_view name = key.str();
        if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
        std::vector<std::string_view> words = keys;
        const auto guess = nearest(name, words);
        std::sort(words.begin(), words.end());
        words.erase(std::unique(words.begin(), words.end()), words.end());
        constexpr std::size_t shown_max = 60;
        Place at = place(node);
        if (key.source().begin.line != 0) at.line = key.source().begin.line;
        fail(at, full_key(in_quotes(name.substr(0, shown_max))),
             guess ? fmt::format("an unknown key; did you mean {}?", in_quotes(*guess)) : "an unknown key",
             fmt::format("{}", fmt::join(words, ", ")));
    }
}

}  // namespace weir::pipeline::detail
