// The configuration as its users see it: what is printed, what goes into the report, and every message for a value that
// does not fit. tests/config/golden has the texts; a change of them is deliberate and belongs in the CHANGELOG.
// WEIR_GOLDEN=write writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "config/run_config.hpp"
#include "source_root.hpp"

namespace weir::config::test {
namespace {

const std::filesystem::path folder = weir::test::source_root() / "tests/config/golden";

std::string content(const std::filesystem::path& file) {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
}

/// Compares line by line, so that a failure says which line changed.
void expect_golden(const std::string& name, const std::string& text) {
    const std::filesystem::path file = folder / name;
    if (const char* mode = std::getenv("WEIR_GOLDEN"); mode != nullptr && std::string_view(mode) == "write") {
        std::ofstream(file) << text;
        return;
    }
    std::istringstream want(content(file));
    std::istringstream have(text);
    std::string wanted;
    std::string line;
    for (int number = 1; std::getline(have, line); ++number) {
        ASSERT_TRUE(std::getline(want, wanted)) << name << " has no line " << number << "; now: " << line;
        EXPECT_EQ(line, wanted) << name << ":" << number;
    }
    EXPECT_FALSE(std::getline(want, wanted)) << name << " goes on with: " << wanted;
}

/// What is said of the configuration; its place in the tree is not part of it.
std::string answer(const std::string& text) {
    try {
        const RunConfig run = parse_config(text, "/etc/weir/test.toml");
        return "accepted, " + std::to_string(run.warnings.size()) + " warnings";
    } catch (const core::UsageError& error) {
        return error.what();
    }
}

class ConfigGolden : public testing::TestWithParam<const char*> {
protected:
    const std::string name_ = GetParam();
    const std::string text_ = content(folder / (name_ + ".toml"));
};

TEST_P(ConfigGolden, IsPrintedAsBefore) {
    const RunConfig run = parse_config(text_, "/etc/weir/test.toml");
    expect_golden(name_ + ".printed", print_config(run));
    EXPECT_TRUE(run == parse_config(print_config(run), "/elsewhere/printed.toml"));
}

TEST_P(ConfigGolden, IsReportedAsBefore) {
    expect_golden(name_ + ".json", config_json(parse_config(text_, "/etc/weir/test.toml")).dump(1) + "\n");
}

/// Each value, replaced by others of each kind; and each line left out.
TEST_P(ConfigGolden, MistakesAreSaidAsBefore) {
    static const std::regex assignment(R"(^([a-z_0-9]+) = (.*)$)");
    std::istringstream lines(text_);
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    const auto with = [&](std::size_t at, const std::string& replaced) {
        std::string out;
        for (std::size_t i = 0; i < all.size(); ++i) out += (i == at ? replaced : all[i]) + "\n";
        return out;
    };
    std::string said;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::smatch match;
        if (!std::regex_match(all[i], match, assignment)) continue;
        const std::string key = match[1].str();
        said += all[i] + "\n    left out: " + answer(with(i, "")) + "\n";
        for (const char* value :
             {"-1", "0", "7", "100000000000000", "0.5", "true", "\"\"", "\"nonsense\"", "[1, 1]", "{ x = 1 }"})
            said += "    " + std::string(value) + ": " + answer(with(i, key + " = " + value)) + "\n";
    }
    expect_golden(name_ + ".mistakes", said);
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigGolden,
                         testing::Values("modules", "answered", "formats", "blocks", "pixels", "defaults", "cluster"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weir::config::test
