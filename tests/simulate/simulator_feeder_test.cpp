#include "simulate/simulator_feeder.hpp"

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>

#include "port/buffers.hpp"
#include "stages/stage.hpp"

namespace weir::simulate {
namespace {

/// A detector that does not wait: what its queue has no room for is missed, and the rest is there.
TEST(SimulatorFeederTest, HasTheQueueThatItIsGiven) {
    constexpr std::uint32_t entries = 50, frames = 256;  // of one event of two JUNGFRAU modules
    port::BufferPool pool("detector", {1024, 9216});
    auto config = SimulatorFeeder::parse_device("sim,format=jungfrau,events=1,rate=1000000", 2, {});
    config.queue_entries = entries;
    SimulatorFeeder detector(config, "detector", pool);
    stages::RunSignals signals;
    detector.start(signals);
    detector.join();
    EXPECT_EQ(detector.emitted(), entries);
    EXPECT_EQ(detector.missed(), frames - entries);
    EXPECT_FALSE(detector.drained());

    std::uint16_t device = 0;
    ASSERT_EQ(::rte_eth_dev_get_port_by_name(detector.device().c_str(), &device), 0);
    rte_eth_conf all_as_it_is{};
    ASSERT_EQ(::rte_eth_dev_configure(device, 1, 0, &all_as_it_is), 0);
    ASSERT_EQ(::rte_eth_rx_queue_setup(device, 0, entries, SOCKET_ID_ANY, nullptr, pool.get()), 0);
    ASSERT_EQ(::rte_eth_dev_start(device), 0);
    std::array<rte_mbuf*, 2 * entries> got{};
    const std::uint16_t count = ::rte_eth_rx_burst(device, 0, got.data(), got.size());
    EXPECT_EQ(count, entries);
    EXPECT_TRUE(detector.drained());
    ::rte_pktmbuf_free_bulk(got.data(), count);
    ::rte_eth_dev_stop(device);
    ::rte_eth_dev_close(device);
}

}  // namespace
}  // namespace weir::simulate
