// A request as handlers see it, and what they answer: plain data, so that they can be tried without a server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::web {

class EventFeed;

struct Request {
    std::string method{};  ///< "GET", "PUT"
    std::string path{};    ///< decoded, without the query; begins with '/'
    std::map<std::string, std::string, std::less<>> query{};
    std::map<std::string, std::string, std::less<>> headers{};  ///< names in lower case
    std::string body{};
    std::string peer{};  ///< its IP address; empty over a UNIX socket
    bool local = false;  ///< over a UNIX socket: whoever may open it may do everything

    /// Empty if there is none of this name, which is in lower case.
    [[nodiscard]] std::string_view header(std::string_view name) const;
    /// Neither GET nor HEAD: it may change something.
    [[nodiscard]] bool changes() const { return method != "GET" && method != "HEAD"; }
};

struct Response {
    int status = 200;
    std::string type = "application/json";
    /// Several may be sent the same at once.
    std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
    std::vector<std::pair<std::string, std::string>> headers{};
    /// If set, what is answered is the updates of this feed, without an end; `body` is not used.
    EventFeed* feed = nullptr;
};

[[nodiscard]] Response text_response(std::string text, std::string type, int status = 200);
/// What is not UTF-8 in it (a path, say) is replaced.
[[nodiscard]] Response json_response(const nlohmann::json& value, int status = 200);
/// {"error": "..."}.
[[nodiscard]] Response error_response(int status, std::string_view why);

using Handler = std::function<Response(const Request&)>;

}  // namespace weir::web
