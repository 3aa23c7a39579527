// EAL that stays: what comes later takes what it needs from it, or is told what is not there. The tests' environment
// started it, with lcore 0 and net_null, and memory that is resident.
#include "port/eal.hpp"

#include <gtest/gtest.h>
#include <rte_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "port/ring.hpp"

namespace weir::port {

namespace {

/// What start_eal() says; empty if nothing.
std::string said(const std::function<void(EalConfig&)>& ask) {
    EalConfig config;
    config.drivers = Drivers::value_type();
    ask(config);
    try {
        start_eal(config);
    } catch (const core::RunError& error) {
        return error.what();
    }
    return {};
}

TEST(StandingEal, IsNeitherStartedAgainNorStopped) {
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(said([](EalConfig& config) {
                      config.lcores = {0};
                      config.drivers = {{"net_null"}};
                      config.memory_bytes = 1U << 20U;
                  }),
                  "");
        const Ring<std::uint64_t> ring("still there", 64);
        stop_eal();
    }
    EXPECT_EQ(Ring<std::uint64_t>("still there", 64).count(), 0);
}

TEST(StandingEal, DoesNotEndWithTheProcessAsPoolsAreToldOtherwise) {
    end_with_process();
    EXPECT_FALSE(ends_with_process());
}

TEST(StandingEal, HasResidentMemoryIfAskedTo) {
    struct Pages {
        std::size_t all = 0;
        std::size_t absent = 0;
    };
    const auto look = [](const rte_memseg_list*, const rte_memseg* segment, std::size_t bytes, void* found) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        std::vector<unsigned char> state(bytes / page);
        if (::mincore(segment->addr, bytes, state.data()) != 0) return -1;
        static_cast<Pages*>(found)->all += state.size();
        static_cast<Pages*>(found)->absent +=
            static_cast<std::size_t>(std::ranges::count_if(state, [](unsigned char one) { return (one & 1U) == 0; }));
        return 0;
    };
    Pages pages;
    ASSERT_EQ(::rte_memseg_contig_walk(look, &pages), 0);
    EXPECT_GE(pages.all, (std::size_t{96} << 20U) / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    EXPECT_EQ(pages.absent, 0);
}

TEST(StandingEal, SaysWhatItLacks) {
    const std::string without = "DPDK runs already, and was started without ";
    EXPECT_EQ(said([](EalConfig& config) { config.lcores = {0, 5}; }), without + "lcore 5");
    EXPECT_EQ(said([](EalConfig& config) {
                  config.drivers = {{"net_null", "net_tap"}};
              }),
              without + "the driver net_tap");
    EXPECT_EQ(said([](EalConfig& config) { config.drivers.reset(); }), without + "all drivers");
    EXPECT_EQ(said([](EalConfig& config) { config.pci = {"0000:01:00.0"}; }), without + "PCI devices");
    EXPECT_EQ(said([](EalConfig& config) { config.telemetry = "a"; }), without + "telemetry");
    EXPECT_TRUE(said([](EalConfig& config) {
                    config.memory_bytes = std::uint64_t{1} << 40U;
                }).starts_with(without + "1099511627776 bytes of memory, of which it has "));
}

}  // namespace

}  // namespace weir::port
