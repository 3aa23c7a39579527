#include "web/gate.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "../temporary_directory.hpp"

namespace weir::web::test {
namespace {

Request request_with(std::string method, std::map<std::string, std::string, std::less<>> headers) {
    Request request;
    request.method = std::move(method);
    request.path = "/";
    request.headers = std::move(headers);
    request.peer = "127.0.0.1";
    return request;
}

int status_at(const Gate& gate, const Request& request) {
    const auto refused = gate.refusal(request, {});
    return refused ? refused->status : 200;
}

TEST(Gate, AForeignNameForThisHostIsRefused) {
    const Gate gate("daq1.example", true, nullptr);
    for (const char* own : {"localhost", "LOCALHOST:9321", "127.0.0.1:1", "[::1]:9321", "daq1.example:80", ""})
        EXPECT_EQ(status_at(gate, request_with("GET", {{"host", own}})), 200) << own;
    for (const char* foreign : {"evil.example", "evil.example:9321", "localhost.evil.example", "127.0.0.1.evil.example",
                                "127.0.0.2", "a b", "localhost:99999"})
        EXPECT_EQ(status_at(gate, request_with("GET", {{"host", foreign}})), 403) << foreign;
    const Gate open_to_all("0.0.0.0", false, nullptr);
    EXPECT_EQ(status_at(open_to_all, request_with("GET", {{"host", "whatever.example"}})), 200);
}

TEST(Gate, APageOfAnotherServerIsTold) {
    const auto put = [](const char* origin, const char* host, const char* forwarded = "") {
        Request request = request_with("PUT", {{"host", host}});
        if (*origin != '\0') request.headers["origin"] = origin;
        if (*forwarded != '\0') request.headers["x-forwarded-host"] = forwarded;
        return request;
    };
    EXPECT_FALSE(cross_site(put("", "localhost:9321")));
    EXPECT_FALSE(cross_site(put("http://localhost:9321", "localhost:9321")));
    EXPECT_FALSE(cross_site(put("https://daq.example", "127.0.0.1:9321", "daq.example")));
    EXPECT_TRUE(cross_site(put("http://localhost:8000", "localhost:9321")));
    EXPECT_TRUE(cross_site(put("http://evil.example", "localhost:9321")));
    EXPECT_TRUE(cross_site(put("null", "localhost:9321")));
    EXPECT_TRUE(cross_site(put("http://", "localhost:9321")));
    EXPECT_TRUE(cross_site(put("localhost:9321", "localhost:9321")));
}

TEST(Gate, WhatChangesSomethingNeedsATokenExceptOverAUnixSocket) {
    const weir::test::TemporaryDirectory folder;
    const std::string file = folder / "token";
    std::ofstream(file) << "right";
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    TokenGuard guard(file);
    const Gate gate("127.0.0.1", true, &guard);
    EXPECT_EQ(status_at(gate, request_with("GET", {})), 200);
    EXPECT_EQ(status_at(gate, request_with("HEAD", {})), 200);
    for (const char* method : {"PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"})
        EXPECT_EQ(status_at(gate, request_with(method, {})), 401) << method;
    const Request good = request_with("PUT", {{"authorization", "Bearer right"}});
    EXPECT_EQ(status_at(gate, good), 200);
    EXPECT_EQ(status_at(Gate("127.0.0.1", true, nullptr), good), 403);
    Request foreign = good;
    foreign.headers["origin"] = "http://evil.example";
    EXPECT_EQ(status_at(gate, foreign), 403) << "even with the token";
    Request local = request_with("PUT", {{"host", "x"}});
    local.local = true;
    EXPECT_EQ(status_at(gate, local), 200);
}

}  // namespace
}  // namespace weir::web::test
