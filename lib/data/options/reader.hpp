// Typed access to one TOML table: every getter checks type and range and throws a core::UsageError that names file,
// line and key; `finish` refuses the keys that nobody asked for. What the keys mean is not known here.
#pragma once

#include <toml++/toml.h>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "options/place.hpp"
#include "options/text.hpp"

namespace weir::options {

/// Throws core::UsageError "FILE:LINE: KEY: found FOUND; accepted: ACCEPTED".
[[noreturn]] void fail(const Place& place, std::string_view key, std::string_view found, std::string_view accepted);

/// What a node is, for people: `the string "udp"`, `the integer 7`, `a table`.
std::string describe(const toml::node& node);

struct Bounds {
    std::uint64_t min;
    std::uint64_t max;
};

class TableReader {
public:
    /// `section` prefixes the keys in errors: "stream" makes "stream.qp". Table and names must outlive the reader.
    TableReader(const toml::table& table, std::string section, std::string_view file);

    [[nodiscard]] Place place() const;
    [[nodiscard]] Place place(const toml::node& node) const;
    [[nodiscard]] std::string full_key(std::string_view key) const;
    [[nodiscard]] std::string_view file() const { return file_; }

    /// Throws for the first key that is not one of these. Asked before anything else, because a slip in a key otherwise
    /// shows as something missing, or as a value that does not fit the others.
    void allow(const std::vector<std::string_view>& keys) const;
    /// The node, or nullptr; the key then counts as known.
    const toml::node* get(std::string_view key);
    /// Throws if the key is there: it is a known one, but not here. `why` says where it applies.
    void refuse(std::string_view key, std::string_view why);
    /// Throws at the table's line because the key is missing.
    [[noreturn]] void missing(std::string_view key, std::string_view accepted) const;
    /// Throws at the key's line, or at the table's if the key is not there.
    [[noreturn]] void wrong(std::string_view key, std::string_view found, std::string_view accepted) const;

    std::optional<std::string> text(std::string_view key);
    /// A name: 1 to 64 letters, digits, '_', '-' or '.', not beginning with '.'.
    std::optional<std::string> name(std::string_view key);
    std::optional<std::uint64_t> integer(std::string_view key, Bounds bounds);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::int64_t> signed_integer(std::string_view key);
    /// An integer or a float, neither infinite nor NaN.
    std::optional<double> number(std::string_view key, double min, double max);
    std::optional<std::uint64_t> size(std::string_view key, Bounds bounds);
    /// Integers, alone or in an array; inside strings also ranges "50001-50008". `what` says what they are.
    std::vector<std::uint32_t> integers(std::string_view key, Bounds bounds, std::string_view what);
    /// Strings, alone or in an array.
    std::vector<std::string> texts(std::string_view key, std::string_view what);
    /// A sub-table, as a reader whose keys begin with "SECTION.KEY".
    std::optional<TableReader> table(std::string_view key);
    /// The tables of [[key]].
    std::vector<TableReader> tables(std::string_view key);
    /// The same, or the one table of `key = { ... }`.
    std::vector<TableReader> one_or_more(std::string_view key);

    template <class Table>
    auto choice(std::string_view key, const Table& names) -> std::optional<decltype(names[0].value)> {
        const auto index = word(key, names_in(names));
        if (!index) return std::nullopt;
        return names[*index].value;
    }
    /// Position of the key's string in `words`.
    std::optional<std::size_t> word(std::string_view key, const std::vector<std::string_view>& words);

    /// Throws for the first key that was never asked for: one that is allowed, but not with the others that are there.
    void finish() const;

private:
    void append_integers(std::vector<std::uint32_t>& out, const toml::node& node, std::string_view key, Bounds bounds,
                         std::string_view what) const;

    const toml::table* table_;
    std::string section_;
    std::string_view file_;
    std::vector<std::string> known_;
};

}  // namespace weir::options
