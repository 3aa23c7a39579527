#include "options/reference.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::options {

std::string markdown(const ReferenceTable& table) {
    std::string out = fmt::format("| {} | kind | default | meaning |\n|---|---|---|---|\n", table.title);
    for (const Explained& key : table.keys)
        out += fmt::format("| `{}` | {} | {} | {} |\n", key.key, key.kind, key.fallback, key.meaning);
    return out;
}

std::string filled_in(std::string_view page, const Reference& reference) {
    constexpr std::string_view begin = "<!-- keys ";
    constexpr std::string_view close = " -->\n";
    constexpr std::string_view end = "<!-- end -->";
    std::string out;
    std::vector<std::string_view> found;
    std::size_t at = 0;
    for (std::size_t mark = page.find(begin); mark != std::string_view::npos; mark = page.find(begin, at)) {
        const std::size_t name_end = page.find(close, mark);
        const std::size_t stop = page.find(end, mark);
        if (name_end == std::string_view::npos || stop == std::string_view::npos || stop < name_end)
            throw core::UsageError("a table of keys begins and does not end");
        const std::string_view name = page.substr(mark + begin.size(), name_end - mark - begin.size());
        const auto table = std::ranges::find(reference, name, &ReferenceTable::name);
        if (table == reference.end()) throw core::UsageError(fmt::format("there is no table of keys '{}'", name));
        found.push_back(name);
        out += page.substr(at, name_end + close.size() - at);
        out += markdown(*table);
        at = stop;
    }
    for (const ReferenceTable& table : reference)
        if (std::ranges::find(found, table.name) == found.end())
            throw core::UsageError(fmt::format("the page has no place for the keys of '{}'", table.name));
    return out + std::string(page.substr(at));
}

}  // namespace weir::options
