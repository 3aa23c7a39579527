// Commands to a running lcore, which may be held up or have ended. Here, because ThreadSanitizer sees these tests.
#include <gtest/gtest.h>

#include <thread>

#include "roce/responder/queue_pair_control.hpp"

namespace weir::roce {
namespace {

QueuePairCommand command(std::uint32_t source) {
    return {QueuePairCommand::Kind::reset, source, {}};
}

TEST(QueuePairControl, TakesOneCommandAtATime) {
    QueuePairControl control;
    EXPECT_EQ(control.take(), nullptr);
    EXPECT_FALSE(control.answer().has_value());
    ASSERT_TRUE(control.post(command(3)));
    EXPECT_FALSE(control.post(command(4)));
    const QueuePairCommand* taken = control.take();
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->source, 3U);
    EXPECT_EQ(control.take(), nullptr) << "it is being executed";
    EXPECT_FALSE(control.post(command(4)));
    EXPECT_FALSE(control.answer().has_value());
    Responder::Status status;
    status.psn = 77;
    control.finish(status);
    EXPECT_FALSE(control.post(command(4))) << "the answer has not been fetched";
    EXPECT_EQ(control.answer().value_or(Responder::Status{}).psn, 77U);
    EXPECT_FALSE(control.answer().has_value());
    EXPECT_TRUE(control.post(command(4)));
}

TEST(QueuePairControl, TakesBackWhatAnLcoreHasNotBegunWith) {
    QueuePairControl control;
    ASSERT_TRUE(control.post(command(1)));
    EXPECT_TRUE(control.withdraw());
    EXPECT_EQ(control.take(), nullptr);
    ASSERT_TRUE(control.post(command(2)));
    ASSERT_NE(control.take(), nullptr);
    EXPECT_FALSE(control.withdraw()) << "the lcore has it";
    control.finish({});
    EXPECT_TRUE(control.answer().has_value());
}

TEST(QueuePairControl, AnswersEveryCommandOfAnotherThread) {
    constexpr std::uint32_t count = 2000;
    QueuePairControl control;
    std::thread lcore([&] {
        for (std::uint32_t done = 0; done < count;) {
            const QueuePairCommand* taken = control.take();
            if (taken == nullptr) {
                std::this_thread::yield();
                continue;
            }
            Responder::Status status;
            status.psn = taken->source + 1;
            control.finish(status);
            ++done;
        }
    });
    for (std::uint32_t i = 0; i < count; ++i) {
        ASSERT_TRUE(control.post(command(i)));
        std::optional<Responder::Status> answer;
        while (!(answer = control.answer())) std::this_thread::yield();
        ASSERT_EQ(answer->psn, i + 1);
    }
    lcore.join();
}

}  // namespace
}  // namespace weir::roce
