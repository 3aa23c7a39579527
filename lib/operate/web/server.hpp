// The HTTP server.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "web/daemon.hpp"
#include "web/event_feed.hpp"
#include "web/routes.hpp"
#include "web/token_guard.hpp"

namespace weir::web {

/// Answers by a table of handlers, from its construction to its end:
///
///     web::TokenGuard guard(serve.token_file);
///     web::EventFeed feed;                                       // feed.publish(text), a few times a second
///     web::Api api({.document = [&board] { ... }, .controls = &controls, .config_schema = config::config_schema()});
///     web::Routes routes;
///     api.add_to(routes);
///     routes.add(web::page_assets());
///     routes.add_feed("/events", feed);
///     routes.add("GET", "/metrics", [&](const web::Request&) { return web::text_response(..., "text/plain"); });
///     web::Server server({.listen = serve.listen, .sockets = {socket}, .limits = {.connections = serve.connections},
///                         .guard = &guard, .feeds = {&feed}}, std::move(routes));
///     core::print_stderr("watch at {}\n", server.urls().front());
///
/// Handlers are called by a thread for each address that is listened at, so by several at a time, and must not block.
/// These threads get the CPUs of the one that makes the server. What handlers use must outlive it.
class Server {
public:
    struct Options {
        std::string listen{};                ///< "HOST:PORT", "[V6]:PORT", "unix:/path"; empty: only `sockets`
        std::vector<std::string> sockets{};  ///< paths of UNIX sockets
        Daemon::Limits limits{};          ///< each address has its own connections: the page cannot lock out `weir ctl`
        TokenGuard* guard = nullptr;      ///< null: nobody changes anything over TCP
        std::vector<EventFeed*> feeds{};  ///< of `routes`: they are closed at the end
    };
    struct Counts {
        Connections::Counts connections;
        std::uint64_t requests = 0;
    };

    /// Throws core::UsageError or core::RunError, see Listener.
    Server(Options options, Routes routes);
    /// Does not wait for viewers, nor for slow clients.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// The TCP port; 0: none.
    [[nodiscard]] std::uint16_t port() const;
    /// Where it listens, as it is written: "http://127.0.0.1:9321", "unix:/run/weir/det.sock".
    [[nodiscard]] std::vector<std::string> urls() const;
    [[nodiscard]] Counts counts() const;

private:
    void watch();

    const Options options_;
    const Routes routes_;
    std::vector<std::unique_ptr<Daemon>> daemons_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool ending_ = false;
    std::thread watching_;
};

}  // namespace weir::web
