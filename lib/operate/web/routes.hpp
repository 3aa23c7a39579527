// Which handler answers what.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "web/asset.hpp"
#include "web/request.hpp"

namespace weir::web {

class Routes {
public:
    /// Exactly this path.
    void add(std::string method, std::string path, Handler handler);
    /// This path and what is below it.
    void add_below(std::string method, std::string path, Handler handler);
    /// GET of each, kept by no cache without asking again.
    void add(std::span<const Asset> assets);
    /// GET of the updates of a feed, which must outlive the server, as text/event-stream.
    void add_feed(std::string path, EventFeed& feed);

    /// 404 if there is nothing, 405 with what there is. A handler of GET answers HEAD, too. What a handler throws is a
    /// 500.
    [[nodiscard]] Response answer(const Request& request) const;

private:
    struct Route {
        std::string method;
        std::string path;
        bool below = false;
        Handler handler;
    };
    [[nodiscard]] static bool fits(const Route& route, const std::string& path);

    std::vector<Route> routes_;
};

}  // namespace weir::web
