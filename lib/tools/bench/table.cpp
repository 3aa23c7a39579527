#include "bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/number_text.hpp"
#include "core/printable.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t note_indent = 4;

/// Characters, of which "≥" takes three bytes.
std::size_t columns_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// A table and what a width made of its columns.
class Layout {
public:
    Layout(const Table& table, std::size_t width) : table_(table), width_(width) {
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            body_.push_back(i);
            std::size_t widest = std::max(columns_in(table.columns[i].name), columns_in(unit_text(i)));
            for (const Row& row : table.rows) widest = std::max(widest, columns_in(row.cells[i]));
            widths_.push_back(widest);
        }
        shrink();
    }

    [[nodiscard]] std::string text() const {
        std::string text;
        std::string heading;
        for (const Row& row : table_.rows) {
            if (const std::string next = above_ ? core::printable(table_.heading(row)) : std::string{};
                text.empty() || next != heading) {
                if (!next.empty()) text += (text.empty() ? "" : "\n") + wrapped(next, width_, 0) + '\n';
                text += header();
                heading = next;
            }
            text += line([&row](std::size_t i) { return core::printable(row.cells[i]); });
            for (const std::string& note : notes_of(row)) text += wrapped(note, width_, note_indent) + '\n';
        }
        return text;
    }

private:
    [[nodiscard]] std::size_t used() const {
        std::size_t sum = gap_ * (body_.size() - 1);
        for (const std::size_t i : body_) sum += widths_[i];
        return sum;
    }
    void shrink() {
        if (used() <= width_) return;
        const auto goes = [this](Narrow where) { return [=, this](std::size_t i) { return is(i, where); }; };
        above_ = true;
        std::erase_if(body_, goes(Narrow::above));
        if (used() > width_) gap_ = 1;
        while (used() > width_) {
            const auto last = std::find_if(body_.rbegin(), body_.rend(), goes(Narrow::below));
            if (last == body_.rend()) return;
            below_.insert(below_.begin(), *last);
            body_.erase(std::next(last).base());
        }
    }
    [[nodiscard]] bool is(std::size_t column, Narrow where) const { return table_.columns[column].narrow == where; }

    template <class CellOf>
    [[nodiscard]] std::string line(CellOf cell_of) const {
        std::string text;
        for (const std::size_t i : body_) {
            if (!text.empty()) text += std::string(gap_, ' ');
            text += table_.columns[i].number ? fmt::format("{:>{}}", cell_of(i), widths_[i])
                                             : fmt::format("{:<{}}", cell_of(i), widths_[i]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        return text + '\n';
    }
    [[nodiscard]] std::string header() const {
        const std::string units = line([this](std::size_t i) { return unit_text(i); });
        return line([this](std::size_t i) { return table_.columns[i].name; }) + (units == "\n" ? "" : units);
    }
    [[nodiscard]] std::string unit_text(std::size_t i) const {
        const std::string& unit = table_.columns[i].unit;
        return unit.empty() ? "" : '[' + unit + ']';
    }
    [[nodiscard]] std::vector<std::string> notes_of(const Row& row) const {
        std::string moved;
        for (const std::size_t i : below_)
            if (!row.cells[i].empty())
                moved += fmt::format("{}{}: {}{}{}", moved.empty() ? "" : "; ", table_.columns[i].name,
                                     core::printable(row.cells[i]), table_.columns[i].unit.empty() ? "" : " ",
                                     table_.columns[i].unit);
        std::vector<std::string> notes;
        if (!moved.empty()) notes.push_back(moved);
        for (const std::string& note : row.notes) notes.push_back(core::printable(note));
        return notes;
    }

    const Table& table_;
    std::size_t width_;
    std::size_t gap_ = 2;
    bool above_ = false;  // the columns that can be are in headings
    std::vector<std::size_t> widths_;
    std::vector<std::size_t> body_;  // columns, as numbers
    std::vector<std::size_t> below_;
};

}  // namespace

std::string Table::heading(const Row& row) const {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i)
        if (columns[i].narrow == Narrow::above && !row.cells[i].empty())
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", columns[i].name, row.cells[i]);
    return text;
}

void Table::drop_empty_columns() {
    for (std::size_t i = columns.size(); i-- > 0;) {
        if (std::ranges::any_of(rows, [i](const Row& row) { return !row.cells[i].empty(); })) continue;
        columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(i));
        for (Row& row : rows) row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    const std::string margin(indent, ' ');
    std::string lines;
    std::string line = margin;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        if (line.size() > indent && columns_in(line) + 1 + columns_in(word) > width) {
            lines += line + '\n';
            line = margin;
        }
        if (line.size() > indent) line += ' ';
        line += word;
    }
    return lines + line;
}

std::string table_text(const Table& table, std::size_t width) {
    return table.rows.empty() ? std::string{} : Layout(table, width).text();
}

}  // namespace weir::bench
