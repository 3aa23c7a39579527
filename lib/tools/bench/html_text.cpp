#include "bench/html_text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "bench/number_text.hpp"
#include "core/printable.hpp"

namespace weir::bench {
namespace {

/// All but those that are in headings: on a telephone they would leave no room for numbers.
std::vector<std::size_t> shown_columns(const Table& table) {
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].narrow != Narrow::above) shown.push_back(i);
    return shown;
}

std::string head_cell(const Column& column) {
    return fmt::format("<th scope=\"col\"{}>{}{}</th>", column.number ? " class=\"n\"" : "", escaped(column.name),
                       column.unit.empty() ? "" : "<small>[" + escaped(column.unit) + "]</small>");
}

std::string across_row(std::string_view style, std::size_t columns, const std::string& content) {
    return fmt::format("<tr class=\"{}\"><td colspan=\"{}\"><div>{}</div></td></tr>\n", style, columns, content);
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : core::printable(text)) switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            case '\'':
                safe += "&#39;";
                break;
            default:
                safe += c;
        }
    return safe;
}

std::string html_table(const Table& table) {
    const std::vector<std::size_t> shown = shown_columns(table);
    std::string html = "<div class=\"box\" tabindex=\"0\"><table>\n<thead><tr>";
    for (const std::size_t i : shown) html += head_cell(table.columns[i]);
    html += "</tr></thead>\n<tbody>\n";
    std::string heading;
    for (const Row& row : table.rows) {
        if (const std::string next = table.heading(row); next != heading) {
            html += across_row("heading", shown.size(), "<p>" + escaped(next) + "</p>");
            heading = next;
        }
        html += "<tr>";
        for (const std::size_t i : shown)
            html += fmt::format("<td{}>{}</td>", table.columns[i].number ? " class=\"n\"" : "", escaped(row.cells[i]));
        html += "</tr>\n";
        std::string notes;
        for (const std::string& note : row.notes) notes += "<p>" + escaped(note) + "</p>";
        if (!notes.empty()) html += across_row("notes", shown.size(), notes);
    }
    return html + "</tbody></table></div>\n";
}

}  // namespace weir::bench
