// What the configuration's tests share. The fixture of those of errors: one text, one mistake, the line and the words
// of the answer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "config/run_config.hpp"
#include "texts.hpp"

namespace weir::config::test {

/// The configuration of the text. Fails the test unless what is printed of it, in another folder, reads back the same.
inline RunConfig reads_back(std::string_view text) {
    const RunConfig run = parse_config(text, "/etc/weir/test.toml");
    const std::string printed = print_config(run);
    const RunConfig again = parse_config(printed, "/elsewhere/printed.toml");
    EXPECT_TRUE(run == again) << printed;
    EXPECT_EQ(printed, print_config(again));
    EXPECT_EQ(config_json(run), config_json(again));
    return run;
}

/// What an edit replaces and by what, and words of a message. Views, so that a compiler has little to do for each of
/// the hundreds of literals; a Case has copies.
using NewEdits = std::initializer_list<std::pair<std::string_view, std::string_view>>;
using Parts = std::initializer_list<std::string_view>;

struct Case {
    Case(std::string_view its_name, std::string_view text, NewEdits made, Parts said)
        : name(its_name), base(text), edits(made.begin(), made.end()), parts(said.begin(), said.end()) {}

    std::string name;
    std::string_view base;
    Edits edits;                     // the line that ends in #! after them is the one that must be named
    std::vector<std::string> parts;  // of the message
};

inline void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

/// The configuration of a stream of another format, with these keys.
inline std::string udp_with(const std::string& format, const std::string& keys) {
    return edited(udp_text, {{"format = \"jungfrau\"", "format = \"" + format + "\"\n" + keys}});
}
/// One that is refused.
inline Case wrong_stream(std::string_view name, const std::string& format, const std::string& keys, Parts parts) {
    return {name, udp_text, {{"format = \"jungfrau\"", "format = \"" + format + "\"\n" + keys}}, parts};
}

class ConfigError : public testing::TestWithParam<Case> {};

inline std::string case_name(const testing::TestParamInfo<Case>& info) {
    return info.param.name;
}

inline void expect_refused(const Case& c) {
    const std::string text = edited(c.base, c.edits);
    const std::size_t mark = text.find("#!");
    ASSERT_NE(mark, std::string::npos) << "no #! in the text";
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), '\n');
    try {
        parse_config(text, "test.toml");
        FAIL() << "accepted:\n" << text;
    } catch (const core::UsageError& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.find("test.toml:" + std::to_string(line) + ": "), 0U) << message;
        for (const std::string& part : c.parts)
            EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    }
}

}  // namespace weir::config::test
