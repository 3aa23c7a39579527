// A table that is shown in a terminal and in a page, with the same cells in both.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bench {

/// Where a column goes when the whole table is wider than the terminal.
enum class Narrow {
    stays,
    above,  ///< rows with the same cells get them as a heading
    below,  ///< a line after the row; the columns that come first go last
};

struct Column {
    std::string name;
    std::string unit;  ///< may be empty
    bool number = true;
    Narrow narrow = Narrow::stays;
};

struct Row {
    std::vector<std::string> cells;  ///< one for each column; empty: there is nothing to say
    std::vector<std::string> notes;  ///< sentences about this row
};

struct Table {
    std::vector<Column> columns;
    std::vector<Row> rows;

    /// What rows with the same cells in the `above` columns have in common: "transport dpdk-udp, depth receive".
    [[nodiscard]] std::string heading(const Row& row) const;
    /// Takes out the columns in which no row has anything.
    void drop_empty_columns();
};

inline constexpr std::size_t terminal_width = 80;

/// Lines of `width` characters at most, as long as no word is longer; each begins with `indent` spaces.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// Lines that end in a newline; no rows: nothing.
[[nodiscard]] std::string table_text(const Table& table, std::size_t width = terminal_width);

}  // namespace weir::bench
