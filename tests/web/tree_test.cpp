#include "web/tree.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "web/url.hpp"

namespace weir::web::test {
namespace {

using nlohmann::json;

const json document = json::parse(R"({
    "status": {"state": "idle", "since_s": 1.5},
    "config": {"events": 3, "deep": {"x": true}},
    "where": [{"place": "way", "packets": null}, {"place": "nic", "packets": 2}],
    "sources": {"label": ["a", "b"]}})");

json answer_at(std::string_view path, bool with_metadata = false) {
    const auto parts = *path_parts(path);
    const json* found = find_in(document, parts);
    return found == nullptr ? json("nothing") : tree_answer(*found, parts, with_metadata);
}

TEST(Tree, ATableIsItselfAndEverythingElseAValue) {
    EXPECT_EQ(answer_at("status"), document["status"]);
    EXPECT_EQ(answer_at(""), document);
    EXPECT_EQ(answer_at("status/state"), json({{"value", "idle"}}));
    EXPECT_EQ(answer_at("sources/label"), json({{"value", {"a", "b"}}}));
    EXPECT_EQ(answer_at("where/0/packets"), json({{"value", nullptr}}));
}

TEST(Tree, NamesAreThoseThatClientsMakeTheirOwnOf) {
    const json counters = json::parse(
        R"({"packets": {"dropped": {"malformed.header": 3, "late": 1}, "not_for_us": {"icmp": 2}}, "a": [{"x-y z": 1}]})");
    const json all = tree_answer(counters, {}, false);
    EXPECT_EQ(all,
              json::parse(R"({"packets": {"dropped": {"malformed_header": 3, "late": 1}, "not_for_us": {"icmp": 2}},
                                   "a": [{"x_y_z": 1}]})"));
    EXPECT_EQ(tree_answer(counters, {}, true).at("/packets/dropped/malformed_header/value"_json_pointer), 3);
    // By both names: what was read before still is.
    for (const char* path : {"packets/dropped/malformed_header", "packets/dropped/malformed.header"}) {
        const json* found = find_in(counters, *path_parts(path));
        ASSERT_NE(found, nullptr) << path;
        EXPECT_EQ(*found, 3);
    }
    EXPECT_EQ(find_in(counters, *path_parts("packets/dropped/malformed")), nullptr);
}

TEST(Tree, ElementsOfListsAreFoundByIndex) {
    EXPECT_EQ(answer_at("where/1/place"), json({{"value", "nic"}}));
    EXPECT_EQ(answer_at("sources/label/1"), json({{"value", "b"}}));
    for (const char* path : {"where/2", "where/-1", "where/x", "where/1x", "where/18446744073709551616", "status/none",
                             "status/state/x", "where/ 1"})
        EXPECT_EQ(answer_at(path), "nothing") << path;
}

TEST(Tree, MetadataSaysWhatTypeAValueHasAndWhetherItCanBeSet) {
    EXPECT_EQ(answer_at("status/state", true), json({{"value", "idle"}, {"type", "str"}, {"writeable", false}}));
    EXPECT_EQ(answer_at("config/events", true), json({{"value", 3}, {"type", "int"}, {"writeable", true}}));
    const json all = answer_at("", true);
    EXPECT_EQ(all.at("/status/since_s/type"_json_pointer), "float");
    EXPECT_EQ(all.at("/config/deep/x"_json_pointer), json({{"value", true}, {"type", "bool"}, {"writeable", true}}));
    EXPECT_EQ(all.at("/where/1/packets/type"_json_pointer), "int");
    EXPECT_EQ(all.at("/where/0/packets"_json_pointer), nullptr);
    EXPECT_EQ(all.at("/sources/label"_json_pointer), json({"a", "b"}));
}

TEST(Tree, TextIsBoundedInDepthBeforeItIsParsed) {
    const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
    EXPECT_NO_THROW(static_cast<void>(parse_bounded(nested(16))));
    EXPECT_THROW(static_cast<void>(parse_bounded(nested(17))), core::UsageError);
    EXPECT_THROW(static_cast<void>(parse_bounded(std::string(60'000, '['))), core::UsageError);
    std::string objects;
    for (int i = 0; i < 10'000; ++i) objects += R"({"a":)";
    EXPECT_THROW(static_cast<void>(parse_bounded(objects)), core::UsageError);
    EXPECT_EQ(parse_bounded("\"" + std::string(100, '[') + R"(\"[")"), std::string(100, '[') + "\"[");
}

TEST(Tree, WhatIsNoJsonIsRefused) {
    for (const char* text : {"", "{", "start", "{\"a\":}", "[1,]", "1 2", "\"\xff\"", "nul", "{\"a\":1}}"})
        EXPECT_THROW(static_cast<void>(parse_bounded(text)), core::UsageError) << text;
}

TEST(Tree, ABodyChangesEachValueThatItNames) {
    EXPECT_EQ(changes_of("command/execute", "start"), (Changes{{"command/execute", "start"}}));
    EXPECT_EQ(changes_of("command/execute", {{"value", "start"}}), (Changes{{"command/execute", "start"}}));
    EXPECT_EQ(changes_of("command", {{"execute", "start"}}), (Changes{{"command/execute", "start"}}));
    EXPECT_EQ(changes_of("", json::parse(R"({"config": {"events": {"value": 3}, "comment": "x"}})")),
              (Changes{{"config/comment", "x"}, {"config/events", 3}}));
    EXPECT_TRUE(changes_of("config", json::object()).empty());
}

}  // namespace
}  // namespace weir::web::test
