// Rules given to devices that are made up: one that does what it accepted, one that says yes and does nothing, one that
// refuses. What is said of each is what it did.
#include "doctor/rule_trial.hpp"

#include <gtest/gtest.h>

#include <map>

#include "doctor/rule_frame.hpp"
#include "steer/rule_parser.hpp"

namespace weir::doctor::test {
namespace {

using steer::FlowRule;
using Effect = RuleOutcome::Effect;

/// Four queues. What no rule matches lands in queue 0, or anywhere if it spreads.
class MadeUpDevice final : public steer::RuleDevice, public RuleTraffic {
public:
    bool works = true;
    bool refuses = false;
    bool can_send = true;
    bool counts = false;
    int turns = 40;

    std::string create(std::uint32_t slot, const FlowRule& rule, std::uint32_t) override {
        if (refuses) return "not supported";
        rules_.emplace(slot, rule);
        return {};
    }
    void destroy(std::uint32_t slot) override { rules_.erase(slot); }
    std::optional<std::uint64_t> hits(std::uint32_t slot) override {
        return counts ? std::optional(hits_[slot]) : std::nullopt;
    }
    bool send(std::span<const std::byte> frame) override {
        if (!can_send) return false;
        waiting_.emplace_back(frame.begin(), frame.end());
        return true;
    }
    void receive(const std::function<void(const Arrival&)>& take) override {
        for (const auto& frame : waiting_) {
            Arrival arrival{frame, 0, {}};
            bool dropped = false;
            for (const auto& [slot, rule] : rules_)
                if (works && matches(rule, frame)) {
                    ++hits_[slot];
                    dropped = apply(rule, arrival);
                    break;
                }
            if (!dropped) take(arrival);
        }
        waiting_.clear();
    }
    bool go_on() override { return turns-- > 0; }
    [[nodiscard]] std::size_t size() const { return rules_.size(); }

private:
    static bool matches(const FlowRule& rule, const std::vector<std::byte>& frame) {
        const steer::PacketFields fields = steer::read_fields(frame);
        if (!rule.fits(fields.shape)) return false;
        for (const steer::Condition& condition : rule.conditions)
            if (!condition.holds(fields[condition.field])) return false;
        return true;
    }
    static bool apply(const FlowRule& rule, Arrival& arrival) {
        bool dropped = false;
        for (const steer::Action& action : rule.actions) {
            if (action.kind == steer::ActionKind::queue) arrival.queue = static_cast<std::uint16_t>(action.value);
            if (action.kind == steer::ActionKind::mark) arrival.mark = action.value;
            if (action.kind == steer::ActionKind::drop) dropped = true;
        }
        return dropped;
    }
    std::map<std::uint32_t, FlowRule> rules_;
    std::map<std::uint32_t, std::uint64_t> hits_;
    std::vector<std::vector<std::byte>> waiting_;
};

std::vector<FlowRule> two_queues_and_a_drop() {
    return steer::parse_rules(
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index 1 / end\n"
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 50002 / end actions queue index 2 / end\n"
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 9999 / end actions drop / end\n",
        "test.flow");
}

std::vector<Effect> effects(const std::vector<RuleOutcome>& outcomes) {
    std::vector<Effect> all;
    for (const RuleOutcome& outcome : outcomes) all.push_back(outcome.effect);
    return all;
}

TEST(RuleTrial, ADeviceThatDoesItsRulesIsVerified) {
    MadeUpDevice device;
    const auto outcomes = try_rules(two_queues_and_a_drop(), {}, device, device);
    EXPECT_EQ(effects(outcomes), (std::vector{Effect::verified, Effect::verified, Effect::verified}));
    EXPECT_NE(outcomes.front().rule.find("50001"), std::string::npos);
    EXPECT_EQ(device.size(), 0U);  // taken out again
}

TEST(RuleTrial, ADeviceThatSaysYesAndDoesNothingIsFoundOut) {
    MadeUpDevice device;
    device.works = false;
    const auto outcomes = try_rules(two_queues_and_a_drop(), {}, device, device);
    EXPECT_EQ(effects(outcomes), (std::vector{Effect::none, Effect::none, Effect::none}));
    EXPECT_NE(outcomes.front().remark.find("arrived otherwise"), std::string::npos) << outcomes.front().remark;
    EXPECT_EQ(device.size(), 0U);
}

TEST(RuleTrial, ADeviceThatRefusesIsQuoted) {
    MadeUpDevice device;
    device.refuses = true;
    auto outcomes = try_rules(two_queues_and_a_drop(), {}, device, device);
    EXPECT_EQ(effects(outcomes), (std::vector{Effect::software, Effect::software, Effect::software}));
    EXPECT_EQ(outcomes.front().remark, "not supported");
    steer::PortRules::Options fail;
    fail.fail_on_refusal = true;
    outcomes = try_rules(two_queues_and_a_drop(), fail, device, device);
    EXPECT_EQ(outcomes.front().effect, Effect::refused);
}

TEST(RuleTrial, WithoutPacketsNothingIsClaimed) {
    MadeUpDevice device;
    device.can_send = false;
    const auto outcomes = try_rules(two_queues_and_a_drop(), {}, device, device);
    EXPECT_EQ(effects(outcomes), (std::vector{Effect::not_seen, Effect::not_seen, Effect::not_seen}));
}

TEST(RuleTrial, ADropIsNotBelievedWhenNothingArrivesAtAll) {
    MadeUpDevice device;
    const auto drop = steer::parse_rules(
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 9999 / end actions drop / end\n", "test.flow");
    EXPECT_EQ(effects(try_rules(drop, {}, device, device)), std::vector{Effect::not_seen});
    device.turns = 40;
    device.counts = true;
    EXPECT_EQ(effects(try_rules(drop, {}, device, device)), std::vector{Effect::verified});
}

TEST(RuleTrial, WhereADeviceSpreadsManyFlowsInOneQueueProveIt) {
    MadeUpDevice device;
    steer::PortRules::Options spreads;
    spreads.spreads = true;
    const auto rules = steer::parse_rules(
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index 0 / end\n", "test.flow");
    EXPECT_EQ(effects(try_rules(rules, spreads, device, device)), std::vector{Effect::verified});
}

TEST(RuleFrame, IsWhatTheRuleIsFor) {
    const std::vector<FlowRule> rules = steer::parse_rules(
        "flow create 0 ingress pattern eth / ipv4 src is 10.1.0.10 / udp dst is 50001 / end actions queue index 1 / end\n"
        "flow create 0 ingress pattern eth / vlan vid is 7 / ipv6 dst is fd00::2 / udp src is 77 / end actions queue index 2 / end\n"
        "flow create 0 ingress pattern eth dst is 02:00:00:00:00:07 / end actions queue index 3 / end\n"
        "flow create 0 ingress pattern eth type is 0x88f7 / end actions queue index 0 / end\n",
        "test.flow");
    const steer::Classifier classifier(rules);
    for (std::uint32_t rule = 0; rule < 3; ++rule)
        for (std::uint32_t variety = 0; variety < 20; ++variety) {
            const auto frame = rule_frame(classifier, rule, variety);
            ASSERT_TRUE(frame) << rule;
            EXPECT_EQ(classifier.match(steer::read_fields(*frame)), rule);
        }
    EXPECT_FALSE(rule_frame(classifier, 3, 0));  // PTP is no UDP
    EXPECT_NE(*rule_frame(classifier, 0, 0), *rule_frame(classifier, 0, 1));
}

TEST(RuleFrame, IsNoneForARuleThatAnEarlierOneHides) {
    const steer::Classifier classifier(steer::parse_rules(
        "flow create 0 ingress pattern eth / ipv4 / udp / end actions queue index 1 / end\n"
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index 2 / end\n",
        "test.flow"));
    EXPECT_TRUE(rule_frame(classifier, 0, 0));
    EXPECT_FALSE(rule_frame(classifier, 1, 0));
}

}  // namespace
}  // namespace weir::doctor::test
