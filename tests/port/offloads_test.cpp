// What is asked of a device, decided for devices that are made up after real ones: their limits and offloads are those
// that DPDK 22.11's drivers report.
#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include "port/offloads.hpp"

namespace {

using namespace weir::port;

DeviceAbilities mlx5() {
    DeviceAbilities device;
    device.driver = "mlx5_pci";
    device.rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_RSS_HASH |
                         RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    device.rss_types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
    device.rx_queues_max = 1024;
    device.mtu_max = 65535;
    device.rx_descriptors = {0, 32768, 1};
    device.tx_descriptors = {0, 32768, 1};
    return device;
}

DeviceAbilities ice() {
    DeviceAbilities device = mlx5();
    device.driver = "net_ice";
    device.mtu_max = 9702;
    device.rx_queues_max = 256;
    device.rx_descriptors = {64, 4096, 32};
    device.tx_descriptors = {64, 4096, 32};
    return device;
}

DeviceAbilities i40e() {
    DeviceAbilities device = ice();
    device.driver = "net_i40e";
    device.rx_offloads &= ~RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    return device;
}

DeviceAbilities af_packet() {
    DeviceAbilities device;
    device.driver = "net_af_packet";
    device.rx_queues_max = 4;
    device.mtu_max = 1500;
    device.rx_descriptors = {UINT16_MAX, 0, 1};  // the driver says nothing: DPDK's own beginning
    device.rx_descriptors.min = 0;
    return device;
}

DeviceRequest request() {
    DeviceRequest request;
    request.room_bytes = 9728;
    return request;
}

using Words = std::vector<std::string>;

std::string why(const OffloadPlan& plan, const std::string& what) {
    for (const OffloadPlan::Without& part : plan.without)
        if (part.what == what) return part.why;
    return "";
}

TEST(Offloads, AskAMlx5ForChecksumsAndTimeStamps) {
    const OffloadPlan plan = plan_offloads(mlx5(), request());
    EXPECT_EQ(plan.rx_offloads, RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TIMESTAMP);
    EXPECT_EQ(plan.got, (Words{"udp_checksum", "timestamp"}));
    EXPECT_TRUE(plan.timestamps);
    EXPECT_EQ(plan.mtu, 9000);
    EXPECT_EQ(plan.rss_types, 0u);  // one queue: nothing to spread
    EXPECT_TRUE(plan.without.empty());
    EXPECT_TRUE(plan.remarks.empty());
}

TEST(Offloads, LeaveAnIceItsVectorPathUnlessToldOtherwise) {
    DeviceRequest wanted = request();
    const OffloadPlan plan = plan_offloads(ice(), wanted);
    EXPECT_FALSE(plan.timestamps);
    EXPECT_NE(why(plan, "timestamp").find("timestamps = \"hardware\""), std::string::npos);
    wanted.options.timestamps = weir::config::Timestamps::hardware;
    EXPECT_TRUE(plan_offloads(ice(), wanted).timestamps);
    wanted.options.timestamps = weir::config::Timestamps::software;
    const OffloadPlan software = plan_offloads(mlx5(), wanted);
    EXPECT_FALSE(software.timestamps);
    EXPECT_EQ(software.asked, Words{"udp_checksum"});  // it was not wanted, so nothing is missing
    EXPECT_TRUE(software.without.empty());
}

TEST(Offloads, SayThatAnI40eHasNoTimeStamps) {
    DeviceRequest wanted = request();
    wanted.options.timestamps = weir::config::Timestamps::hardware;
    const OffloadPlan plan = plan_offloads(i40e(), wanted);
    EXPECT_FALSE(plan.timestamps);
    EXPECT_EQ(plan.rx_offloads, RTE_ETH_RX_OFFLOAD_UDP_CKSUM);
    EXPECT_NE(why(plan, "timestamp").find("does not offer"), std::string::npos);
}

TEST(Offloads, DoWithoutOnAPacketSocket) {
    DeviceRequest wanted = request();
    wanted.queues = 2;
    const OffloadPlan plan = plan_offloads(af_packet(), wanted);
    EXPECT_EQ(plan.rx_offloads, 0u);
    EXPECT_EQ(plan.asked, (Words{"udp_checksum", "rss", "timestamp"}));
    EXPECT_TRUE(plan.got.empty());
    EXPECT_EQ(plan.without.size(), 3u);
    EXPECT_FALSE(plan.mtu.has_value());
    ASSERT_EQ(plan.remarks.size(), 1u);
    EXPECT_NE(plan.remarks[0].find("MTU of 1500, 9000 is left to the device"), std::string::npos);
    EXPECT_EQ(plan.rx_descriptors, 1024);
    EXPECT_NE(offloads_text(plan).find("none; without udp_checksum"), std::string::npos);
}

TEST(Offloads, SpreadSeveralQueuesByWhatTheDeviceCanHash) {
    DeviceRequest wanted = request();
    wanted.queues = 4;
    EXPECT_EQ(plan_offloads(ice(), wanted).rss_types, RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    DeviceAbilities only_addresses = ice();
    only_addresses.rss_types = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_TCP;
    EXPECT_EQ(plan_offloads(only_addresses, wanted).rss_types, RTE_ETH_RSS_IPV4);
}

TEST(Offloads, AskForScatterOnlyWhereFramesAreLongerThanBuffers) {
    DeviceRequest wanted = request();
    wanted.room_bytes = 9000 + 14 + 8;
    EXPECT_EQ(plan_offloads(ice(), wanted).rx_offloads & RTE_ETH_RX_OFFLOAD_SCATTER, 0u);
    wanted.room_bytes -= 1;
    EXPECT_NE(plan_offloads(ice(), wanted).rx_offloads & RTE_ETH_RX_OFFLOAD_SCATTER, 0u);
    EXPECT_NE(why(plan_offloads(af_packet(), wanted), "scatter"), "");
}

TEST(Offloads, LookAtNoChecksumIfToldSo) {
    DeviceRequest wanted = request();
    wanted.options.checksums = weir::config::Checksums::ignore;
    const OffloadPlan plan = plan_offloads(mlx5(), wanted);
    EXPECT_EQ(plan.rx_offloads & RTE_ETH_RX_OFFLOAD_CHECKSUM, 0u);
    EXPECT_NE(why(plan, "udp_checksum").find("ignore"), std::string::npos);
}

TEST(Offloads, FitDescriptorsToTheLimitsAndSaySo) {
    DeviceRequest wanted = request();
    wanted.rx_descriptors = 1000;
    wanted.options.tx_descriptors = 32;
    OffloadPlan plan = plan_offloads(ice(), wanted);
    EXPECT_EQ(plan.rx_descriptors, 1024);
    EXPECT_EQ(plan.tx_descriptors, 64);
    ASSERT_EQ(plan.remarks.size(), 2u);
    EXPECT_NE(plan.remarks[0].find("rx_descriptors = 1000 became 1024: the driver takes 64 to 4096, in steps of 32"),
              std::string::npos);
    wanted.rx_descriptors = 32768;
    EXPECT_EQ(plan_offloads(ice(), wanted).rx_descriptors, 4096);
    DeviceAbilities odd = ice();
    odd.rx_descriptors = {64, 4000, 64};
    EXPECT_EQ(plan_offloads(odd, wanted).rx_descriptors, 3968);
}

TEST(Offloads, ReadWhatADriverSays) {
    rte_eth_dev_info info{};
    info.driver_name = "net_x";
    info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    info.rx_queue_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;  // net_tap names offloads here only
    info.max_mtu = UINT16_MAX;                                // left alone: the frame length is meant
    info.max_rx_pktlen = 1518;
    info.max_rx_queues = 3;
    info.rx_desc_lim = {512, 64, 8, 0, 0};
    const DeviceAbilities device = abilities_of(info);
    EXPECT_EQ(device.driver, "net_x");
    EXPECT_EQ(device.rx_offloads, RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_SCATTER);
    EXPECT_EQ(device.mtu_max, 1500u);
    EXPECT_EQ(device.rx_queues_max, 3);
    EXPECT_EQ(device.rx_descriptors.max, 512);
    EXPECT_EQ(device.rx_descriptors.min, 64);
    EXPECT_EQ(device.rx_descriptors.align, 8);
    info.max_mtu = 9702;
    EXPECT_EQ(abilities_of(info).mtu_max, 9702u);
}

}  // namespace
