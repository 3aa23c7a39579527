#include "web/url.hpp"

#include <gtest/gtest.h>

namespace weir::web::test {
namespace {

TEST(Url, DecodesWhatIsWellFormedAndNothingElse) {
    EXPECT_EQ(percent_decoded("/a%2fb%20c"), "/a/b c");
    EXPECT_EQ(percent_decoded(""), "");
    EXPECT_EQ(percent_decoded("100%25"), "100%");
    for (const char* broken : {"%", "%2", "a%", "%zz", "%2g", "%00", "a%00b"})
        EXPECT_FALSE(percent_decoded(broken)) << broken;
}

TEST(Url, TakesAPathApart) {
    using Parts = std::vector<std::string_view>;
    EXPECT_EQ(path_parts(""), Parts{});
    EXPECT_EQ(path_parts("/"), Parts{});
    EXPECT_EQ(path_parts("/a"), Parts{"a"});
    EXPECT_EQ(path_parts("/a/b/"), (Parts{"a", "b"}));
    for (const char* broken : {"//", "/a//b", "/a/../b", "..", "/.", "/a/."})
        EXPECT_FALSE(path_parts(broken)) << broken;
    std::string long_path;
    for (int i = 0; i < 32; ++i) long_path += "/x";
    EXPECT_EQ(path_parts(long_path)->size(), 32U);
    EXPECT_FALSE(path_parts(long_path + "/x"));
}

TEST(Url, TellsHostAndPort) {
    EXPECT_EQ(parse_host_port("localhost"), (HostPort{"localhost", {}}));
    EXPECT_EQ(parse_host_port("DAQ1.example:9321"), (HostPort{"daq1.example", 9321}));
    EXPECT_EQ(parse_host_port("127.0.0.1:0"), (HostPort{"127.0.0.1", 0}));
    EXPECT_EQ(parse_host_port("[::1]:80"), (HostPort{"::1", 80}));
    EXPECT_EQ(parse_host_port("[fe80::1%eth0]"), (HostPort{"fe80::1%eth0", {}}));
    for (const char* broken : {"", ":80", "a:", "a:b", "a:65536", "a:-1", "a:1:2", "[::1", "[::1]x", "[]:1", "a/b",
                               "a b", "::1", "[x/]:1", "a@b", "a:1 "})
        EXPECT_FALSE(parse_host_port(broken)) << broken;
}

}  // namespace
}  // namespace weir::web::test
