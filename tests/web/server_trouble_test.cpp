// Clients that are slow, many, broken or malicious.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "running_server.hpp"

namespace weir::web::test {
namespace {

using namespace std::chrono_literals;

class ServerTroubleTest : public RunningServer {
protected:
    [[nodiscard]] bool answers() const {
        return status_of(answer(tcp(), "GET /api")) == 200 && status_of(answer(local(), "GET /api")) == 200;
    }
};

TEST_F(ServerTroubleTest, WhatIsNoHttpEndsItsConnectionOnly) {
    start({.request = 2s});
    for (const std::string& text :
         {std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"), std::string(200'000, 'A'),
          std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, '\0'),
          "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'h') + "\r\n\r\n",
          std::string("PUT /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
          std::string("PUT /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"),
          std::string("PUT /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"),
          std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET /api HTTP/1.1\r\n\r\n")}) {
        RawClient client = tcp();
        client.send(text);
        client.finish();
        EXPECT_TRUE(client.ended()) << text.substr(0, 40);
        const int status = status_of(client.read_all());
        EXPECT_TRUE(status == 0 || status >= 400) << text.substr(0, 40) << " " << status;
    }
    EXPECT_TRUE(answers());
}

TEST_F(ServerTroubleTest, NoPathLeadsToAFile) {
    start();
    for (const char* path : {"/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../etc/passwd",
                             "/assets/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/api/0.1/weir/../../../etc/passwd",
                             "/api/0.1/weir/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/api/0.1/weir/..%5c..%5cetc",
                             "/file:///etc/passwd", "/etc/passwd"}) {
        const std::string text = answer(tcp(), std::string("GET ") + path);
        EXPECT_TRUE(status_of(text) == 404 || status_of(text) == 400) << path << text;
        EXPECT_EQ(text.find("root:"), std::string::npos) << path;
    }
}

TEST_F(ServerTroubleTest, MalformedAndDeepBodiesAreRefused) {
    start();
    std::string deep;
    for (int i = 0; i < 12'000; ++i) deep += "{\"a\":";
    for (const std::string& body :
         {std::string("{"), std::string("\"\xff\""), std::string(60'000, '['), deep, std::string("{\"a\":1,}"),
          std::string("nan"), std::string("\0", 1), std::string(65'000, '9')})
        EXPECT_EQ(status_of(answer(local(), "PUT /api/0.1/weir", put_header(), body)), 400) << body.substr(0, 20);
    EXPECT_TRUE(controls_.calls().empty());
    EXPECT_TRUE(answers());
}

TEST_F(ServerTroubleTest, AClientThatNeverFinishesItsRequestIsShutDown) {
    start({.request = 8s});  // who asks properly is answered in less, also by a busy machine
    RawClient silent = tcp();
    RawClient half = tcp();
    half.send("GET /api HTTP/1.1\r\nHost: local");
    RawClient without_body = tcp();
    without_body.send("PUT /api/0.1/weir HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    RawClient drip = tcp();
    bool cut_off = false;
    drip.send("GET /api HTTP/1.1\r\nX: ");
    for (int i = 0; i < 12'000 && !cut_off; ++i) {  // never idle for long, and never too much for a header
        cut_off = !drip.send("y");
        std::this_thread::sleep_for(5ms);
        if (i % 20 == 0) {
            EXPECT_TRUE(answers());
        }
    }
    EXPECT_TRUE(cut_off);
    EXPECT_TRUE(silent.ended());
    EXPECT_TRUE(half.ended());
    EXPECT_TRUE(without_body.ended());
    EXPECT_GE(server_->counts().connections.too_slow, 4U);
}

TEST_F(ServerTroubleTest, AClientThatDoesNotTakeItsAnswerIsShutDown) {
    start({.response = 8s});
    RawClient slow = tcp();
    slow.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    RawClient viewer = tcp();
    viewer.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(viewer.read_until("\r\n\r\n"), "");
    feed_.publish(std::string(32U << 20U, 'x'));
    for (int i = 0; i < 6000 && server_->counts().connections.too_slow < 2; ++i) {
        EXPECT_TRUE(answers());
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(server_->counts().connections.too_slow, 2U);
    EXPECT_LT(slow.read_all().size(), 32U << 20U);
    EXPECT_LT(viewer.read_all().size(), 32U << 20U);
}

TEST_F(ServerTroubleTest, AViewerMayBeQuietForLonger) {
    start({.request = 6s, .response = 6s});
    RawClient viewer = tcp();
    viewer.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(viewer.read_until("\r\n\r\n"), "");
    for (std::uint64_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(tcp().ended()) << "any other client may not be that quiet";
        EXPECT_EQ(server_->counts().connections.too_slow, i + 1);
        feed_.publish(std::to_string(i));
        EXPECT_NE(viewer.read_until("\n\n").find("data: " + std::to_string(i)), std::string::npos);
    }
}

TEST_F(ServerTroubleTest, AThousandConnectionsAreTurnedAwayBeyondTheLimit) {
    start({.connections = 20, .request = 600s});
    std::vector<RawClient> clients;
    for (int i = 0; i < 20; ++i) {
        clients.push_back(tcp());
        clients.back().send("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_NE(clients.back().read_until("{\"api\":0.1}\n"), "");
    }
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(tcp().ended()) << i;
    const Connections::Counts counts = server_->counts().connections;
    EXPECT_EQ(counts.turned_away, 1000U);
    EXPECT_EQ(counts.open, 20U);
    EXPECT_EQ(status_of(answer(local(), "GET /api")), 200) << "the UNIX socket has places of its own";
    clients.front().send("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(clients.front().read_until("{\"api\":0.1}\n"), "");
    clients.clear();
    for (int i = 0; i < 6000 && server_->counts().connections.open > 0; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(answers());
}

TEST_F(ServerTroubleTest, AThousandConnectionsAtOnceAreServed) {
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    constexpr rlim_t needed = 2200;  // both ends are in this process
    if (files.rlim_max < needed) GTEST_SKIP() << "no more than " << files.rlim_max << " open files are allowed";
    files.rlim_cur = std::max(files.rlim_cur, needed);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    start({.connections = 1100});
    std::vector<RawClient> clients;
    for (int i = 0; i < 1000; ++i) clients.push_back(tcp());
    for (RawClient& client : clients) client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (RawClient& client : clients) EXPECT_NE(client.read_until("\r\n\r\n").find("200 OK"), std::string::npos);
    feed_.publish("to all");
    for (RawClient& client : clients) EXPECT_NE(client.read_until("\n\n").find("data: to all"), std::string::npos);
    EXPECT_EQ(feed_.viewers(), 1000U);
    server_.reset();
    for (RawClient& client : clients) EXPECT_TRUE(client.ended());
}

TEST_F(ServerTroubleTest, TheServerEndsUnderLoadWithoutWaitingForAnybody) {
    start();
    std::atomic<bool> stop = false;
    std::vector<std::thread> load;
    const std::uint16_t port = server_->port();
    for (int t = 0; t < 4; ++t)
        load.emplace_back([&, t] {
            while (!stop) try {
                    RawClient client(port);
                    client.send(t % 2 == 0 ? "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                           : "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    client.read_until(t == 0 ? "\n\n" : "xxx");
                    feed_.publish("again");
                } catch (const std::system_error&) {  // it has ended
                    return;
                }
        });
    std::vector<RawClient> viewers;
    for (int i = 0; i < 20; ++i) {
        viewers.push_back(i % 2 == 0 ? tcp() : local());
        viewers.back().send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_NE(viewers.back().read_until("\r\n\r\n"), "");
    }
    RawClient slow = tcp();
    slow.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    RawClient half = tcp();
    half.send("GET /");
    server_.reset();  // the limits of a slow client are far longer than the test's
    stop = true;
    for (std::thread& thread : load) thread.join();
    for (RawClient& viewer : viewers) EXPECT_TRUE(viewer.ended());
    EXPECT_TRUE(half.ended());
    EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(ServerTroubleTest, AServerMayStartAgainAtOnce) {
    for (int i = 0; i < 20; ++i) {
        server_.reset();
        start();
        EXPECT_EQ(status_of(answer(local(), "GET /api")), 200);
    }
}

}  // namespace
}  // namespace weir::web::test
