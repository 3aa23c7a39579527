#include "web/token_guard.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "../temporary_directory.hpp"

namespace weir::web::test {
namespace {

using namespace std::chrono_literals;

class TokenGuardTest : public ::testing::Test {
protected:
    static Request with(const std::string& name, const std::string& value, const std::string& peer = "10.0.0.1") {
        Request request{
            .method = "PUT", .path = "/", .query = {}, .headers = {}, .body = "", .peer = peer, .local = false};
        if (!name.empty()) request.headers[name] = value;
        return request;
    }
    static Request bearer(const std::string& token, const std::string& peer = "10.0.0.1") {
        return with("authorization", "Bearer " + token, peer);
    }
    void write(const std::string& text, mode_t mode = 0600) {
        std::ofstream(file_) << text;
        ASSERT_EQ(chmod(file_.c_str(), mode), 0);
    }
    /// As an editor or `mv` does it: another file under this name.
    void replace(const std::string& text) {
        const std::string next = file_ + ".new";
        std::ofstream(next) << text;
        ASSERT_EQ(chmod(next.c_str(), 0600), 0);
        std::filesystem::rename(next, file_);
    }
    static int status(TokenGuard& guard, const Request& request, TokenGuard::Clock::time_point now = {}) {
        const auto refused = guard.refusal(request, now);
        return refused ? refused->status : 200;
    }

    weir::test::TemporaryDirectory folder_;
    std::string file_ = folder_ / "token";
};

TEST_F(TokenGuardTest, LetsPassWhoShowsTheToken) {
    write("  s3cret token\n");
    TokenGuard guard(file_);
    EXPECT_EQ(guard.trouble(), "");
    EXPECT_EQ(status(guard, bearer("s3cret token")), 200);
    EXPECT_EQ(status(guard, with("authorization", "bEARER   s3cret token ")), 200);
    EXPECT_EQ(status(guard, with("x-weir-token", "s3cret token")), 200);
    EXPECT_EQ(status(guard, with("", "")), 401);
    EXPECT_EQ(status(guard, with("authorization", "Bearer ")), 401);
    EXPECT_EQ(status(guard, with("authorization", "Basic s3cret token")), 401);
    EXPECT_EQ(status(guard, bearer("s3cret toke")), 401);
    EXPECT_EQ(status(guard, bearer("s3cret token2")), 401);
}

TEST_F(TokenGuardTest, ReadsTheFileAgainWhenItChanges) {
    write("first");
    TokenGuard guard(file_);
    EXPECT_EQ(status(guard, bearer("first")), 200);
    replace("other");  // of the same size
    EXPECT_EQ(status(guard, bearer("first")), 401);
    EXPECT_EQ(status(guard, bearer("other")), 200);
    std::filesystem::remove(file_);
    EXPECT_EQ(status(guard, bearer("other")), 403);
    replace("third");
    EXPECT_EQ(status(guard, bearer("third")), 200);
}

TEST_F(TokenGuardTest, NobodyPassesWithoutAProperFile) {
    TokenGuard none("");
    EXPECT_EQ(status(none, bearer("")), 403);
    EXPECT_NE(none.trouble(), "");
    TokenGuard guard(file_);
    EXPECT_EQ(status(guard, bearer("x")), 403);
    EXPECT_NE(guard.trouble().find(file_), std::string::npos);
    for (const char* empty : {"", " \n\t"}) {
        write(empty);
        EXPECT_EQ(status(guard, bearer("")), 403);
        EXPECT_EQ(status(guard, bearer("x")), 403);
    }
    write(std::string(5000, 'x'));
    EXPECT_EQ(status(guard, bearer(std::string(5000, 'x'))), 403);
    write("x");
    EXPECT_EQ(status(guard, bearer("x")), 200);
}

TEST_F(TokenGuardTest, AFileForEverybodyIsRefused) {
    write("x", 0604);
    TokenGuard guard(file_);
    EXPECT_EQ(status(guard, bearer("x")), 403);
    EXPECT_NE(guard.trouble().find("read by everybody"), std::string::npos) << guard.trouble();
    ASSERT_EQ(chmod(file_.c_str(), 0602), 0);
    EXPECT_NE(guard.trouble().find("written by everybody"), std::string::npos) << guard.trouble();
    ASSERT_EQ(chmod(file_.c_str(), 0640), 0);
    EXPECT_EQ(status(guard, bearer("x")), 200);
}

TEST_F(TokenGuardTest, APipeOrAFolderHoldsUpNobody) {
    ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
    TokenGuard guard(file_);
    EXPECT_EQ(status(guard, bearer("x")), 403);
    TokenGuard of_folder(folder_.path());
    EXPECT_EQ(status(of_folder, bearer("x")), 403);
}

TEST_F(TokenGuardTest, AfterFiveWrongOnesEveryTokenOfThatAddressWaits) {
    write("right");
    TokenGuard guard(file_);
    const TokenGuard::Clock::time_point start{};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(status(guard, bearer("wrong"), start + 1s * i), 401) << i;
    EXPECT_EQ(status(guard, bearer("right"), start + 5s), 429);
    EXPECT_EQ(status(guard, bearer("right", "10.0.0.2"), start + 5s), 200);
    EXPECT_EQ(status(guard, bearer("right"), start + 33s), 429);
    EXPECT_EQ(status(guard, bearer("right"), start + 34s), 200);
    EXPECT_EQ(status(guard, bearer("wrong"), start + 35s), 401);
}

TEST_F(TokenGuardTest, MistakesNowAndThenAreForgiven) {
    write("right");
    TokenGuard guard(file_);
    TokenGuard::Clock::time_point now{};
    for (int i = 0; i < 20; ++i) EXPECT_EQ(status(guard, bearer("wrong"), now += 4s), 401) << i;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(status(guard, bearer("wrong"), now), 401) << i;
        EXPECT_EQ(status(guard, bearer("right"), now), 200) << i;
    }
    for (int i = 0; i < 20; ++i) EXPECT_EQ(status(guard, with("", ""), now), 401) << "no token is no wrong token";
}

TEST_F(TokenGuardTest, AnIpv6NetworkIsOneAddress) {
    write("right");
    TokenGuard guard(file_);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(status(guard, bearer("wrong", "2001:db8::" + std::to_string(i))), 401);
    EXPECT_EQ(status(guard, bearer("right", "2001:db8::77")), 429);
    EXPECT_EQ(status(guard, bearer("right", "2001:db8:0:1::77")), 200);
}

TEST_F(TokenGuardTest, RemembersABoundedNumberOfAddresses) {
    write("right");
    TokenGuard guard(file_, {.addresses_max = 3});
    TokenGuard::Clock::time_point now{};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(status(guard, bearer("wrong", "10.0.0.1"), now), 401);
    EXPECT_EQ(status(guard, bearer("right", "10.0.0.1"), now), 429);
    for (int i = 2; i <= 4; ++i)
        EXPECT_EQ(status(guard, bearer("wrong", "10.0.0." + std::to_string(i)), now += 1ms), 401);
    EXPECT_EQ(status(guard, bearer("right", "10.0.0.1"), now), 200)
        << "the one that was wrong longest ago is forgotten";
}

}  // namespace
}  // namespace weir::web::test
