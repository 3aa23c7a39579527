// What EAL is spared, and that nobody else notices.
#include "port/quick_start.hpp"

#include <gtest/gtest.h>
#include <rte_build_config.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <thread>

namespace weir::port {

namespace {

bool sees(const char* path) {
    struct stat64 found {};
    return ::stat64(path, &found) == 0 && S_ISDIR(found.st_mode);
}

TEST(QuickStarts, HideTheFolderOfDriversFromTheirThreadAndOnlyThat) {
    ASSERT_TRUE(sees(RTE_EAL_PMD_PATH));
    {
        const QuickStart quick;
        EXPECT_FALSE(sees(RTE_EAL_PMD_PATH));
        EXPECT_EQ(errno, ENOENT);
        EXPECT_TRUE(sees("/proc/self"));
        bool other = false;
        std::thread([&other] { other = sees(RTE_EAL_PMD_PATH); }).join();
        EXPECT_TRUE(other);
    }
    EXPECT_TRUE(sees(RTE_EAL_PMD_PATH));
    EXPECT_FALSE(sees("/proc/self/nothing"));
}

TEST(QuickStarts, LeaveOtherSleepsAlone) {
    const QuickStart quick;
    const timespec no_time{0, 1};
    EXPECT_EQ(::nanosleep(&no_time, nullptr), 0);
    const timespec wrong{0, 1'000'000'000};
    errno = 0;
    EXPECT_EQ(::nanosleep(&wrong, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST(QuickStarts, FindTheDriversOfPools) {
    EXPECT_TRUE(QuickStart::load_pool_drivers());
}

}  // namespace

}  // namespace weir::port
