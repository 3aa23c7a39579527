// The timed write leaves nothing behind, and keeps to its limits.
#include "doctor/disk_trial.hpp"

#include <gtest/gtest.h>

#include "recorded_machine.hpp"

namespace weir::doctor::test {
namespace {

TEST(DiskTrial, WritesAndLeavesNothing) {
    const weir::test::TemporaryDirectory folder;
    const DiskTrialResult result = time_writes(folder.path(), {.bytes_max = 16U << 20U, .seconds_max = 60});
    ASSERT_TRUE(result.bytes_per_s) << result.bytes_per_s.why;
    EXPECT_GT(*result.bytes_per_s, 0);
    EXPECT_FALSE(result.how.empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DiskTrial, SaysWhyItCouldNot) {
    const weir::test::TemporaryDirectory folder;
    EXPECT_NE(time_writes(folder / "none", {}).bytes_per_s.why.find("No such file"), std::string::npos);
    EXPECT_FALSE(time_writes("/proc", {}).bytes_per_s);
}

TEST(DiskTrial, LooksAtTheFolderOfEachSinkThatWrites) {
    const RecordedMachine machine;
    machine.write("/data/runs/x", "");
    HostFacts host;
    host.root = machine.root();
    host.mounts = std::vector<Mount>{{"/", "ext4", ""}, {"/data", "xfs", ""}, {"/da", "tmpfs", ""}};
    const config::RunConfig config = config::parse_config(
        "[[port]]\nname = \"det0\"\ndevice = \"net_null0\"\n"
        "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = [50001]\nformat = \"jungfrau\"\n[events]\nsources = 1\n"
        "[[sink]]\nkind = \"events\"\npath = \"/data/runs/{date}/{name}-{run:06}\"\n[[sink]]\nkind = \"hdf5\"\npath = \"/other/x\"\n"
        "[[sink]]\nkind = \"null\"\n",
        "det.toml");
    const std::vector<DiskFacts> disks = look_at_disks(config, host, nullptr);
    ASSERT_EQ(disks.size(), 2U);
    EXPECT_EQ(disks[0].folder, "/data/runs");
    EXPECT_EQ(disks[0].file_system, "xfs");
    EXPECT_TRUE(disks[0].exists);
    EXPECT_FALSE(disks[0].free_bytes);
    EXPECT_EQ(disks[1].sink, "sink hdf5");
    EXPECT_EQ(disks[1].folder, "/other");
    EXPECT_FALSE(disks[1].exists);
}

}  // namespace
}  // namespace weir::doctor::test
