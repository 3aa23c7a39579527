#include "port/free_memory.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary_directory.hpp"

namespace weir::port {
namespace {

class FreeMemoryTest : public testing::Test {
protected:
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << "\n";
    }

    const test::TemporaryDirectory root_;
};

TEST_F(FreeMemoryTest, IsWhatTheMachineSaysItHas) {
    EXPECT_FALSE(free_memory(root_, "").known);
    write("proc/meminfo", "MemTotal:       24000 kB\nMemFree:  100 kB\nMemAvailable:   20000 kB");
    const FreeMemory found = free_memory(root_, "0::/\n");
    EXPECT_TRUE(found.known);
    EXPECT_EQ(found.bytes, 20000U * 1024);
    EXPECT_NE(found.limited_by.find("MemAvailable"), std::string::npos);
    EXPECT_TRUE(free_memory().known);
}

TEST_F(FreeMemoryTest, IsNoMoreThanTheGroupOrOneAboveItLeaves) {
    write("proc/meminfo", "MemAvailable:   20000 kB");
    write("sys/fs/cgroup/daq/weir/memory.max", "max");
    write("sys/fs/cgroup/daq/weir/memory.current", "1");
    write("sys/fs/cgroup/daq/memory.max", "1000000");
    write("sys/fs/cgroup/daq/memory.current", "400000");
    write("sys/fs/cgroup/daq/memory.stat", "anon 1\nactive_file 100000\ninactive_file 200000");
    const FreeMemory found = free_memory(root_, "0::/daq/weir\n");
    EXPECT_EQ(found.bytes, 900000U) << "pages of files are given up";
    EXPECT_NE(found.limited_by.find("control group /daq"), std::string::npos) << found.limited_by;
    write("sys/fs/cgroup/daq/memory.current", "2000000");
    EXPECT_EQ(free_memory(root_, "0::/daq/weir\n").bytes, 0U);
}

TEST_F(FreeMemoryTest, KnowsGroupsOfTheFirstVersion) {
    write("proc/meminfo", "MemAvailable:   20000 kB");
    write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "5000");
    write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3000");
    write("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 1000");
    EXPECT_EQ(free_memory(root_, "8:pids:/\n4:memory:/box\n").bytes, 3000U);
}

}  // namespace
}  // namespace weir::port
