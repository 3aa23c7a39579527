// Findings as others read them: order, shell, JSON.
#include "doctor/finding.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weir::doctor::test {
namespace {

TEST(Findings, AreSortedErrorsFirstAndOtherwiseStay) {
    std::vector<Finding> findings{{.check = "a"},
                                  {.check = "b", .status = Status::unknown},
                                  {.check = "c", .status = Status::error},
                                  {.check = "d", .status = Status::warning},
                                  {.check = "e", .status = Status::error}};
    EXPECT_TRUE(any_error(findings));
    sort_by_status(findings);
    std::string order;
    for (const Finding& finding : findings) order += finding.check;
    EXPECT_EQ(order, "cedba");
    EXPECT_FALSE(any_error({{.check = "a", .status = Status::warning}}));
}

TEST(Findings, AreCommandsThatAShellTakes) {
    EXPECT_EQ(write_to("/proc/irq/7/smp_affinity_list", "0-3,8").shell(), "echo 0-3,8 > /proc/irq/7/smp_affinity_list");
    EXPECT_EQ(execute({"mkdir", "-p", "/data/my runs"}).shell(), "mkdir -p '/data/my runs'");
    EXPECT_EQ(execute({"echo", "it's", ""}).shell(), "echo 'it'\\''s' ''");
    const Finding finding = with_fix({}, {write_to("/a", "1"), execute({"b"})}, "the next boot");
    EXPECT_EQ(finding.mend, "echo 1 > /a; b");
}

TEST(Findings, HaveTheKeysOfTheContract) {
    Finding finding{
        .check = "hugepages", .status = Status::error, .about = "node 0", .found = "f", .wanted = "w", .why = "y"};
    finding = with_fix(finding, {write_to("/a", "1")}, "");
    const nlohmann::json json =
        findings_json({finding, {.check = "b", .status = Status::warning, .sure = Sure::likely}});
    EXPECT_EQ(json["findings"][0], (nlohmann::json{{"check", "hugepages"},
                                                   {"status", "error"},
                                                   {"found", "f"},
                                                   {"wanted", "w"},
                                                   {"why", "y"},
                                                   {"mend", "echo 1 > /a"},
                                                   {"about", "node 0"},
                                                   {"sure", "certain"},
                                                   {"fix", true}}));
    EXPECT_EQ(json["findings"][1]["sure"], "likely");
    EXPECT_EQ(json["findings"][1]["fix"], false);
    for (const auto& [status, word] : {std::pair{Status::ok, "ok"}, std::pair{Status::warning, "warning"},
                                       std::pair{Status::error, "error"}, std::pair{Status::unknown, "unknown"}})
        EXPECT_EQ(name_of(status), word);
}

}  // namespace
}  // namespace weir::doctor::test
