#include "core/foreign_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace weir::core {
namespace {

std::string nested(std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
}

TEST(ForeignJson, CountsBracketsOutsideOfTexts) {
    EXPECT_EQ(json_levels("7"), 0U);
    EXPECT_EQ(json_levels(R"({"a":[1,{"b":2}],"c":[[]]})"), 3U);
    EXPECT_EQ(json_levels(R"({"]]]":"[[[[","\"[":"\\"})"), 1U);
    EXPECT_EQ(json_levels("]]]][["), 2U);
    EXPECT_EQ(json_levels(R"({"a":")" + std::string(100, ']') + R"(","b":)" + nested(100) + "}"), 101U);
}

TEST(ForeignJson, IsReadUpToADepth) {
    EXPECT_TRUE(read_json(nested(json_levels_max)));
    EXPECT_FALSE(read_json(nested(json_levels_max + 1)));
    EXPECT_FALSE(read_json(nested(1'000'000)));
    EXPECT_FALSE(read_json(R"({"a":")" + std::string(100'000, ']') + R"(","b":)" + nested(100'000) + "}"));
    EXPECT_FALSE(read_json("[[]]", 1));
    EXPECT_EQ(read_json(R"({"a":[7]})")->at("a").at(0), 7);
    for (const char* text : {"", "{", "[1,]", "nan", "\"\xff\"", "{} {}"}) EXPECT_FALSE(read_json(text)) << text;
}

TEST(ForeignJson, MembersAreTextsOrNot) {
    const auto object = nlohmann::json::parse(R"({"text":"x","number":5,"none":null,"list":["x"]})");
    EXPECT_EQ(text_member(object, "text", "-"), "x");
    for (const char* key : {"number", "none", "list", "absent"}) EXPECT_EQ(text_member(object, key, "-"), "-") << key;
    EXPECT_EQ(text_member(nlohmann::json::array(), "text", "-"), "-");
    EXPECT_EQ(text_member(nlohmann::json("text"), "text", "-"), "-");
}

}  // namespace
}  // namespace weir::core
