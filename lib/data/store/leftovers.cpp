#include "store/leftovers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <regex>
#include <string_view>

namespace weir::store {

namespace {

std::string literally(std::string_view text) {
    std::string pattern;
    for (const char c : text) {
        if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) pattern += '\\';
        pattern += c;
    }
    return pattern;
}

/// What a component of a template can become. The template is a good one: it has been expanded before.
std::string pattern_of(std::string_view component, const std::string& name, const std::string& node) {
    std::string pattern;
    while (!component.empty()) {
        const std::size_t brace = component.find('{');
        pattern += literally(component.substr(0, brace));
        if (brace == std::string_view::npos) break;
        const std::size_t end = component.find('}', brace);
        const std::string_view placeholder = component.substr(brace + 1, end - brace - 1);
        if (placeholder == "name")
            pattern += literally(name);
        else if (placeholder == "node")
            pattern += literally(node);
        else
            pattern += placeholder == "date" ? "\\d{4}-\\d{2}-\\d{2}" : "\\d+";
        component.remove_prefix(end + 1);
    }
    // The flight recorder numbers its files.
    for (const std::string_view ending : {"\\.pcapng", "\\.pcapng\\.zst"})
        if (pattern.ends_with(ending))
            return pattern.substr(0, pattern.size() - ending.size()) + "(-\\d{4,})?" + std::string(ending);
    return pattern;
}

std::vector<std::filesystem::path> entries_like(const std::filesystem::path& folder, const std::string& pattern) {
    std::vector<std::filesystem::path> found;
    const std::regex expression(pattern);
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
         entry.increment(error))
        if (std::regex_match(entry->path().filename().string(), expression)) found.push_back(entry->path().filename());
    return found;
}

}  // namespace

std::vector<std::filesystem::path> find_leftovers(const std::string& path_template, const std::string& name,
                                                  const std::string& node) {
    if (path_template.find("{run") == std::string::npos) return {};
    std::filesystem::path parts(path_template);
    if (!parts.has_filename()) parts = parts.parent_path();
    std::vector<std::filesystem::path> folders{{}};
    for (const std::filesystem::path& part : parts.parent_path()) {
        std::vector<std::filesystem::path> next;
        for (const std::filesystem::path& folder : folders) {
            if (part.string().find('{') == std::string::npos)
                next.push_back(folder / part);
            else
                for (const std::filesystem::path& entry : entries_like(folder, pattern_of(part.string(), name, node)))
                    next.push_back(folder / entry);
        }
        folders = std::move(next);
    }
    const std::string pattern = fmt::format("\\.({})\\.part", pattern_of(parts.filename().string(), name, node));
    std::vector<std::filesystem::path> found;
    for (const std::filesystem::path& folder : folders)
        for (const std::filesystem::path& entry : entries_like(folder, pattern)) {
            constexpr std::size_t dot = 1;
            const std::size_t around = dot + std::string_view(".part").size();
            const std::string hidden = entry.string();
            found.push_back(folder / hidden.substr(dot, hidden.size() - around));
        }
    std::ranges::sort(found);
    return found;
}

}  // namespace weir::store
