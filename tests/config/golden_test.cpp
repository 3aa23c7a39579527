// The configuration as its users see it: what is printed, what goes into the report, and every message for a value that
// does not fit. tests/config/golden has the texts; a change of them is deliberate and belongs in the CHANGELOG.
// WEIR_GOLDEN=write writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <vector>

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

struct Mistake {
    const char* value;
    const char* described;  // as messages have it
};
constexpr Mistake mistakes[] = {{"-1", "the integer -1"},    {"0", "the integer 0"},
                                {"7", "the integer 7"},      {"100000000000000", "the integer 100000000000000"},
                                {"0.5", "the number 0.5"},   {"true", "true"},
                                {"\"\"", "the string \"\""}, {"\"nonsense\"", "the string \"nonsense\""},
                                {"[1, 1]", "an array"},      {"{ x = 1 }", "a table"}};

/// What many messages list. A new format, or a new key of one of these tables, is added here and changes no other line.
struct List {
    const char* name;
    const char* text;
};
constexpr List lists[] = {
    {"FORMATS", R"("jungfrau", "moench", "eiger", "ejfat", "dune", "ess", "spead", "message")"},
    {"FORMATS", R"("jungfrau", "moench", "eiger", "ejfat", "dune", "ess", "spead" or "message")"},
    {"REDUCERS", R"(the reducer, "zstd", "pack", "jungfrau", "veto", "sparse", "mfp" or "pedestal")"},
    {"KEYS of an event field", "bytes, mask, offset, shift, wrap_bits"},
    {"KEYS of a field with a value", "bytes, mask, offset, shift, value"},
    {"KEYS of a field", "bytes, mask, offset, shift"},
    {"KEYS of a peer", "address, qp"},
    {"KEYS of a region", "backing, bytes, count, qp, rkey, stride, va, write"},
    {"KEYS of nexus",
     "beam_center, detector, distance_mm, fast_direction, instrument, module_gap, pixel_size_um, sample, "
     "sensor_material, sensor_thickness_um, slow_direction, source, title, total_flux, wavelength_angstrom"},
    {"KEYS of a layout",
     "byte_order, first_event, fragment_align, fragments, header_bytes, length, magic, size_bytes, size_in_fragment, "
     "table_align, type_bytes"}};

/// With names instead of lists, and "it" for the value.
std::string shortened(std::string message, const std::string& described) {
    const auto replace = [&](const std::string& from, const std::string& to) {
        if (const std::size_t at = message.find(from); at != std::string::npos) message.replace(at, from.size(), to);
    };
    replace("found " + described + ";", "found it;");
    for (const List& list : lists)
        replace(std::string("accepted: ") + list.text, std::string("accepted: ") + list.name);
    return message;
}

/// A configuration by its lines, of which one is wrong.
class Lines {
public:
    explicit Lines(const std::string& text) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) all_.push_back(line);
    }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    [[nodiscard]] const std::string& operator[](std::size_t at) const { return all_[at]; }

    [[nodiscard]] std::string with(std::size_t at, const std::string& replaced) const {
        std::string out;
        for (std::size_t i = 0; i < all_.size(); ++i) out += (i == at ? replaced : all_[i]) + "\n";
        return out;
    }

    /// The answer with the place by what is written there, not by its number: nothing is said of the wrong line itself.
    [[nodiscard]] std::string placed(std::size_t wrong, const std::string& said) const {
        static const std::regex refusal(R"(/etc/weir/test\.toml:([0-9]+): (.*))");
        std::smatch match;
        if (!std::regex_match(said, match, refusal)) return said;
        const std::size_t at = std::stoul(match[1].str()) - 1;
        if (at == wrong) return match[2];
        if (at == table_of(wrong)) return "in its table, " + match[2].str();
        if (at >= size()) return "after the end, " + match[2].str();
        const std::string next = all_[at].front() == '[' ? " " + all_.at(at + 1) : "";
        return "at " + all_[at] + next + ", " + match[2].str();
    }

private:
    /// Where the table begins that the line is in.
    [[nodiscard]] std::size_t table_of(std::size_t line) const {
        while (line > 0 && all_[line].front() != '[') --line;
        return line;
    }

    std::vector<std::string> all_;
};

/// Each value, replaced by others of each kind; and each line left out. What is answered alike is one line, so a new
/// key of the configuration adds its own lines and changes no others. place_test.cpp has the numbers of lines.
TEST_P(ConfigGolden, MistakesAreSaidAsBefore) {
    static const std::regex assignment(R"(^([a-z_0-9]+) = (.*)$)");
    const Lines lines(text_);
    std::string said;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::smatch match;
        if (lines[i].starts_with("[")) said += lines[i] + "\n";
        if (!std::regex_match(lines[i], match, assignment)) continue;
        const std::string key = match[1].str();
        std::vector<std::pair<std::string, std::string>> answers;  // and what is answered so
        const auto add = [&](const std::string& value, const std::string& answered) {
            const auto same = std::ranges::find(answers, answered, &std::pair<std::string, std::string>::first);
            if (same == answers.end()) {
                answers.emplace_back(answered, value);
            } else {
                same->second += " | " + value;
            }
        };
        add("left out", shortened(lines.placed(i, answer(lines.with(i, ""))), "the value"));
        for (const Mistake& mistake : mistakes)
            add(mistake.value,
                shortened(lines.placed(i, answer(lines.with(i, key + " = " + mistake.value))), mistake.described));
        said += key + "\n";
        for (const auto& [answered, values] : answers) said += "    " + values + ": " + answered + "\n";
    }
    expect_golden(name_ + ".mistakes", said);
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigGolden,
                         testing::Values("modules", "answered", "formats", "blocks", "pixels", "defaults", "cluster"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weir::config::test
