// What DPDK's thread may still call while a run takes its leave. Two functions of DPDK are this program's own.
#include <gtest/gtest.h>
#include <rte_telemetry.h>

#include <chrono>
#include <future>
#include <optional>

#include "observe/telemetry.hpp"

namespace {

telemetry_cb command = nullptr;
std::promise<void>* entered = nullptr;
std::future<void>* go_on = nullptr;

}  // namespace

extern "C" int rte_telemetry_register_cmd(const char*, telemetry_cb callback, const char*) {
    command = callback;
    return 0;
}

extern "C" int rte_tel_data_start_dict(rte_tel_data*) {
    entered->set_value();
    go_on->wait();
    return 0;
}

namespace weir::observe {
namespace {

TEST(Telemetry, StaysUntilTheAnswerInTheMakingIsMade) {
    std::promise<void> is_in;
    std::promise<void> may_leave;
    std::future<void> leave = may_leave.get_future();
    entered = &is_in;
    go_on = &leave;
    std::optional<Telemetry> telemetry(std::in_place);
    std::future<int> answer = std::async(std::launch::async, [] { return command("/weir/ledger", nullptr, nullptr); });
    is_in.get_future().wait();
    std::future<void> destroyed = std::async(std::launch::async, [&] { telemetry.reset(); });
    EXPECT_EQ(destroyed.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout)
        << "gone while DPDK's thread is about to lock it";
    may_leave.set_value();
    EXPECT_EQ(answer.get(), -1);
    destroyed.wait();
    EXPECT_EQ(command("/weir/ledger", nullptr, nullptr), -1);
}

}  // namespace
}  // namespace weir::observe
