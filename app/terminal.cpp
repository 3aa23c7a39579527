// See terminal.hpp.
#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <vector>

namespace weir::app {

namespace {

std::size_t indent_of(std::string_view line) {
    return std::min(line.find_first_not_of(' '), line.size());
}

/// Appends `words` after `indent` spaces, in as many lines as it takes. `broken` ends a line that another one follows.
void put_wrapped(std::string& out, std::string_view words, std::size_t indent, std::size_t hang, std::size_t columns,
                 std::string_view broken = "") {
    const std::string margin(indent + hang, ' ');
    out += std::string(indent, ' ');
    std::size_t room = columns > indent ? columns - indent : 1;
    while (words.size() > room) {
        const std::size_t last = room > broken.size() ? room - broken.size() : 0;
        std::size_t end = broken.empty() ? std::string_view::npos : words.rfind(" --", last);
        if (end == std::string_view::npos || end == 0) end = words.rfind(' ', last);
        if (end == std::string_view::npos || end == 0) end = words.find(' ');
        if (end == std::string_view::npos) break;
        const std::string_view line = words.substr(0, end);
        out += line.substr(0, line.find_last_not_of(' ') + 1);
        out += broken;
        out += '\n' + margin;
        words.remove_prefix(std::min(words.find_first_not_of(' ', end), words.size()));
        room = columns > margin.size() ? columns - margin.size() : 1;
    }
    out += words;
    out += '\n';
}

/// A line of help text with those that go on with it.
struct Item {
    std::string lines;  ///< as they were written
    std::string first;  ///< the first column, or all of it
    std::string second;
    std::size_t indent = 0;
    std::size_t column = 0;  ///< where the second column begins; 0: there is none
    bool fits = true;

    [[nodiscard]] bool is_prose() const {
        return indent == 0 && column == 0 && !first.empty() && !first.starts_with("usage:");
    }
    [[nodiscard]] bool goes_on_with(const Item& next) const {
        if (first.ends_with('\\')) return true;
        if (column != 0) return next.indent == column;
        return is_prose() && next.is_prose() && !first.ends_with(':');
    }
    void append(const Item& next) {
        lines += next.lines;
        if (first.ends_with('\\')) first.erase(first.find_last_not_of("\\ ") + 1);
        (column != 0 ? second : first) += " " + next.first + (next.column != 0 ? "  " + next.second : "");
        fits = fits && next.fits;
    }
};

Item item_of(std::string_view line, std::size_t columns) {
    Item item{std::string(line) + "\n", {}, {}, indent_of(line), 0, line.size() <= columns};
    const std::size_t gap = line.find("  ", item.indent);
    const std::size_t second = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
    item.first = line.substr(item.indent, gap == std::string_view::npos ? gap : gap - item.indent);
    if (second == std::string_view::npos) return item;
    item.second = line.substr(second);
    item.column = second;
    return item;
}

void put_item(std::string& out, const Item& item, std::size_t columns) {
    if (item.fits) {
        out += item.lines;
        return;
    }
    const bool command = item.first.starts_with("weir ");
    const std::size_t hang = command || item.first.starts_with("usage:") ? 4 : 0;
    if (item.column == 0 || item.column > columns / 2) {
        put_wrapped(out, item.first, item.indent, hang, columns, command ? " \\" : "");
        if (!item.second.empty()) put_wrapped(out, item.second, item.indent + 4, 0, columns);
        return;
    }
    std::string line = item.first;
    line.resize(std::max(line.size() + 2, item.column - item.indent), ' ');
    put_wrapped(out, line + item.second, item.indent, item.column - item.indent, columns);
}

}  // namespace

std::size_t columns_of(int descriptor) {
    constexpr std::size_t least = 40;
    winsize size{};
    if (::isatty(descriptor) != 1 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return usual_columns;
    return std::max<std::size_t>(size.ws_col, least);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        const bool ended = end < text.size();
        const std::size_t indent = indent_of(line);
        put_wrapped(out, line.substr(indent), indent, hang, columns);
        if (!ended) out.pop_back();
        text.remove_prefix(end + (ended ? 1 : 0));
    }
    return out;
}

std::string laid_out(std::string_view text, std::size_t columns) {
    std::vector<Item> items;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        Item item = item_of(text.substr(0, end), columns);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!items.empty() && items.back().goes_on_with(item))
            items.back().append(item);
        else
            items.push_back(std::move(item));
    }
    std::string out;
    for (const Item& item : items) put_item(out, item, columns);
    return out;
}

boost::program_options::options_description options_for_terminal(const std::string& caption) {
    const auto columns = static_cast<unsigned>(columns_of(STDOUT_FILENO));
    return {caption, columns, columns / 2};
}

void print_help(std::string_view intro, const boost::program_options::options_description& options,
                std::string_view after) {
    const std::size_t columns = columns_of(STDOUT_FILENO);
    std::cout << laid_out(intro, columns) << options << laid_out(after, columns);
}

}  // namespace weir::app
