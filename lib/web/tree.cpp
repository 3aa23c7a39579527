#include "web/tree.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/foreign_json.hpp"

namespace weir::web {

namespace {

using nlohmann::json;

constexpr std::size_t levels_max = 16;

const char* type_name(const json& value) {
    if (value.is_boolean()) return "bool";
    if (value.is_number_float()) return "float";
    if (value.is_number()) return "int";
    return value.is_string() ? "str" : nullptr;
}

/// Documents are made by weir, and no deeper than they are written down; see WATCH_API.md.
json with_types(const json& value, bool writeable) {
    if (value.is_object()) {
        json out = json::object();
        for (const auto& [key, inner] : value.items()) out[key] = with_types(inner, writeable || key == "config");
        return out;
    }
    if (value.is_array()) {
        json out = json::array();
        for (const json& inner : value) out.push_back(inner.is_object() ? with_types(inner, writeable) : inner);
        return out;
    }
    const char* type = type_name(value);
    return type == nullptr ? value : json{{"value", value}, {"type", type}, {"writeable", writeable}};
}

void collect_changes(const std::string& path, const json& body, Changes& out) {
    if (body.is_object() && body.size() == 1 && body.contains("value"))
        return collect_changes(path, body.at("value"), out);
    if (!body.is_object()) {
        out.emplace_back(path, body);
        return;
    }
    for (const auto& [key, inner] : body.items()) collect_changes(path.empty() ? key : path + "/" + key, inner, out);
}

}  // namespace

const json* find_in(const json& document, std::span<const std::string_view> path) {
    const json* at = &document;
    for (const std::string_view part : path) {
        if (at->is_object()) {
            const auto found = at->find(part);
            if (found == at->end()) return nullptr;
            at = &*found;
        } else if (at->is_array()) {
            std::size_t index = 0;
            const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
            if (error != std::errc() || end != part.data() + part.size() || index >= at->size()) return nullptr;
            at = &(*at)[index];
        } else {
            return nullptr;
        }
    }
    return at;
}

json tree_answer(const json& found, std::span<const std::string_view> path, bool with_metadata) {
    const bool writeable = std::ranges::find(path, "config") != path.end();
    json out = with_metadata ? with_types(found, writeable) : found;
    return out.is_object() ? out : json{{"value", std::move(out)}};
}

json parse_bounded(std::string_view text) {
    if (core::json_levels(text) > levels_max) throw core::UsageError("the body is nested more than 16 levels deep");
    if (std::optional<json> read = core::read_json(text)) return *std::move(read);
    throw core::UsageError("the body is not JSON");
}

Changes changes_of(const std::string& path, const json& body) {
    Changes out;
    collect_changes(path, body, out);
    return out;
}

}  // namespace weir::web
