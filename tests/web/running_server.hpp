// A whole server at a port and a UNIX socket, with a document, controls, a feed and a token.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "../temporary_directory.hpp"
#include "fake_controls.hpp"
#include "raw_client.hpp"
#include "web/api.hpp"
#include "web/server.hpp"

namespace weir::web::test {

class RunningServer : public ::testing::Test {
protected:
    void start(Daemon::Limits limits = {}) {
        std::ofstream(folder_ / "token") << "right\n";
        ASSERT_EQ(::chmod((folder_ / "token").c_str(), 0600), 0);
        Routes routes;
        api_.add_to(routes);
        routes.add_feed("/events", feed_);
        routes.add("GET", "/large", [large = std::string(32U << 20U, 'x')](const Request&) {
            return text_response(large, "text/plain");
        });
        routes.add("GET", "/query", [](const Request& request) {
            const auto found = request.query.find("a");
            return text_response(found == request.query.end() ? "none" : found->second, "text/plain");
        });
        server_ = std::make_unique<Server>(
            Server::Options{
                .listen = "127.0.0.1:0", .sockets = {socket_}, .limits = limits, .guard = &guard_, .feeds = {&feed_}},
            std::move(routes));
    }
    [[nodiscard]] RawClient tcp() const { return RawClient(server_->port()); }
    [[nodiscard]] RawClient local() const { return RawClient(socket_); }

    /// The whole answer to a request whose connection is closed after it.
    static std::string answer(RawClient client, const std::string& line, const std::string& headers = "",
                              const std::string& body = "") {
        client.send(line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
                    (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
        return client.read_all();
    }
    static int status_of(const std::string& answer) {
        return answer.starts_with("HTTP/1.") ? std::stoi(answer.substr(9, 3)) : 0;
    }
    static std::string put_header(const std::string& token = "") {
        return "Content-Type: application/json\r\n" + (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n");
    }

    weir::test::TemporaryDirectory folder_;
    std::string socket_ = folder_ / "weir.sock";
    TokenGuard guard_{folder_ / "token"};
    EventFeed feed_{"state", {.updates_per_s = 1000, .heartbeat = std::chrono::hours(1)}};
    FakeControls controls_;
    std::shared_ptr<const nlohmann::json> document_ =
        std::make_shared<nlohmann::json>(nlohmann::json{{"status", {{"state", "idle"}}}});
    Api api_{{.document = [this] { return document_; }, .controls = &controls_, .config_schema = {}}};
    std::unique_ptr<Server> server_;
};

}  // namespace weir::web::test
