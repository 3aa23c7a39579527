// What an earlier run left is closed beside the one that goes on, and there is word of it, whenever that one ends.
#include "run/leftover_runs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include "config/sinks/pcapng.hpp"
#include "store/run_path.hpp"
#include "temporary_directory.hpp"

namespace {

using namespace weir;

/// A capture (pcapng) of one empty packet: section header, interface, packet.
void write_capture(const std::filesystem::path& path) {
    constexpr std::array<std::uint32_t, 20> words{
        0x0A0D'0D0A, 28, 0x1A2B'3C4D, 1, 0xffff'ffff, 0xffff'ffff, 28, 1, 20, 1, 0, 20, 6, 32, 0, 0, 0, 0, 0, 32};
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(sizeof words));
}

TEST(LeftoverRuns, SayWhatTheyDidHoweverSoonTheyAreStopped) {
    const weir::test::TemporaryDirectory directory;
    config::RunConfig config;
    config::SinkConfig sink;
    sink.options = config::RecorderConfig{};
    sink.path = (directory.path() / "c-{run:06}.pcapng").string();
    config.sinks.push_back(sink);
    for (int round = 0; round < 50; ++round) {
        const std::filesystem::path capture = directory.path() / "c-000001.pcapng";
        write_capture(store::hidden_path(capture));
        run::LeftoverRuns leftovers(config, "");
        while (!std::filesystem::exists(capture)) std::this_thread::yield();
        leftovers.stop();
        const auto lines = leftovers.take_lines();
        ASSERT_EQ(lines.size(), 1u) << round;
        EXPECT_NE(lines[0].text.find("recovered"), std::string::npos) << lines[0].text;
        EXPECT_NE(lines[0].text.find("1 packet"), std::string::npos) << lines[0].text;
        std::filesystem::remove(capture);
    }
}

}  // namespace
