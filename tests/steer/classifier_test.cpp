// The classifier against a linear matcher that reads frames its own way: random rules, random packets.
#include "steer/classifier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "flow_cases.hpp"
#include "rules_of.hpp"
#include "steer/rule_parser.hpp"
#include "steer/rule_relations.hpp"

namespace {

using namespace weir::steer;
using weir::steer::test::FrameSpec;
using weir::steer::test::Random;

TEST(Classifier, BurstsAgreeWithTheLinearMatcher) {
    Random random(std::random_device{}());
    SCOPED_TRACE(random.seed_text());
    for (const std::size_t rule_count : {1U, 3U, 20U, 32U, 70U, 200U}) {
        const std::vector<FlowRule> rules = test::random_rules(random, rule_count);
        const Classifier classifier(rules);
        for (int round = 0; round < 20; ++round) {
            std::vector<test::FrameSpec> specs;
            std::vector<std::vector<std::byte>> bytes;
            for (std::size_t i = 0; i < 1 + random.below(64); ++i) {
                specs.push_back(test::random_frame(random));
                bytes.push_back(specs.back().bytes());
            }
            // Each frame in memory of just its size, so that a sanitizer sees a read beyond it.
            std::vector<Classifier::Frame> frames;
            for (const std::vector<std::byte>& frame : bytes)
                frames.push_back({frame.data(), static_cast<std::uint32_t>(frame.size())});
            std::vector<std::uint32_t> winners(frames.size());
            classifier.match_burst(frames, winners.data());
            for (std::size_t i = 0; i < frames.size(); ++i) {
                const std::uint32_t expected = test::linear_winner(rules, specs[i]);
                ASSERT_EQ(winners[i], expected) << specs[i].text();
                ASSERT_EQ(classifier.match(read_fields(bytes[i])), expected) << specs[i].text();
            }
        }
    }
}

TEST(Classifier, CutFramesGoTheSlowWayAndAgree) {
    Random random(7);
    const Classifier classifier(test::random_rules(random, 40));
    for (int i = 0; i < 50; ++i) {
        const std::vector<std::byte> whole = test::random_frame(random).bytes();
        for (std::size_t length = 0; length <= whole.size(); ++length) {
            const auto cut = std::make_unique<std::byte[]>(length);
            std::copy_n(whole.begin(), length, cut.get());
            const Classifier::Frame frame{cut.get(), static_cast<std::uint32_t>(length)};
            std::uint32_t winner = 0;
            classifier.match_burst({&frame, 1}, &winner);
            ASSERT_EQ(winner, classifier.match(read_fields({cut.get(), length})));
        }
    }
}

TEST(Classifier, WithoutRulesNothingWins) {
    const Classifier classifier{{}};
    const std::array<std::byte, 64> bytes{};
    const std::vector<Classifier::Frame> frames(64, {bytes.data(), 64});
    std::vector<std::uint32_t> winners(64, 5);
    classifier.match_burst(frames, winners.data());
    EXPECT_TRUE(std::ranges::all_of(winners, [](std::uint32_t w) { return w == Classifier::none; }));
}

TEST(Rules, PrintedAndReadAgainAreTheSame) {
    Random random(std::random_device{}());
    SCOPED_TRACE(random.seed_text());
    const std::vector<FlowRule> rules = test::random_rules(random, 500);
    std::string text;
    for (const FlowRule& rule : rules) text += to_text(rule) + "\n";
    const std::vector<FlowRule> again = parse_rules(text, "printed.flow");
    ASSERT_EQ(again.size(), rules.size());
    std::string second;
    for (const FlowRule& rule : again) second += to_text(rule) + "\n";
    EXPECT_EQ(second, text);
}

TEST(RuleRelations, OverlapIsNeverDeniedWhereAPacketMatchesBoth) {
    Random random(std::random_device{}());
    SCOPED_TRACE(random.seed_text());
    const std::vector<FlowRule> rules = test::random_rules(random, 60);
    std::size_t met = 0;
    for (int i = 0; i < 3000; ++i) {
        const test::FrameSpec frame = test::random_frame(random);
        std::vector<std::size_t> matching;
        for (std::size_t r = 0; r < rules.size(); ++r)
            if (test::matches(rules[r], frame)) matching.push_back(r);
        for (const std::size_t a : matching)
            for (const std::size_t b : matching) {
                ++met;
                ASSERT_TRUE(may_overlap(rules[a], rules[b])) << to_text(rules[a]) << "\n" << to_text(rules[b]);
            }
    }
    EXPECT_GT(met, 1000U);
}

TEST(RuleRelations, PrioritiesForADeviceAreAsFewAsDo) {
    const auto rules = rules_of(
        "flow create 0 priority 5 ingress pattern eth / ipv4 / udp dst is 1 / end actions queue index 0 / end\n"
        "flow create 0 priority 5 ingress pattern eth / ipv4 / udp dst is 2 / end actions queue index 1 / end\n"
        "flow create 0 priority 7 ingress pattern eth / ipv4 / udp / end actions drop / end\n"
        "flow create 0 priority 7 ingress pattern eth / ipv4 / end actions queue index 3 / end\n"
        "flow create 0 priority 9 ingress pattern eth / ipv6 / end actions drop / end\n");
    EXPECT_EQ(device_priorities(rules), (std::vector<std::uint32_t>{0, 0, 1, 2, 0}));
}

TEST(RuleRelations, AStreamHasAQueueOnlyWhereAllItsPacketsGoThere) {
    PartialPacket stream;
    stream.shape = {0, Network::ipv4, true};
    stream.set(Field::udp_dst, {0, 50001});
    const auto queue = [&](const std::string& text) { return queue_of(rules_of(text), stream); };
    const std::string front = "flow create 0 ingress pattern eth / ipv4 ";
    EXPECT_EQ(queue(front + "/ udp dst is 50001 / end actions queue index 3 / end\n"), 3);
    EXPECT_EQ(queue(front + "/ udp dst is 50002 / end actions queue index 3 / end\n"), std::nullopt);
    EXPECT_EQ(queue(front + "/ udp / end actions rss queues 2 2 end / end\n"), 2);
    EXPECT_EQ(queue(front + "/ udp / end actions rss queues 1 2 end / end\n"), std::nullopt);
    EXPECT_EQ(queue(front + "/ udp / end actions count / end\n"), std::nullopt);
    // Some packets of the stream go one way, some another, or perhaps.
    const std::string some = front + "src is 10.1.0.10 / udp / end actions queue index 1 / end\n";
    EXPECT_EQ(queue(some), std::nullopt);
    EXPECT_EQ(queue(some + front + "/ udp / end actions queue index 1 / end\n"), 1);
    EXPECT_EQ(queue(some + front + "/ udp / end actions queue index 2 / end\n"), std::nullopt);
    // What is dropped goes nowhere.
    EXPECT_EQ(queue(front + "src is 10.1.0.66 / udp / end actions drop / end\n" + front +
                    "/ udp / end actions queue index 2 / end\n"),
              2);
}

}  // namespace
