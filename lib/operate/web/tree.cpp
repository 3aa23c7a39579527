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
        for (const auto& [key, inner] : value.items())
            out[tree_name(key)] = with_types(inner, writeable || key == "config");
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

/// The same document with the tree's names.
json with_tree_names(const json& value) {
    if (value.is_array()) {
        json out = json::array();
        for (const json& inner : value) out.push_back(with_tree_names(inner));
        return out;
    }
    if (!value.is_object()) return value;
    json out = json::object();
    for (const auto& [key, inner] : value.items()) out[tree_name(key)] = with_tree_names(inner);
    return out;
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

std::string tree_name(std::string_view name) {
    std::string out(name);
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::ranges::replace_if(
        out, [&](char c) { return !fits(c); }, '_');
    return out;
}

const json* find_in(const json& document, std::span<const std::string_view> path) {
    const json* at = &document;
    for (const std::string_view part : path) {
        if (at->is_object()) {
            auto found = at->find(part);
            for (auto other = at->begin(); found == at->end() && other != at->end(); ++other)
                if (tree_name(other.key()) == part) found = other;
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
    json out = with_metadata ? with_types(found, writeable) : with_tree_names(found);
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
