#include "core/hot_thread.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

TEST(HotThread, IsAPropertyOfTheThreadThatSaysSo) {
    EXPECT_FALSE(weir::core::is_hot_thread());
    bool other_before = true;
    bool other_after = false;
    weir::core::hot_thread(true);
    const bool here = weir_thread_is_hot();
    weir::core::hot_thread(false);
    std::thread other([&] {
        other_before = weir::core::is_hot_thread();
        weir::core::hot_thread(true);
        other_after = weir_thread_is_hot();
        weir::core::hot_thread(false);
    });
    other.join();
    EXPECT_TRUE(here);
    EXPECT_FALSE(other_before);
    EXPECT_TRUE(other_after);
    EXPECT_FALSE(weir::core::is_hot_thread());
}

}  // namespace
