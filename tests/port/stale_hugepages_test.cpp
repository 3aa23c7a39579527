#include "port/stale_hugepages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "temporary_directory.hpp"

namespace weir::port {
namespace {

TEST(StaleHugepages, AreThoseThatNobodyHasLocked) {
    const test::TemporaryDirectory root;
    std::filesystem::create_directory(root / "huge");
    std::filesystem::create_directory(root / "tmp");
    std::ofstream(root / "mounts") << "tmpfs " << (root / "tmp").string() << " tmpfs rw 0 0\n"
                                   << "none " << (root / "huge").string() << " hugetlbfs rw,pagesize=2M 0 0\n"
                                   << "none " << (root / "gone").string() << " hugetlbfs rw 0 0\n";
    for (const char* name : {"huge/weir100map_0", "huge/weir100map_1", "huge/weir200map_0", "huge/other",
                             "huge/weir100map_x", "tmp/weir100map_0"})
        std::ofstream(root / name) << "page";
    const int used = ::open((root / "huge/weir200map_0").c_str(), O_RDWR);
    ASSERT_EQ(::flock(used, LOCK_SH), 0);  // as DPDK does
    EXPECT_EQ(remove_stale_hugepages(root / "mounts"), 2U);
    for (const char* name : {"huge/weir200map_0", "huge/other", "huge/weir100map_x", "tmp/weir100map_0"})
        EXPECT_TRUE(std::filesystem::exists(root / name)) << name;
    EXPECT_FALSE(std::filesystem::exists(root / "huge/weir100map_0"));
    ::close(used);
    EXPECT_EQ(remove_stale_hugepages(root / "mounts"), 1U);
    EXPECT_EQ(remove_stale_hugepages(root / "nothing"), 0U);
}

}  // namespace
}  // namespace weir::port
