#include "web/routes.hpp"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "core/print_stderr.hpp"

namespace weir::web {

void Routes::add(std::string method, std::string path, Handler handler) {
    routes_.push_back({std::move(method), std::move(path), false, std::move(handler)});
}

void Routes::add_below(std::string method, std::string path, Handler handler) {
    routes_.push_back({std::move(method), std::move(path), true, std::move(handler)});
}

void Routes::add(std::span<const Asset> assets) {
    for (const Asset& asset : assets) {
        Response response = text_response(std::string(asset.bytes), std::string(asset.type));
        response.headers.emplace_back("Cache-Control", "no-cache");
        add("GET", std::string(asset.path), [response](const Request&) { return response; });
    }
}

void Routes::add_feed(std::string path, EventFeed& feed) {
    add("GET", std::move(path), [&feed](const Request&) {
        Response response = text_response("", "text/event-stream");
        response.feed = &feed;
        return response;
    });
}

bool Routes::fits(const Route& route, const std::string& path) {
    if (!path.starts_with(route.path)) return false;
    return path.size() == route.path.size() || (route.below && path[route.path.size()] == '/');
}

Response Routes::answer(const Request& request) const {
    const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    std::string there;
    for (const Route& route : routes_) {
        if (!fits(route, request.path)) continue;
        if (route.method == method) try {
                return route.handler(request);
            } catch (const std::exception& error) {
                core::print_stderr("weir: {} {}: {}\n", request.method, request.path, error.what());
                return error_response(500, error.what());
            }
        if (there.find(route.method) == std::string::npos) there += (there.empty() ? "" : ", ") + route.method;
    }
    if (there.empty()) return error_response(404, fmt::format("there is nothing at {}", request.path));
    Response response =
        error_response(405, fmt::format("{} does not take {}; accepted: {}", request.path, request.method, there));
    response.headers.emplace_back("Allow", there);
    return response;
}

}  // namespace weir::web
