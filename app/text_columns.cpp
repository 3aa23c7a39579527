#include "text_columns.hpp"

#include <algorithm>

namespace weir::app {

std::size_t columns_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string cut_to(std::string_view text, std::size_t columns) {
    if (columns_in(text) <= columns) return std::string(text);
    std::string out;
    std::size_t taken = 0;
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U && ++taken > columns - std::min<std::size_t>(columns, 2))
            break;
        out += c;
    }
    return columns < 2 ? std::string() : out + "..";
}

std::string padded(std::string_view text, std::size_t columns, bool right) {
    std::string out = cut_to(text, columns);
    const std::string space(columns - std::min(columns, columns_in(out)), ' ');
    return right ? space + out : out + space;
}

}  // namespace weir::app
