#include "web/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "web/openapi.hpp"
#include "web/tree.hpp"
#include "web/url.hpp"

namespace weir::web {

namespace {

using nlohmann::json;

constexpr std::string_view api_root = "/api/0.1/weir";

std::string_view below_root(const Request& request) {
    std::string_view path = request.path;
    path.remove_prefix(std::min(api_root.size(), path.size()));
    return path;
}

/// "application/json;metadata=true", in odin-control's convention.
bool wants_metadata(const Request& request) {
    std::string accepted(request.header("accept"));
    std::erase(accepted, ' ');
    return accepted.find(";metadata=true") != std::string::npos;
}

bool is_json(std::string_view content_type) {
    const std::string_view type = content_type.substr(0, content_type.find_first_of("; "));
    constexpr std::string_view accepted = "application/json";
    return std::ranges::equal(type, accepted, [](char a, char b) { return (a | 0x20) == (b | 0x20); });
}

/// "command/execute" with the command's name, or "command/NAME/execute" with true: the name. Empty if it is neither.
std::string command_in(std::string_view path, const json& value) {
    constexpr std::string_view begin = "command/";
    constexpr std::string_view end = "execute";
    if (!path.starts_with(begin) || !path.ends_with(end)) return {};
    const std::string_view name = path.substr(begin.size(), path.size() - begin.size() - end.size());
    if (name.empty()) return value.is_string() ? value.get<std::string>() : "";
    if (!name.ends_with('/') || value != true) return {};
    return std::string(name.substr(0, name.size() - 1));
}

bool is_command(const Changes::value_type& change) {
    return change.first.starts_with("command/");
}

}  // namespace

void Api::add_to(Routes& routes) const {
    const std::string root(api_root);
    routes.add("GET", "/api", [](const Request&) { return json_response({{"api", 0.1}}); });
    routes.add("GET", "/api/0.1/adapters", [](const Request&) {
        return json_response({{"adapters", json::array({"weir"})}});
    });
    routes.add("GET", root + "/openapi.json", [](const Request&) { return json_response(openapi_document()); });
    if (!options_.config_schema.is_null())
        routes.add("GET", root + "/config_schema.json",
                   [this](const Request&) { return json_response(options_.config_schema); });
    routes.add_below("GET", root, [this](const Request& request) { return get(request); });
    routes.add_below("PUT", root, [this](const Request& request) { return put(request); });
}

Response Api::get(const Request& request) const {
    const auto path = path_parts(below_root(request));
    if (!path) return error_response(400, "the path is not well-formed");
    const std::shared_ptr<const json> document = options_.document();
    const json* found = document ? find_in(*document, *path) : nullptr;
    if (found == nullptr) return error_response(404, fmt::format("there is nothing at {}", request.path));
    // odin-data's adapters name this one by its key, and fastcs-odin takes it in no other way.
    if (path->size() == 2 && path->front() == "command" && path->back() == "allowed")
        return json_response({{"allowed", *found}});
    return json_response(tree_answer(*found, *path, wants_metadata(request)));
}

Response Api::put(const Request& request) const {
    if (options_.controls == nullptr) return error_response(403, "read only: nothing can be changed here");
    const std::string_view type = request.header("content-type");
    if (!type.empty() && !is_json(type)) return error_response(415, "accepted: Content-Type: application/json");
    const auto parts = path_parts(below_root(request));
    if (!parts) return error_response(400, "the path is not well-formed");
    std::string path;
    for (const std::string_view part : *parts) path.append(path.empty() ? "" : "/").append(part);
    try {
        return apply(path, parse_bounded(request.body));
    } catch (const core::UsageError& error) {
        return error_response(400, error.what());
    }
}

/// Values first, then the command, if there is one: so one request may say what the next run is, and start it.
Response Api::apply(const std::string& path, const json& body) const {
    Changes changes = changes_of(path, body);
    if (changes.empty()) return error_response(400, "the body changes nothing");
    if (std::ranges::count_if(changes, is_command) > 1) return error_response(400, "one command at a time");
    std::stable_partition(changes.begin(), changes.end(), [](const auto& change) { return !is_command(change); });
    for (const auto& [at, value] : changes)
        if (const Controls::Outcome wrong = refusal(at, value); wrong.status >= 300)
            return error_response(wrong.status, wrong.message);
    std::string command;
    std::span<const Controls::Value> values = changes;
    if (is_command(changes.back())) {
        command = command_in(changes.back().first, changes.back().second);
        values = values.first(values.size() - 1);
    }
    const Controls::Outcome outcome = options_.controls->apply(values, command);
    if (outcome.status >= 300) return error_response(outcome.status, outcome.message);
    json answer = {{"value", changes.back().second}};
    if (!outcome.message.empty()) answer["message"] = outcome.message;
    return json_response(answer, outcome.status);
}

/// What is wrong with a change for whoever looks at the tree only.
Controls::Outcome Api::refusal(const std::string& path, const json& value) const {
    if (path.starts_with("config/") || !command_in(path, value).empty()) return {};
    if (path.starts_with("command/"))
        return {400, "accepted: the name of a command for command/execute, true for command/NAME/execute"};
    const auto parts = path_parts(path);
    const std::shared_ptr<const json> document = options_.document();
    if (!parts || !document || find_in(*document, *parts) == nullptr)
        return {404, fmt::format("there is nothing at {}", path)};
    return {400, fmt::format("{} is read-only; accepted: command/... and config/...", path.empty() ? "this" : path)};
}

}  // namespace weir::web
