#include "serve/run_log.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "serve/time_text.hpp"
#include "temporary_directory.hpp"

namespace weir::serve {
namespace {

TEST(RunLog, AddsALineForEach) {
    const test::TemporaryDirectory folder;
    const std::string path = folder.path() / "log.jsonl";
    for (int run = 0; run < 2; ++run) {
        RunLog log(path);  // lines are added to what is there
        EXPECT_EQ(log.add({{"to", "running"}, {"run", run}}), "");
        EXPECT_EQ(log.add({{"to", "idle"}, {"error", "a \"quoted\"\nline"}}), "");
    }
    std::ifstream in(path);
    std::string line;
    int lines = 0;
    for (; std::getline(in, line); ++lines) {
        const nlohmann::json entry = nlohmann::json::parse(line);
        EXPECT_TRUE(entry["time"].get<std::string>().ends_with("Z"));
        if (lines % 2 == 0) {
            EXPECT_EQ(entry["run"], lines / 2);
        }
    }
    EXPECT_EQ(lines, 4);
}

TEST(RunLog, SaysWhatIsWrong) {
    EXPECT_THROW(RunLog("/no/such/folder/log"), core::RunError);
    RunLog full("/dev/full");
    EXPECT_NE(full.add({{"to", "idle"}}).find("No space left"), std::string::npos);
    RunLog none("");
    EXPECT_EQ(none.add({{"to", "idle"}}), "");
}

TEST(RunLog, TimesAreThoseOfRfc3339) {
    EXPECT_EQ(time_text(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(time_text(1'791'028'800'123'456'789), "2026-10-03T12:00:00.123Z");
}

}  // namespace
}  // namespace weir::serve
