#include "web/gate.hpp"

#include <nlohmann/json.hpp>

#include "web/url.hpp"

namespace weir::web {

bool cross_site(const Request& request) {
    const std::string_view origin = request.header("origin");
    if (origin.empty()) return false;
    const std::size_t scheme = origin.find("://");
    if (scheme == std::string_view::npos) return true;  // "null", say
    const auto from = parse_host_port(origin.substr(scheme + 3));
    if (!from) return true;
    // A reverse proxy says in X-Forwarded-Host what it was called. No foreign page can: a browser asks first whether it
    // may send such a header, and nothing here says so.
    for (const char* name : {"host", "x-forwarded-host"})
        if (parse_host_port(request.header(name)) == from) return false;
    return true;
}

/// A foreign page can have its own name resolve to 127.0.0.1 (DNS rebinding). Then the browser lets it read the answers
/// of whatever listens there, and the name in Host is all that tells.
bool Gate::known_host(const Request& request) const {
    const std::string_view given = request.header("host");
    if (!loopback_ || given.empty()) return true;
    const auto host = parse_host_port(given);
    return host &&
           (host->host == "localhost" || host->host == "127.0.0.1" || host->host == "::1" || host->host == host_);
}

std::optional<Response> Gate::refusal(const Request& request, TokenGuard::Clock::time_point now) const {
    if (request.local) return {};
    if (!known_host(request))
        return error_response(403, "the Host of this request is not this one's: localhost, 127.0.0.1 or [::1]");
    if (!request.changes()) return {};
    if (cross_site(request)) return error_response(403, "this request is from a page of another server");
    if (guard_ == nullptr) return error_response(403, "nothing can be changed over TCP");
    return guard_->refusal(request, now);
}

}  // namespace weir::web
