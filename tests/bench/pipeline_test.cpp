#include "bench/pipeline.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/run_config.hpp"
#include "core/error.hpp"

namespace {

using weir::bench::Depth;
using weir::bench::PipelineKind;
using weir::bench::ReceiverSpec;
using weir::bench::ScratchFolder;
using weir::bench::TrialSpec;

const PipelineKind udp_kind{"udp", ""};
const PipelineKind uc_write{"roce-write", "uc"};
const PipelineKind rc_write{"roce-write", "rc"};

TrialSpec pipeline_trial(std::uint32_t bytes, Depth depth) {
    TrialSpec trial;
    trial.plan = {.trial = 1, .bytes = bytes, .packets = 8};
    trial.packets = 800;
    trial.depth = depth;
    return trial;
}

TEST(Pipeline, ItsConfigurationIsOneThatWeirTakes) {
    const ScratchFolder folder;
    ReceiverSpec spec;
    spec.address = "10.1.0.2";
    spec.interface = "lo";
    for (const PipelineKind& kind : {udp_kind, uc_write, rc_write})
        for (const Depth depth : {Depth::assemble, Depth::full})
            for (const bool pinned : {false, true}) {
                if (pinned) spec.cpu = 0;
                std::ofstream(folder.file("run.toml"))
                    << pipeline_config(kind, spec, pipeline_trial(2048, depth), folder.file("run"));
                EXPECT_NO_THROW((void)weir::config::load_config(folder.file("run.toml"))) << kind.transport;
            }
}

TEST(Pipeline, RoceCarriesPowersOfTwo) {
    EXPECT_EQ(pipeline_problem(udp_kind, 8240), "");
    EXPECT_EQ(pipeline_problem(uc_write, 4096), "");
    EXPECT_EQ(pipeline_problem(uc_write, 8240), "RoCE packets carry 256, 512, 1024, 2048 or 4096 bytes, not 8240");
    EXPECT_NE(pipeline_problem(uc_write, 128), "");
}

TEST(Pipeline, TheCountsAreThoseOfTheReport) {
    nlohmann::json report{{"balanced", true},
                          {"device_missed", 3},
                          {"packets",
                           {{"received", 107},
                            {"placed", 96},
                            {"unsteered", 2},
                            {"not_for_us", {{"arp", 4}, {"icmp", 1}}},
                            {"dropped", {{"duplicate", 1}, {"late", 3}}}}},
                          {"events", {{"complete", 11}}}};
    const auto counts = counts_of_run(report, pipeline_trial(2048, Depth::full));
    EXPECT_EQ(counts.others, 7U);
    EXPECT_EQ(counts.taken, 100U);
    EXPECT_EQ(counts.received, 96U);
    EXPECT_EQ(counts.duplicates, 1U);
    EXPECT_EQ(counts.messages, 11U);
    EXPECT_EQ(counts.assembled, 88U);
    EXPECT_EQ(counts.kernel_dropped, 3U);
    report["device_missed"] = "unknown";
    EXPECT_FALSE(counts_of_run(report, pipeline_trial(2048, Depth::full)).kernel_dropped);
    report["balanced"] = false;
    EXPECT_THROW((void)counts_of_run(report, pipeline_trial(2048, Depth::full)), weir::core::RunError);
    report.erase("events");
    EXPECT_THROW((void)counts_of_run(report, pipeline_trial(2048, Depth::full)), weir::core::RunError);
}

TEST(Pipeline, AScratchFolderIsGoneWithItsOwner) {
    std::string path;
    {
        const ScratchFolder folder;
        path = folder.file("");
        EXPECT_TRUE(std::filesystem::is_directory(path));
        std::ofstream(folder.file("a")) << "b";
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
