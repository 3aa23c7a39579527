#include "serve/run_list.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "serve/run_log.hpp"
#include "temporary_directory.hpp"

namespace weir::serve {
namespace {

run::ControlledRun::Result result_of(const std::string& failure) {
    run::ControlledRun::Result result;
    result.status = failure.empty() ? 0 : 1;
    result.failure = failure;
    result.report = {{"seconds", 1.5},
                     {"stopped_by", failure.empty() ? "stopped by command" : "the sink failed"},
                     {"lossless", "no"},
                     {"balanced", true},
                     {"packets", {{"received", 20}}}};
    result.report["events"] = {{"complete", 3}, {"incomplete", {{"timeout", 1}, {"evicted", 1}}}, {"written", 2}};
    return result;
}

RunList::Run run_of(std::uint64_t number) {
    RunList::Run run;
    run.number = number;
    run.paths = {"/data/det"};
    return run;
}

/// The only line that such a run leaves in the log when it has ended.
nlohmann::json logged(const RunList& history, const std::string& trouble) {
    const test::TemporaryDirectory folder;
    const std::string path = (folder / "log.jsonl").string();
    EXPECT_EQ(RunLog(path).add(history.log_line(trouble)), "");
    std::ifstream in(path);
    std::string line;
    EXPECT_TRUE(std::getline(in, line));
    return nlohmann::json::parse(line);
}

TEST(RunList, TheLogSaysWhyARunFailed) {
    RunList history;
    const std::string why = "cannot write /data/det-000007: No space left on device";
    history.add(run_of(7), result_of(why));
    const nlohmann::json line = logged(history, why);
    EXPECT_EQ(line["run"], 7);
    EXPECT_FALSE(line.contains("number"));
    EXPECT_EQ(line["error"], why);
    EXPECT_EQ(line["stop_reason"], "the sink failed");
    EXPECT_EQ(line["events"], 5);
    EXPECT_EQ(line["written"], 2);
    EXPECT_EQ(history.json()[0]["error"], why);
}

TEST(RunList, TheLogSaysThatAReportCouldNotBeKept) {
    RunList history;
    history.add(run_of(8), result_of(""));
    EXPECT_EQ(logged(history, "")["error"], "");
    EXPECT_EQ(logged(history, "cannot write reports/det-8.json")["error"], "cannot write reports/det-8.json");
    EXPECT_EQ(history.json()[0]["error"], "") << "the run itself has not failed";
}

TEST(RunList, KeepsTheLatestRunsNewestFirst) {
    RunList history;
    EXPECT_TRUE(history.latest().is_null());
    for (std::uint64_t number = 1; number <= RunList::runs_max + 2; ++number)
        history.add(run_of(number), result_of(""));
    EXPECT_EQ(history.json().size(), RunList::runs_max);
    EXPECT_EQ(history.latest()["number"], RunList::runs_max + 2);
}

}  // namespace
}  // namespace weir::serve
