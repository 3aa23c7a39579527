#include "doctor/page.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/error.hpp"
#include "doctor/check.hpp"
#include "doctor/sizing.hpp"

namespace weir::doctor {

namespace {

std::string part_named(std::string_view name) {
    if (name == "checks") return checks_markdown();
    if (name == "sizing") return sizing_markdown(std::nullopt);
    if (name == "basis") return sizing_basis() + "\n";
    throw core::UsageError(fmt::format("there is no part '{}'; accepted: checks, sizing or basis", name));
}

}  // namespace

std::string filled_page(std::string_view page) {
    constexpr std::string_view begin = "<!-- doctor ";
    constexpr std::string_view close = " -->\n";
    constexpr std::string_view end = "<!-- end -->";
    std::string out;
    std::size_t at = 0;
    for (std::size_t mark = page.find(begin); mark != std::string_view::npos; mark = page.find(begin, at)) {
        const std::size_t name_end = page.find(close, mark);
        const std::size_t stop = page.find(end, mark);
        if (name_end == std::string_view::npos || stop == std::string_view::npos || stop < name_end)
            throw core::UsageError("a part of the page begins and does not end");
        out += page.substr(at, name_end + close.size() - at);
        out += part_named(page.substr(mark + begin.size(), name_end - mark - begin.size()));
        at = stop;
    }
    if (at == 0) throw core::UsageError("the page has no place for a table of weir doctor");
    return out + std::string(page.substr(at));
}

}  // namespace weir::doctor
