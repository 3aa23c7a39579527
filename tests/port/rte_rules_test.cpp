// A rule as rte_flow has it: the bytes that a driver reads.
#include "port/rte_rules.hpp"

#include <gtest/gtest.h>
#include <rte_byteorder.h>
#include <rte_ethdev.h>

#include "steer/rule_parser.hpp"

namespace {

using namespace weir::steer;

FlowRule rule_of(const std::string& text) {
    return parse_rules("flow create 0 ingress pattern " + text + "\n", "test.flow").at(0);
}

template <class Item>
const Item& as(const void* memory) {
    return *static_cast<const Item*>(memory);
}

TEST(RteRules, ItemsHoldWhatTheRuleSaysInNetworkOrder) {
    const RteRule rte(
        rule_of("eth / ipv4 src is 10.1.0.10 / udp dst spec 50001 dst mask 0xff00 / end actions mark id 3 / queue "
                "index 2 / count / end"),
        5);
    EXPECT_TRUE(rte.problem().empty());
    EXPECT_EQ(rte.attributes().ingress, 1U);
    EXPECT_EQ(rte.attributes().priority, 5U);
    const rte_flow_item* items = rte.items();
    EXPECT_EQ(items[0].type, RTE_FLOW_ITEM_TYPE_ETH);
    EXPECT_EQ(items[0].spec, nullptr);
    ASSERT_EQ(items[1].type, RTE_FLOW_ITEM_TYPE_IPV4);
    EXPECT_EQ(as<rte_flow_item_ipv4>(items[1].spec).hdr.src_addr, rte_cpu_to_be_32(0x0a01000a));
    EXPECT_EQ(as<rte_flow_item_ipv4>(items[1].mask).hdr.src_addr, 0xffffffffU);
    EXPECT_EQ(as<rte_flow_item_ipv4>(items[1].mask).hdr.dst_addr, 0U);
    EXPECT_EQ(items[1].last, nullptr);
    ASSERT_EQ(items[2].type, RTE_FLOW_ITEM_TYPE_UDP);
    EXPECT_EQ(as<rte_flow_item_udp>(items[2].spec).hdr.dst_port, rte_cpu_to_be_16(50001 & 0xff00));
    EXPECT_EQ(as<rte_flow_item_udp>(items[2].mask).hdr.dst_port, rte_cpu_to_be_16(0xff00));
    EXPECT_EQ(items[3].type, RTE_FLOW_ITEM_TYPE_END);
    const rte_flow_action* actions = rte.actions();
    EXPECT_EQ(as<rte_flow_action_mark>(actions[0].conf).id, 3U);
    EXPECT_EQ(as<rte_flow_action_queue>(actions[1].conf).index, 2);
    EXPECT_EQ(actions[2].type, RTE_FLOW_ACTION_TYPE_COUNT);
    EXPECT_EQ(actions[3].type, RTE_FLOW_ACTION_TYPE_END);
}

TEST(RteRules, TagsRangesAndIpv6) {
    const RteRule rte(
        rule_of("eth dst is 02:00:00:00:00:01 / vlan vid is 100 pcp is 5 / vlan / ipv6 dst spec fd00:: dst prefix 16 / "
                "udp dst spec 50001 dst last 50008 / end actions rss types ipv6-udp end queues 0 3 end / end"),
        0);
    EXPECT_TRUE(rte.problem().empty());
    const rte_flow_item* items = rte.items();
    EXPECT_EQ(as<rte_flow_item_eth>(items[0].spec).hdr.dst_addr.addr_bytes[0], 2);
    EXPECT_EQ(as<rte_flow_item_eth>(items[0].mask).hdr.dst_addr.addr_bytes[5], 0xff);
    EXPECT_EQ(as<rte_flow_item_vlan>(items[1].spec).hdr.vlan_tci, rte_cpu_to_be_16(100 | 5 << 13));
    EXPECT_EQ(as<rte_flow_item_vlan>(items[1].mask).hdr.vlan_tci, rte_cpu_to_be_16(0xefff));
    EXPECT_EQ(items[2].type, RTE_FLOW_ITEM_TYPE_VLAN);
    EXPECT_EQ(items[2].spec, nullptr);
    const auto& address = as<rte_flow_item_ipv6>(items[3].mask).hdr;
    EXPECT_EQ(address.dst_addr[1], 0xff);
    EXPECT_EQ(address.dst_addr[2], 0);
    EXPECT_EQ(as<rte_flow_item_udp>(items[4].last).hdr.dst_port, rte_cpu_to_be_16(50008));
    const auto& rss = as<rte_flow_action_rss>(rte.actions()[0].conf);
    EXPECT_EQ(rss.queue_num, 2U);
    EXPECT_EQ(rss.queue[1], 3);
    EXPECT_EQ(rss.types, RTE_ETH_RSS_NONFRAG_IPV6_UDP);
}

TEST(RteRules, WhatRteFlowCannotSayIsLeftToWeir) {
    const RteRule rte(rule_of("eth / vlan vid spec 5 vid last 9 vid mask 0xfff pcp is 3 / end actions drop / end"), 0);
    EXPECT_NE(rte.problem().find("no words"), std::string::npos);
}

}  // namespace
