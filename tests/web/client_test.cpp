#include "web/client.hpp"

#include <cstdlib>

#include "core/error.hpp"
#include "running_server.hpp"

namespace weir::web::test {
namespace {

class ClientTest : public RunningServer {
protected:
    void SetUp() override { start(); }
};

TEST_F(ClientTest, ReadsOverBothAndChangesOverTheUnixSocket) {
    Client over_tcp({.url = server_->urls().front()});
    Client over_socket({.socket = socket_});
    for (Client* client : {&over_tcp, &over_socket}) {
        EXPECT_EQ(client->get("").body, *document_);
        EXPECT_EQ(client->get("status/state").body, nlohmann::json({{"value", "idle"}}));
        EXPECT_EQ(client->get("/api").body, nlohmann::json({{"api", 0.1}}));
        EXPECT_EQ(client->get("none").status, 404);
        EXPECT_EQ(client->get("none").error(), "there is nothing at /api/0.1/weir/none");
    }
    EXPECT_EQ(over_socket.put("command/execute", "start").status, 202);
    EXPECT_EQ(over_tcp.put("command/execute", "start").status, 401);
    Client with_token({.url = server_->urls().front(), .token = "right"});
    EXPECT_EQ(with_token.put("command/execute", "start").status, 202);
    EXPECT_TRUE(with_token.put("config/comment", "x").good());
}

TEST_F(ClientTest, SaysWhoDoesNotAnswer) {
    server_.reset();
    Client client({.socket = socket_});
    try {
        static_cast<void>(client.get(""));
        FAIL() << "nobody is there";
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find(socket_), std::string::npos) << error.what();
    }
    Client of_nonsense({.url = "file:///etc/passwd"});
    EXPECT_THROW(static_cast<void>(of_nonsense.get("/")), core::RunError);
}

TEST_F(ClientTest, ATokenFileIsNotForEverybody) {
    EXPECT_EQ(token_in(folder_ / "token"), "right");
    ASSERT_EQ(::chmod((folder_ / "token").c_str(), 0644), 0);
    EXPECT_THROW(static_cast<void>(token_in(folder_ / "token")), core::UsageError);
    EXPECT_THROW(static_cast<void>(token_in(folder_ / "none")), core::UsageError);
}

}  // namespace
}  // namespace weir::web::test
