#include "observe/progress.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace {

using namespace weir::observe;
using weir::wire::PacketCounter;

RunSample busy() {
    RunSample sample;
    sample.seconds = 12;
    sample.packets_per_s = 25531;
    sample.gbps = 1.69;
    sample.ledger.events[static_cast<std::size_t>(weir::assemble::EventCounter::complete)] = 196;
    sample.ledger.events[static_cast<std::size_t>(weir::assemble::EventCounter::incomplete_timeout)] = 3;
    sample.ledger.packets[static_cast<std::size_t>(PacketCounter::late)] = 5;
    sample.ledger.packets[static_cast<std::size_t>(PacketCounter::no_room)] = 700;
    sample.ledger.packets[static_cast<std::size_t>(PacketCounter::duplicate)] = 9000;
    sample.ledger.device_missed = 60;
    sample.ledger.sources = {{1000, 805}};
    sample.levels.memory = {50, 100};
    sample.levels.open = {7, 64};
    sample.levels.writer = {4, 16};
    sample.levels.rings = {{"free0", {16, 16}}, {"events0", {3, 100}}, {"steer0.1", {60, 100}}};
    sample.ledger.disk.seconds_left = 11700;
    return sample;
}

TEST(Progress, FitsEveryWidthAndKeepsTheMostImportant) {
    const std::string whole = progress_line(busy(), 1000);
    for (const char* word : {"25531 packets/s", "1.69 Gb/s", "199 events", "3 incomplete", "7 open",
                             "lost 700 no_room, 60 device, 40 missing, ...", "memory 50%", "ring steer0.1 60%",
                             "writer 25%", "disk 3.2 h"})
        EXPECT_NE(whole.find(word), std::string::npos) << word << ": " << whole;
    EXPECT_EQ(whole.find("duplicate"), std::string::npos);
    for (std::size_t width = 1; width <= whole.size() + 5; ++width) {
        const std::string line = progress_line(busy(), width);
        EXPECT_LE(line.size(), width);
        if (width >= 80) {
            EXPECT_NE(line.find("lost 700 no_room"), std::string::npos) << line;
        }
        if (width >= 50) {
            EXPECT_NE(line.find("25531 packets/s"), std::string::npos) << line;
        }
    }
    EXPECT_EQ(progress_line(busy(), whole.size()), whole);
}

TEST(Progress, TheRecorderSaysHowItStands) {
    RunSample sample = busy();
    EXPECT_EQ(progress_line(sample, 1000).find("recorder"), std::string::npos);
    EXPECT_FALSE(progress_json(sample, false).contains("recorder"));
    weir::record::Recorder::Status recorder;
    recorder.mode = weir::config::RecordMode::incomplete;
    recorder.seconds_held = 9.84;
    recorder.files = 2;
    sample.recorder = recorder;
    EXPECT_NE(progress_line(sample, 1000).find("; recorder 9.84 s held, 2 files;"), std::string::npos)
        << progress_line(sample, 1000);
    recorder.saving = true;
    recorder.left_out = 7;
    sample.recorder = recorder;
    EXPECT_NE(progress_line(sample, 1000).find("2 files, saving, 7 left out"), std::string::npos);
    EXPECT_EQ(progress_json(sample, false)["recorder"]["files"], 2);
    recorder.stopped = "the disk is full";
    sample.recorder = recorder;
    EXPECT_NE(progress_line(sample, 1000).find("; recorder stopped, 2 files"), std::string::npos);
    recorder = {};
    recorder.written = 1234;
    sample.recorder = recorder;
    EXPECT_NE(progress_line(sample, 1000).find("; recorder 1234 packets"), std::string::npos);
}

TEST(Progress, AShortTimeToAFullDiskIsInMinutes) {
    RunSample sample = busy();
    sample.ledger.disk.seconds_left = 1800;
    EXPECT_NE(progress_line(sample, 1000).find("disk 30 min"), std::string::npos);
    sample.ledger.disk.seconds_left.reset();
    EXPECT_EQ(progress_line(sample, 1000).find("disk"), std::string::npos);
}

TEST(Progress, OptionsAreWhatIsAcceptedAndNothingElse) {
    EXPECT_EQ(parse_progress("auto").mode, ProgressMode::automatic);
    EXPECT_EQ(parse_progress("line").mode, ProgressMode::line);
    EXPECT_EQ(parse_progress("none").mode, ProgressMode::none);
    EXPECT_EQ(parse_progress("json").mode, ProgressMode::json);
    EXPECT_EQ(parse_progress("json:a.jsonl").file, "a.jsonl");
    for (const char* wrong : {"", "json:", "JSON", "lines", "line:file"})
        EXPECT_THROW(static_cast<void>(parse_progress(wrong)), weir::core::UsageError) << wrong;
}

TEST(Progress, LossesAreOrderedAndHaveNoDuplicatesAmongThem) {
    const auto json = progress_json(busy(), true);
    EXPECT_EQ(json["losses"][0], (nlohmann::json{{"cause", "no_room"}, {"packets", 700}, {"place", "weir"}}));
    EXPECT_EQ(json["losses"].size(), 4u);
    EXPECT_EQ(json["levels"]["rings"]["events0"]["used"], 3);
    EXPECT_TRUE(json.contains("balanced"));
    EXPECT_FALSE(progress_json(busy(), false).contains("balanced"));
}

}  // namespace
