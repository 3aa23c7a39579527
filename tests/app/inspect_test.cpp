// `weir inspect` as its users see it: JSON for scripts, a table for people, exports, images, and clear refusals.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../store/support.hpp"
#include "command.hpp"
#include "core/error.hpp"
#include "core/sha256.hpp"
#include "effort.hpp"
#include "store/run_path.hpp"

namespace weir::app {
Command inspect_entry();
}

namespace weir::store::test {
namespace {

using nlohmann::json;

struct Result {
    int status = 0;
    std::string out;
    std::string err;
};

/// Runs the subcommand with its streams caught.
Result inspect(const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
    std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
    Result result;
    try {
        result.status = app::inspect_entry().execute(args);
    } catch (const core::UsageError& error) {
        result = {2, "", error.what()};
    } catch (const core::RunError& error) {
        result = {1, "", error.what()};
    } catch (const std::exception& error) {
        result = {3, "", error.what()};
    }
    std::cout.rdbuf(old_out);
    std::cerr.rdbuf(old_err);
    if (result.err.empty()) result.err = err.str();
    if (result.out.empty()) result.out = out.str();
    return result;
}

/// Text that was broken to fit a terminal.
std::string in_one_line(const std::string& text) {
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
    return line;
}

class Inspect : public testing::Test {
protected:
    void SetUp() override {
        TestEvent complete = image_event(7, {{1, 2, 3, 4}, {5, 6, 7, 8}});
        TestEvent gaps;
        gaps.id = 8;
        gaps.cause = Cause::timeout;
        gaps.sources.push_back({0, SourceState::partial, 10, {{0, 2}, {7, 8}}, bytes_of("abcdefg"), {}});
        gaps.sources.push_back({1, SourceState::absent, 4, {{0, 4}}, {}, {}});
        TestEvent unknown;
        unknown.id = 9;
        unknown.epoch = 1;
        unknown.cause = Cause::end_of_run;
        unknown.sources.push_back({0, SourceState::size_unknown, 0, {}, bytes_of("xyz"), {}});
        unknown.sources.push_back({1, SourceState::absent_unknown, 0, {}, {}, {}});
        events_ = {complete, gaps, unknown};
        write_run(run_, events_);
    }

    TemporaryDirectory directory_;
    std::filesystem::path run_ = directory_ / "run";
    std::vector<TestEvent> events_;
};

TEST_F(Inspect, TheVerdictAsAnExitStatus) {
    const json all = json::parse(inspect({run_, "--json"}).out);
    ASSERT_EQ(all["run"]["lossless"], "unknown");
    EXPECT_EQ(inspect({run_, "--require-lossless"}).status, 3);
    EXPECT_EQ(inspect({"--require-lossless", run_}).status, 3);
    EXPECT_EQ(inspect({run_, "--require-lossless=known"}).status, 0);
    EXPECT_EQ(inspect({run_, "--require-lossless=no"}).status, 2);
}

TEST_F(Inspect, JsonHasTheKeysThatScriptsRelyOn) {
    const Result result = inspect({run_, "--json", "--digest", "sha256"});
    EXPECT_EQ(result.status, 0);
    const json all = json::parse(result.out);
    EXPECT_EQ(all["verified"], true);
    EXPECT_EQ(all["run"]["name"], "test");
    EXPECT_EQ(all["run"]["closed"], true);
    EXPECT_EQ(all["ledger"]["events"]["written"], 3);
    ASSERT_EQ(all["events"].size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        core::Sha256 digest;
        digest.update(events_[i].payload());
        EXPECT_EQ(all["events"][i]["sha256"], digest.hex());
        EXPECT_EQ(all["events"][i]["id"], events_[i].id);
        EXPECT_EQ(all["events"][i]["epoch"], events_[i].epoch);
        EXPECT_EQ(all["events"][i]["bytes"], events_[i].payload().size());
    }
    const json& gaps = all["events"][1];
    EXPECT_EQ(gaps["complete"], false);
    EXPECT_EQ(gaps["cause"], "timeout");
    EXPECT_EQ(gaps["sources"],
              json::parse(R"([{"id":0,"bytes":7,"missing":[[0,2],[7,1]]},{"id":1,"bytes":0,"missing":[[0,4]]}])"));
    EXPECT_EQ(all["events"][2]["sources"],
              json::parse(R"([{"id":0,"bytes":3,"missing":"unknown"},{"id":1,"bytes":0,"missing":"all"}])"));
    EXPECT_FALSE(all["events"][0].contains("cause"));
    EXPECT_EQ(all["events"][0]["sources"][0]["missing"], json::array());
    EXPECT_EQ(all["events"][0]["last_ns"].get<std::int64_t>() - all["events"][0]["first_ns"].get<std::int64_t>(), 999);
    EXPECT_FALSE(json::parse(inspect({run_, "--json"}).out)["events"][0].contains("sha256"));
}

TEST_F(Inspect, TheTableSaysWhatIsThereAndThatItVerifies) {
    const Result result = inspect({run_});
    EXPECT_EQ(result.status, 0);
    for (const char* part : {"3 events, 1 complete, 2 incomplete", "verified: ", "timeout", "2 gaps, 3 B missing",
                             "source 1: nothing came", "size never learnt", "begun 20"})
        EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
}

TEST_F(Inspect, LongTablesAreCutUnlessAllIsAskedFor) {
    std::vector<TestEvent> many;
    for (std::uint64_t id = 0; id < 25; ++id) many.push_back(image_event(id + 100, {{1}}));
    write_run(directory_ / "many", many);
    const std::string shortened = inspect({directory_ / "many"}).out;
    EXPECT_EQ(shortened.find(" 120 "), std::string::npos);
    EXPECT_NE(shortened.find("5 more"), std::string::npos);
    EXPECT_NE(inspect({directory_ / "many", "--all"}).out.find(" 124 "), std::string::npos);
}

TEST_F(Inspect, NothingIsWiderThanATerminal) {
    TestEvent large = events_[1];
    large.id = UINT64_MAX;
    write_run(directory_ / "wide", {large});
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{directory_ / "wide"}, {directory_ / "wide", "--quick"}, {run_}, {"--help"}}) {
        std::istringstream lines(inspect(args).out);
        for (std::string line; std::getline(lines, line);)
            EXPECT_TRUE(line.size() <= 80 || line.find(directory_.path().string()) != std::string::npos) << line;
    }
}

TEST_F(Inspect, TheTextAddsUpWhatIsMissingAndWhy) {
    const std::string out = inspect({run_}).out;
    for (const char* part :
         {"timeout", "end_of_run", "source 0: 3 B in 2 gaps of 1 event; the end, and so the size, of 1 event",
          "source 1: nothing came for 2 events"})
        EXPECT_NE(out.find(part), std::string::npos) << part << "\n" << out;
    const std::string incomplete = inspect({run_, "--incomplete"}).out;
    EXPECT_EQ(incomplete.find(" 7  complete"), std::string::npos);
    EXPECT_NE(incomplete.find(" 8  timeout"), std::string::npos);
    EXPECT_EQ(json::parse(inspect({run_, "--incomplete", "--json"}).out)["events"].size(), 2U);
}

TEST_F(Inspect, QuickListsTheSameAndDoesNotSayVerified) {
    json whole = json::parse(inspect({run_, "--json"}).out);
    const Result quick = inspect({run_, "--quick", "--json"});
    EXPECT_EQ(quick.status, 0);
    json listed = json::parse(quick.out);
    EXPECT_TRUE(listed["verified"].is_null());
    EXPECT_EQ(listed["checked"], "all but the payload");
    EXPECT_EQ(whole["checked"], "everything");
    EXPECT_EQ(listed["events"], whole["events"]);
    EXPECT_EQ(listed["run"], whole["run"]);
    const Result text = inspect({run_, "--quick"});
    EXPECT_EQ(text.status, 0);
    EXPECT_NE(text.out.find("not verified: the payload was not read"), std::string::npos);
}

TEST_F(Inspect, QuickNoticesAnyFlippedByteOutsideThePayload) {
    const std::string whole = inspect({run_, "--json", "--quick"}).out;
    std::size_t noticed = 0;
    for (const char* name : {"events-000000.weir", "index.weir", "manifest.json"}) {
        const std::vector<std::byte> bytes = read_file(run_ / name);
        for (std::size_t at = 0; at < bytes.size(); at += 13) {
            std::vector<std::byte> damaged = bytes;
            damaged[at] ^= std::byte{4};
            write_file(run_ / name, damaged);
            const Result result = inspect({run_, "--json", "--quick"});
            EXPECT_TRUE(result.status == 1 || result.out == whole) << name << " byte " << at;
            noticed += result.status == 1 ? 1 : 0;
        }
        write_file(run_ / name, bytes);
    }
    EXPECT_GT(noticed, 100U);
    std::filesystem::resize_file(run_ / "events-000000.weir",
                                 std::filesystem::file_size(run_ / "events-000000.weir") - 64);
    EXPECT_EQ(inspect({run_, "--quick"}).status, 1);
}

/// Bytes that this process has read with system calls.
std::uint64_t bytes_read() {
    std::ifstream file("/proc/self/io");
    std::string word;
    std::uint64_t bytes = 0;
    file >> word >> bytes;
    return bytes;
}

TEST_F(Inspect, ManyEventsAreListedFromTheIndex) {
    const std::uint64_t count = weir::test::repeated(100'000);
    std::vector<TestEvent> many;
    for (std::uint64_t id = 0; id < count; ++id) many.push_back(image_event(id, {{1, 2, 3}}));
    const auto path = directory_ / "many";
    write_run(path, many);
    const std::uint64_t index = std::filesystem::file_size(path / "index.weir");
    const std::uint64_t segment = std::filesystem::file_size(path / "events-000000.weir");
    const auto read_by = [&](const std::vector<std::string>& args) {
        const std::uint64_t before = bytes_read();
        const Result result = inspect(args);
        EXPECT_EQ(result.status, 0);
        EXPECT_NE(result.out.find(std::to_string(count) + " events"), std::string::npos);
        return bytes_read() - before;
    };
    EXPECT_LT(read_by({path, "--quick"}), index + 200'000);
    // All of it is read once; the index, which says in which order events are listed, and the first block twice.
    EXPECT_LT(read_by({path}), 2 * index + segment + 8'500'000);
    EXPECT_GE(read_by({path}), index + segment);
    const std::string out = directory_ / "one";
    const std::uint64_t before = bytes_read();
    EXPECT_EQ(inspect({path, "--export", std::to_string(count - count / 4), out}).status, 0);
    EXPECT_LT(bytes_read() - before, index + 200'000);
}

TEST_F(Inspect, DamageIsSaidAndExitsWith1) {
    const auto file = run_ / "events-000000.weir";
    auto bytes = read_file(file);
    bytes[bytes.size() - 1] ^= std::byte{1};
    write_file(file, bytes);
    const Result text = inspect({run_});
    EXPECT_EQ(text.status, 1);
    EXPECT_NE(text.out.find("NOT verified"), std::string::npos);
    const Result result = inspect({run_, "--json"});
    EXPECT_EQ(result.status, 1);
    const json all = json::parse(result.out);
    EXPECT_EQ(all["verified"], false);
    EXPECT_EQ(all["events"].size(), 2U);
    EXPECT_FALSE(all["errors"].empty());
}

TEST_F(Inspect, AnUnfinishedRunIsListedAndExitsWith1) {
    {
        RunWriter::Config config;
        config.path = directory_ / "killed";
        config.name = "beam";
        config.run = 12;
        config.start_json = R"({"config": {"a": 1}})";
        RunWriter run(config);
        Pump pump(run);
        for (const TestEvent& event : events_) pump.put(event);
        pump.flush();
        const Result during = inspect({hidden_path(directory_ / "killed")});
        EXPECT_EQ(during.status, 1);
        EXPECT_NE(in_one_line(during.out).find("still being written"), std::string::npos) << during.out;
    }
    EXPECT_EQ(inspect({directory_ / "killed"}).status, 1);
    const auto hidden = hidden_path(directory_ / "killed");
    const Result text = inspect({hidden});
    EXPECT_EQ(text.status, 1);
    const std::string words = in_one_line(text.out);
    EXPECT_NE(words.find("no manifest"), std::string::npos);
    EXPECT_NE(words.find("ended by force"), std::string::npos);
    EXPECT_EQ(words.find("still being written"), std::string::npos);
    const json all = json::parse(inspect({hidden, "--json"}).out);
    EXPECT_EQ(all["events"].size(), 3U);
    EXPECT_EQ(all["verified"], false);
    EXPECT_EQ(all["run"]["name"], "beam");
    EXPECT_EQ(all["run"]["run"], 12);
    EXPECT_EQ(all["run"]["config"]["a"], 1);
    EXPECT_EQ(all["run"]["closed"], false);
    // A directory that lost its manifest is read the same way.
    std::filesystem::remove(run_ / "manifest.json");
    EXPECT_EQ(inspect({run_}).status, 1);
    EXPECT_EQ(json::parse(inspect({run_, "--json"}).out)["events"].size(), 3U);
}

TEST_F(Inspect, ExportFillsGapsWithZerosWhereSizesAreKnown) {
    const auto exported = [&](std::vector<std::string> more) {
        const auto file = directory_ / ("export" + std::to_string(more.size()) + more[0]);
        std::vector<std::string> args{run_, "--export", more[0], file};
        args.insert(args.end(), more.begin() + 1, more.end());
        const Result result = inspect(args);
        EXPECT_EQ(result.status, 0) << result.err;
        EXPECT_TRUE(result.out.empty());
        return read_file(file);
    };
    EXPECT_EQ(exported({"7"}), events_[0].payload());
    EXPECT_EQ(exported({"0:8"}), bytes_of(std::string("\0\0abcde\0fg\0\0\0\0", 14)));
    EXPECT_EQ(exported({"8", "--source", "1"}), bytes_of(std::string(4, '\0')));
    EXPECT_EQ(exported({"0x9"}), bytes_of("xyz"));
}

TEST_F(Inspect, ImagesAndRefusals) {
    const std::string png = directory_ / "a.png";
    const std::vector<std::string> drawn{run_, "--png", "7", png, "--width", "2", "--pixel-bits", "16"};
    EXPECT_EQ(inspect(drawn).status, 0);
    EXPECT_EQ(read_file(png).at(1), std::byte{'P'});
    EXPECT_EQ(inspect(drawn).status, 1);  // exists
    const Result not_an_image = inspect({run_, "--png", "7", directory_ / "b.png", "--width", "2"});
    EXPECT_EQ(not_an_image.status, 1);
    EXPECT_NE(not_an_image.err.find("--pixel-bits"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "b.png"));
    EXPECT_EQ(inspect({run_, "--export", "7", png}).status, 1);
    EXPECT_EQ(inspect({run_, "--export", "1:7", directory_ / "c"}).status, 1);
    EXPECT_EQ(inspect({run_, "--export", "7", directory_ / "c", "--source", "5"}).status, 1);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "c"));
    EXPECT_EQ(inspect({directory_ / "nothing"}).status, 1);
}

TEST_F(Inspect, BadUsageIsAUsageError) {
    const std::string file = directory_ / "f";
    for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
             {},
             {run_, "--digest", "md5"},
             {run_, "--export", "7"},
             {run_, "--export", "seven", file},
             {run_, "--export", "-1", file},
             {run_, "--export", "1:", file},
             {run_, "--export", "7", file, "--export", "7", file},
             {run_, "--width", "5"},
             {run_, "--pixel-bits", "8"},
             {run_, "--png", "7", file, "--width", "2", "--pixel-bits", "10"},
             {run_, "--source", "5"},
             {run_, "--quick", "--verify"},
             {run_, "--json", "--quick", "--digest", "sha256"},
         })
        EXPECT_EQ(inspect(args).status, 2) << (args.size() > 1 ? args[1] : "no arguments");
    // These are Boost's own errors, which the program turns into exit status 2.
    EXPECT_EQ(inspect({run_, "--jsn"}).status, 3);
    EXPECT_EQ(inspect({run_, "another"}).status, 3);
    const Result help = inspect({"--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("examples:"), std::string::npos);
}

}  // namespace
}  // namespace weir::store::test
