#include "options/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace weir::options {

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

}  // namespace

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
        std::tie(first, last) = parse_range(text->get());
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

std::vector<TableReader> TableReader::one_or_more(std::string_view key) {
    const toml::node* node = get(key);
    if (node == nullptr || !node->is_table()) return tables(key);
    return {*table(key)};
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

}  // namespace weir::options
