// What a well-behaved client gets.
#include "web/server.hpp"

#include "running_server.hpp"

namespace weir::web::test {
namespace {

class ServerTest : public RunningServer {
protected:
    void SetUp() override { start(); }
};

TEST_F(ServerTest, AnswersOverTcpAndOverItsUnixSocket) {
    for (const bool over_tcp : {true, false}) {
        const std::string text = answer(over_tcp ? tcp() : local(), "GET /api/0.1/weir/status/state");
        EXPECT_EQ(status_of(text), 200);
        EXPECT_NE(text.find("{\"value\":\"idle\"}"), std::string::npos) << text;
    }
    EXPECT_EQ(server_->urls(),
              (std::vector<std::string>{"http://127.0.0.1:" + std::to_string(server_->port()), "unix:" + socket_}));
    EXPECT_EQ(server_->counts().requests, 2U);
    EXPECT_EQ(server_->counts().connections.accepted, 2U);
}

TEST_F(ServerTest, ForbidsBrowsersEverythingThatThePageDoesNotNeed) {
    for (const char* path : {"/api", "/nothing"}) {
        const std::string text = answer(tcp(), std::string("GET ") + path);
        for (const char* header :
             {"Content-Security-Policy: default-src 'none'; script-src 'self';", "X-Content-Type-Options: nosniff",
              "Referrer-Policy: no-referrer", "Cache-Control: no-store", "frame-ancestors 'none'"})
            EXPECT_NE(text.find(header), std::string::npos) << header << "\n" << text;
        EXPECT_EQ(text.find("Access-Control-"), std::string::npos);
    }
}

TEST_F(ServerTest, KeepsAConnectionForFurtherRequests) {
    RawClient client = tcp();
    for (int i = 0; i < 3; ++i) {
        client.send("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_NE(client.read_until("{\"api\":0.1}\n"), "");
    }
    client.send("HEAD /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(client.read_until("\r\n\r\n").find("Content-Length: 33554432"), std::string::npos);
    client.send("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(client.read_until("{\"api\":0.1}\n").find("200 OK"), std::string::npos);
    EXPECT_EQ(server_->counts().connections.accepted, 1U);
}

TEST_F(ServerTest, DecodesPathAndQuery) {
    EXPECT_EQ(status_of(answer(tcp(), "GET /api/0.1/weir/st%61tus")), 200);
    EXPECT_NE(answer(tcp(), "GET /query?b=1&a=x%20y").find("\r\n\r\nx y"), std::string::npos);
    EXPECT_EQ(status_of(answer(tcp(), "GET /api/0.1/weir/%zz")), 400);
    EXPECT_EQ(status_of(answer(tcp(), "GET /api/0.1/weir/status%00")), 400);
}

TEST_F(ServerTest, ChangesNeedTheTokenOverTcpAndNoneOverTheUnixSocket) {
    const std::string line = "PUT /api/0.1/weir/command/execute";
    EXPECT_EQ(status_of(answer(tcp(), line, put_header(), "\"start\"")), 401);
    EXPECT_EQ(status_of(answer(tcp(), line, put_header("wrong"), "\"start\"")), 401);
    EXPECT_TRUE(controls_.calls().empty());
    EXPECT_EQ(status_of(answer(tcp(), line, put_header("right"), "\"start\"")), 202);
    EXPECT_EQ(status_of(answer(local(), line, put_header(), "\"start\"")), 202);
    EXPECT_EQ(controls_.calls().size(), 2U);
}

TEST_F(ServerTest, WrongTokensAreLimitedPerAddress) {
    const std::string line = "PUT /api/0.1/weir/command/execute";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(status_of(answer(tcp(), line, put_header("wrong"), "\"start\"")), 401);
    const std::string text = answer(tcp(), line, put_header("right"), "\"start\"");
    EXPECT_EQ(status_of(text), 429);
    EXPECT_NE(text.find("Retry-After: "), std::string::npos);
    EXPECT_EQ(status_of(answer(tcp(), "GET /api")), 200);
    EXPECT_TRUE(controls_.calls().empty());
}

TEST_F(ServerTest, ForeignPagesAreRefused) {
    const std::string line = "PUT /api/0.1/weir/command/execute";
    EXPECT_EQ(status_of(answer(tcp(), line, put_header("right") + "Origin: http://evil.example\r\n", "\"start\"")),
              403);
    EXPECT_TRUE(controls_.calls().empty());
    RawClient rebound = tcp();
    rebound.send("GET /api HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(status_of(rebound.read_all()), 403);
    EXPECT_EQ(status_of(answer(tcp(), "OPTIONS /api/0.1/weir", "Origin: http://evil.example\r\n")), 403);
}

TEST_F(ServerTest, ABodyMayHave64KiB) {
    const auto comment = [&](std::size_t bytes) {
        return status_of(answer(tcp(), "PUT /api/0.1/weir/config/comment", put_header("right"),
                                "\"" + std::string(bytes - 2, 'x') + "\""));
    };
    EXPECT_EQ(comment(64U << 10U), 200);
    EXPECT_EQ(comment((64U << 10U) + 1), 413);
    EXPECT_EQ(comment(1U << 20U), 413);
    EXPECT_EQ(controls_.calls().size(), 1U);
}

TEST_F(ServerTest, ABodyInPiecesHasTheSameLimit) {
    const auto chunked = [&](std::size_t chunks) {
        RawClient client = tcp();
        client.send("PUT /api/0.1/weir/config/comment HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                    put_header("right") + "Transfer-Encoding: chunked\r\n\r\n1\r\n\"\r\n");
        for (std::size_t i = 0; i < chunks; ++i)
            if (!client.send("400\r\n" + std::string(1024, 'x') + "\r\n")) break;
        client.send("1\r\n\"\r\n0\r\n\r\n");
        return status_of(client.read_all());
    };
    EXPECT_EQ(chunked(10), 200);
    EXPECT_EQ(chunked(64), 413);
    EXPECT_EQ(chunked(4096), 0) << "closed without reading on";
    EXPECT_EQ(controls_.calls().size(), 1U);
}

TEST_F(ServerTest, AViewerGetsUpdatesInOrder) {
    RawClient client = tcp();
    client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string header = client.read_until("\r\n\r\n");
    EXPECT_NE(header.find("Content-Type: text/event-stream"), std::string::npos);
    EXPECT_NE(header.find("Cache-Control: no-store"), std::string::npos);
    for (int i = 1; i <= 50; ++i) {
        feed_.publish(std::to_string(i));
        const std::string update = client.read_until("\n\n");
        EXPECT_NE(update.find("data: " + std::to_string(i) + "\n\n"), std::string::npos) << update;
    }
    EXPECT_EQ(feed_.viewers(), 1U);
}

TEST_F(ServerTest, TenViewersSeeTheSame) {
    std::vector<RawClient> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(i % 2 == 0 ? tcp() : local());
        clients.back().send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_NE(clients.back().read_until("\r\n\r\n"), "");
    }
    const std::string large(300'000, 'y');
    feed_.publish(large);
    for (RawClient& client : clients) {
        std::string update = client.read_until("\n\n");
        EXPECT_EQ(std::ranges::count(update, 'y'), 300'000);
    }
}

TEST_F(ServerTest, ASlowViewerSkipsAndHoldsUpNobody) {
    RawClient slow = tcp();
    slow.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    RawClient fast = tcp();
    fast.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string padding(1U << 20U, 'p');
    int seen = 0;
    for (int i = 1; i <= 40; ++i) {
        feed_.publish(std::to_string(i) + padding);
        const std::string update = fast.read_until("\n\n");
        EXPECT_NE(update.find("data: " + std::to_string(i) + "p"), std::string::npos);
    }
    feed_.publish("last");
    std::string update;
    while (update.find("data: last") == std::string::npos && !(update = slow.read_until("\n\n")).empty()) ++seen;
    EXPECT_NE(update.find("data: last"), std::string::npos);
    EXPECT_LT(seen, 41) << "nothing was skipped: what was sent fitted into the buffers of the kernel";
}

}  // namespace
}  // namespace weir::web::test
