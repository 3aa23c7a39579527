#include "config/schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/run_config.hpp"

namespace weir::config::test {
namespace {

using nlohmann::json;

TEST(ConfigSchema, HasEachTableAndEachKeyOfTheReference) {
    const json schema = config_schema();
    EXPECT_EQ(schema.at("$schema"), "http://json-schema.org/draft-07/schema#");
    const auto has = [](const json& table, const std::string& key) { return table.at("properties").contains(key); };
    for (const options::ReferenceTable& table : config_reference()) {
        const std::string name = table.name.substr(0, table.name.find('.'));
        for (const options::Explained& key : table.keys) {
            if (name == "top") {
                EXPECT_TRUE(has(schema, key.key)) << key.key;
            } else if (name == "reduce" || name == "sink") {
                const json& kinds = schema.at("properties").at(name).at("items").at("anyOf");
                EXPECT_TRUE(std::ranges::any_of(kinds, [&](const json& kind) { return has(kind, key.key); }))
                    << table.name << "." << key.key;
            } else {
                const json& described = schema.at("properties").at(name);
                EXPECT_TRUE(has(described.value("items", described), key.key)) << table.name << "." << key.key;
            }
        }
    }
}

TEST(ConfigSchema, SaysWhatAValueMayBe) {
    const json events = config_schema().at("properties").at("events");
    EXPECT_EQ(events.at("additionalProperties"), false);
    EXPECT_EQ(events.at("required"), json({"sources"}));
    const json timeout = events.at("properties").at("timeout_ms");
    EXPECT_EQ(timeout.at("type"), "integer");
    EXPECT_EQ(timeout.at("minimum"), 1);
    EXPECT_EQ(events.at("properties").at("incomplete").at("enum"), json({"keep", "drop"}));
    const json serve = config_schema().at("properties").at("serve");
    EXPECT_EQ(serve.at("required"), json::array());
    EXPECT_EQ(serve.at("properties").at("connections").at("maximum"), 4096);
}

TEST(ConfigSchema, SaysOfMostKeysWhatTheyMayBe) {
    std::size_t keys = 0;
    std::size_t open = 0;
    for (const options::ReferenceTable& table : config_reference())
        for (const options::Explained& key : table.keys) {
            ++keys;
            open += key.schema.empty() ? 1 : 0;
        }
    EXPECT_LT(open * 4, keys) << open << " of " << keys << " keys may be anything";
}

}  // namespace
}  // namespace weir::config::test
