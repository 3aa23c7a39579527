#include "steer/rule_parser.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace {

using namespace weir::steer;

FlowRule one(const std::string& text) {
    const std::vector<FlowRule> rules = parse_rules(text, "a.flow");
    EXPECT_EQ(rules.size(), 1U);
    return rules.at(0);
}

std::string error_of(const std::string& text) {
    try {
        static_cast<void>(parse_rules(text, "a.flow"));
    } catch (const weir::core::UsageError& error) {
        return error.what();
    }
    return "no error";
}

const Condition& condition(const FlowRule& rule, Field field) {
    for (const Condition& found : rule.conditions)
        if (found.field == field) return found;
    ADD_FAILURE() << "no condition";
    return rule.conditions.at(0);
}

TEST(RuleParser, ReadsWhatTestpmdReads) {
    const FlowRule rule =
        one("flow create 0 ingress pattern eth / ipv4 src is 10.1.0.10 / udp dst spec 50001 dst mask 0xffff / end "
            "actions mark "
            "id 3 / queue index 2 / end");
    EXPECT_EQ(rule.line, 1U);
    EXPECT_EQ(rule.port, 0U);
    EXPECT_EQ(rule.priority, 0U);
    EXPECT_EQ(rule.tags, 0);
    EXPECT_TRUE(rule.tags_exact);
    EXPECT_EQ(rule.network, Network::ipv4);
    EXPECT_TRUE(rule.needs_udp);
    EXPECT_EQ(condition(rule, Field::ipv4_src),
              (Condition{Field::ipv4_src, {0, 0x0a01000a}, {0, 0x0a01000a}, {0, 0xffffffff}}));
    EXPECT_EQ(condition(rule, Field::udp_dst), (Condition{Field::udp_dst, {0, 50001}, {0, 50001}, {0, 0xffff}}));
    ASSERT_EQ(rule.actions.size(), 2U);
    EXPECT_EQ(rule.actions[0], (Action{ActionKind::mark, 3, {}}));
    EXPECT_EQ(rule.actions[1], (Action{ActionKind::queue, 2, {}}));
}

TEST(RuleParser, NoItemIsAnyPacket) {
    const FlowRule none = one("flow create 0 ingress pattern end actions queue index 1 / end");
    EXPECT_EQ(to_text(none), to_text(one("flow create 0 ingress pattern eth / end actions queue index 1 / end")));
    EXPECT_TRUE(none.conditions.empty());
    EXPECT_FALSE(none.needs_network);
    EXPECT_FALSE(none.tags_exact);
}

TEST(RuleParser, LinesCommentsAndPriorities) {
    const auto rules = parse_rules(
        "# detectors\n\nflow create 1 priority 5 ingress pattern eth / end actions drop / end # the rest\r\n"
        "  flow create 0 ingress priority 0x2 pattern ipv6 / end actions count / end\n",
        "a.flow");
    ASSERT_EQ(rules.size(), 2U);
    EXPECT_EQ(rules[0].line, 3U);
    EXPECT_EQ(rules[0].port, 1U);
    EXPECT_EQ(rules[0].priority, 5U);
    EXPECT_FALSE(rules[0].tags_exact);
    EXPECT_EQ(rules[1].line, 4U);
    EXPECT_EQ(rules[1].priority, 2U);
    EXPECT_EQ(rules[1].network, Network::ipv6);
}

TEST(RuleParser, AQueuePairNamesItsPort) {
    const FlowRule rule =
        one("flow create 0 ingress pattern eth / ipv4 / udp / ib_bth dst_qp is 0x11 / end actions drop / end");
    EXPECT_EQ(condition(rule, Field::roce_qp).first, (Wide{0, 0x11}));
    EXPECT_EQ(condition(rule, Field::udp_dst).first, (Wide{0, 4791}));
    EXPECT_EQ(
        to_text(rule),
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 4791 / ib_bth dst_qp is 17 / end actions drop / end");
}

TEST(RuleParser, RangesPrefixesAndPartsOfATag) {
    const FlowRule rule =
        one("flow create 0 ingress pattern eth / vlan vid is 100 pcp is 5 / ipv6 dst spec fd00:1:: dst prefix 32 / udp "
            "dst spec "
            "50001 dst last 50008 dst mask 65535 / end actions rss types ipv6-udp end queues 0 1 3 end / end");
    EXPECT_EQ(rule.tags, 1);
    const Condition address = condition(rule, Field::ipv6_dst);
    EXPECT_EQ(address.mask, (Wide{0xffffffff00000000, 0}));
    EXPECT_EQ(address.first, (Wide{0xfd00000100000000, 0}));
    EXPECT_EQ(condition(rule, Field::udp_dst).last, (Wide{0, 50008}));
    std::size_t tags = 0;
    for (const Condition& found : rule.conditions) tags += found.field == Field::vlan_tci ? 1 : 0;
    EXPECT_EQ(tags, 2U);
    EXPECT_EQ(rule.actions[0].rss.queues, (std::vector<std::uint16_t>{0, 1, 3}));
    const FlowRule inner =
        one("flow create 0 ingress pattern eth / vlan vid is 1 / vlan vid is 2 / ipv4 / end actions drop / end");
    EXPECT_EQ(condition(inner, Field::vlan_tci).first.low, 1U);
    EXPECT_EQ(condition(inner, Field::inner_vlan_tci).first.low, 2U);
}

TEST(RuleParser, WhatItPrintsItReadsBack) {
    for (
        const char* text : {
            "flow create 0 ingress pattern eth dst is 02:00:00:00:00:01 type spec 2048 type mask 65535 / end actions "
            "drop / end",
            "flow create 3 priority 7 ingress pattern eth / vlan tci spec 5 tci mask 4095 / vlan pcp is 3 / ipv4 src "
            "spec "
            "10.0.0.0 src prefix 9 tos is 4 / udp src spec 1 src last 9 / end actions count / mark id 8 / rss queues "
            "1 2 end / end",
            "flow create 0 ingress pattern eth / vlan tci spec 5 tci mask 1 vid spec 4 vid mask 2 / end actions drop / "
            "end",
            "flow create 0 ingress pattern eth / vlan pcp spec 1 pcp mask 1 tci spec 0 tci mask 16384 / end actions "
            "drop / end",
            "flow create 0 ingress pattern ipv6 src is fd00::10 hop is 1 proto is 17 / udp / end actions queue index "
            "1 / end",
        }) {
        const FlowRule rule = one(text);
        const FlowRule again = one(to_text(rule));
        EXPECT_EQ(rule, again) << to_text(rule);
        EXPECT_EQ(to_text(rule), to_text(again));
    }
}

TEST(RuleParser, MistakesNameFileLineColumnAndWhatWasExpected) {
    const std::pair<const char*, const char*> cases[] = {
        {"flow create 0 ingress pattern eth / vlan tci is 5 vid is 4 / end actions drop / end",
         "a.flow:1:51: vlan vid: looks at bits that another word of this tag looks at; expected: each bit once"},
        {"flow destroy 0", "a.flow:1:6: found 'destroy'; expected: 'create'"},
        {"\nflow create x", "a.flow:2:13: found 'x'; expected: a port number, 0 to 65535"},
        {"flow create 0 egress", "a.flow:1:15: found 'egress'; expected: 'ingress', 'priority', 'pattern'"},
        {"flow create 0 pattern eth / end", "a.flow:1:15: found 'pattern'; expected: 'ingress' before 'pattern'"},
        {"flow create 0 ingress pattern tcp", "found 'tcp'; expected: an item: eth, ipv4, ipv6"},
        {"flow create 0 ingress pattern eth / udp", "found 'udp'; expected: 'vlan', 'ipv4', 'ipv6' or 'end'"},
        {"flow create 0 ingress pattern eth / ipv4 / ib_bth", "found 'ib_bth'; expected: 'udp' or 'end'"},
        {"flow create 0 ingress pattern eth / ipv4 / udp dst is 5 / ib_bth dst_qp is 7", "a udp whose dst is 4791"},
        {"flow create 0 ingress pattern eth / ipv4 / udp / ib_bth / end", "expected: 'dst_qp' and a value"},
        {"flow create 0 ingress pattern eth / ipv4 / udp / ib_bth dst_qp is 0 / end", "a queue pair above 0"},
        {"flow create 0 ingress pattern eth / ipv4 / tcp", "found 'tcp'; expected: 'udp' or 'end'"},
        {"flow create 0 ingress pattern eth / ipv4 ttl 5", "found '5'; expected: 'is', 'spec', 'last', 'mask'"},
        {"flow create 0 ingress pattern eth / ipv4 sport is 5",
         "found 'sport'; expected: '/', or one of: tos, ttl, proto, src, dst"},
        {"flow create 0 ingress pattern eth / ipv4 src is 10.1.0", "found '10.1.0'; expected: an IPv4 address"},
        {"flow create 0 ingress pattern eth / ipv4 / udp dst is 65536",
         "found '65536'; expected: a value of 16 bits, 0 to 65535"},
        {"flow create 0 ingress pattern eth / ipv4 / udp dst last 5 / end actions drop / end",
         "a.flow:1:48: udp dst: found no value"},
        {"flow create 0 ingress pattern eth / ipv4 / udp dst spec 9 dst last 5 / end actions drop / end",
         "a.flow:1:48: udp dst: 'last' lies below 'spec'"},
        {"flow create 0 ingress pattern eth / end", "a.flow:1:40: found the end of the line; expected: 'actions'"},
        {"flow create 0 ingress pattern eth / end actions jump group 1 / end",
         "found 'jump'; expected: an action: queue, rss, mark, drop, count"},
        {"flow create 0 ingress pattern eth / end actions queue index 1 / drop / end",
         "found 'drop'; expected: one of queue, rss and drop, and no second"},
        {"flow create 0 ingress pattern eth / end actions rss / end", "expected: 'queues' with at least one queue"},
        {"flow create 0 ingress pattern eth / end actions rss types tcp end", "found 'tcp'; expected: a type"},
        {"flow create 0 ingress pattern eth / end actions drop / end now",
         "found 'now'; expected: the end of the line"},
        {"flow create 0 ingress pattern / end actions drop / end", "expected: an item"},
        {"flow create 0 ingress pattern eth actions", "found 'actions'; expected: '/', or one of: dst, src, type"},
    };
    for (const auto& [text, expected] : cases)
        EXPECT_NE(error_of(text).find(expected), std::string::npos) << text << "\n  gave " << error_of(text);
}

TEST(RuleParser, AFileThatIsNotThere) {
    EXPECT_THROW(static_cast<void>(load_rules("/nonexistent/x.flow")), weir::core::UsageError);
}

}  // namespace
