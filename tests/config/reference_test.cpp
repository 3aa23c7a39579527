// The page of all keys is what the descriptions say.
#include "options/reference.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "config/run_config.hpp"
#include "source_root.hpp"

namespace weir::config::test {
namespace {

TEST(ConfigReference, ThePageIsWhatTheDescriptionsSay) {
    const std::string name = "docs/reference/CONFIGURATION.md";
    std::ifstream in(weir::test::source_root() / name);
    const std::string page{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(options::filled_in(page, config_reference()) == page)
        << name << " is stale: run `build/app/weir explain --page " << name << " > new.md`, look at it, and commit it";
}

TEST(ConfigReference, EveryKeyIsExplained) {
    for (const options::ReferenceTable& table : config_reference())
        for (const options::Explained& key : table.keys) {
            EXPECT_FALSE(key.kind.empty()) << table.name << "." << key.key;
            EXPECT_FALSE(key.fallback.empty()) << table.name << "." << key.key;
            EXPECT_FALSE(key.meaning.empty()) << table.name << "." << key.key;
        }
}

TEST(Reference, RefusesAPageThatDoesNotFit) {
    const options::Reference reference{{"a", "key", {{"k", "text", "none", "meaning"}}}};
    EXPECT_EQ(
        options::filled_in("x\n<!-- keys a -->\nold\n<!-- end -->\ny", reference),
        "x\n<!-- keys a -->\n| key | kind | default | meaning |\n|---|---|---|---|\n| `k` | text | none | meaning "
        "|\n<!-- end -->\ny");
    for (const char* page : {"no tables", "<!-- keys b -->\n<!-- end -->", "<!-- keys a -->\n"})
        EXPECT_THROW(static_cast<void>(options::filled_in(page, reference)), core::UsageError) << page;
}

}  // namespace
}  // namespace weir::config::test
