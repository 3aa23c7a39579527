// What is refused before anything looks at it: requests that a foreign web page made a browser send, and changes by
// those who may not.
#pragma once

#include <optional>
#include <string>

#include "web/request.hpp"
#include "web/token_guard.hpp"

namespace weir::web {

class Gate {
public:
    /// `host` is the configured one; `loopback`: only this host can connect. `guard` may be null, then nobody changes
    /// anything over TCP. It must outlive the gate.
    Gate(std::string host, bool loopback, TokenGuard* guard)
        : host_(std::move(host)), loopback_(loopback), guard_(guard) {}

    /// Nothing if the request may pass. Over a UNIX socket everything may: the file's mode has decided.
    [[nodiscard]] std::optional<Response> refusal(const Request& request, TokenGuard::Clock::time_point now) const;

private:
    [[nodiscard]] bool known_host(const Request& request) const;

    std::string host_;
    bool loopback_;
    TokenGuard* guard_;
};

/// A browser says that it comes from a page of another server.
[[nodiscard]] bool cross_site(const Request& request);

}  // namespace weir::web
