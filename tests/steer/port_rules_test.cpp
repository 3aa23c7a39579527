// Who does a rule: a device that takes some rules and does what it took, one that takes all and does nothing, one that
// refuses. Whatever it does, packets end as they would with weir alone, and what does nothing is found out.
#include "steer/port_rules.hpp"
#include "effort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "flow_cases.hpp"
#include "rules_of.hpp"
#include "steer/rule_parser.hpp"
#include "steer/rule_relations.hpp"

namespace {

using namespace weir::steer;
using test::FrameSpec;
using test::Random;

/// Executes what it accepted, by rte_flow's priorities; of equal ones that match, any: here the last.
class FakeDevice final : public RuleDevice {
public:
    std::function<std::string(const FlowRule&)> accepts = [](const FlowRule&) { return ""; };
    bool works = true;
    bool counts = false;

    std::string create(std::uint32_t slot, const FlowRule& rule, std::uint32_t priority) override {
        std::string refusal = accepts(rule);
        if (refusal.empty()) held_[slot] = {rule, priority};
        return refusal;
    }
    void destroy(std::uint32_t slot) override { held_.erase(slot); }
    std::optional<std::uint64_t> hits(std::uint32_t slot) override {
        return counts ? std::optional(hits_[slot]) : std::nullopt;
    }
    [[nodiscard]] std::size_t size() const { return held_.size(); }
    [[nodiscard]] bool has(std::uint32_t slot) const { return held_.contains(slot); }

    struct Arrival {
        bool arrives = true;
        std::uint16_t queue = 0;
        std::optional<std::uint32_t> mark{};
    };
    Arrival receive(const FrameSpec& frame, std::uint16_t otherwise) {
        Arrival arrival{true, otherwise, {}};
        const std::pair<const std::uint32_t, Held>* best = nullptr;
        for (const auto& held : held_)
            if (works && test::matches(held.second.rule, frame) &&
                (best == nullptr || held.second.priority <= best->second.priority))
                best = &held;
        if (best == nullptr) return arrival;
        ++hits_[best->first];
        for (const Action& action : best->second.rule.actions) {
            if (action.kind == ActionKind::drop) arrival.arrives = false;
            if (action.kind == ActionKind::queue) arrival.queue = static_cast<std::uint16_t>(action.value);
            if (action.kind == ActionKind::rss) arrival.queue = action.rss.queues.back();
            if (action.kind == ActionKind::mark) arrival.mark = action.value;
        }
        return arrival;
    }

private:
    struct Held {
        FlowRule rule;
        std::uint32_t priority;
    };
    std::map<std::uint32_t, Held> held_;
    std::map<std::uint32_t, std::uint64_t> hits_;
};

/// What weir makes of a packet that arrived, as its rx lcores do (stages/rx/rx_rules.cpp), and what it counts.
struct Outside {
    bool dropped = false;
    std::optional<std::uint32_t> mark{};
    friend bool operator==(const Outside&, const Outside&) = default;
};

class Lcore {
public:
    explicit Lcore(PortRules& rules) : rules_(rules), counts_(rules.rules().size()) {}

    Outside take(const FrameSpec& frame, const FakeDevice::Arrival& arrival) {
        if (!arrival.arrives) return {true, {}};
        const Looks looks = rules_.runtime().looks.load();
        if (looks == Looks::none || (looks == Looks::some && ++seen_ % RuleRuntime::sample_every != 0))
            return {false, arrival.mark};
        const std::uint32_t winner = rules_.runtime().classifier.match(read_fields(frame.bytes()));
        if (winner == Classifier::none) return {};
        const Outcome& outcome = rules_.runtime().outcomes[winner];
        const bool marked = !outcome.marks || arrival.mark == outcome.mark;
        const bool right = !outcome.drop && marked && (!outcome.steers || outcome.sends_to(arrival.queue));
        RuleCounts& counts = counts_[winner];
        ++counts.hits;
        ++(right ? counts.right : counts.wrong);
        if (right && outcome.marks) ++counts.marked;
        counts.flows |= std::uint64_t{1} << (std::hash<std::string>{}(frame.text()) % 64);
        return {outcome.drop, outcome.marks ? std::optional(outcome.mark) : std::nullopt};
    }
    std::vector<std::uint32_t> update() { return rules_.update(counts_); }

private:
    PortRules& rules_;
    std::vector<RuleCounts> counts_;
    std::uint32_t seen_ = 0;
};

/// What a packet comes to where weir does all rules. (A mark of a packet that is dropped is nobody's.)
Outside alone(const std::vector<FlowRule>& rules, const FrameSpec& frame) {
    const std::uint32_t winner = test::linear_winner(rules, frame);
    if (winner == Classifier::none) return {};
    const Outcome outcome = outcome_of(rules[winner]);
    if (outcome.drop) return {true, {}};
    return {false, outcome.marks ? std::optional(outcome.mark) : std::nullopt};
}

Outside without_mark_of_dropped(Outside outside) {
    if (outside.dropped) outside.mark.reset();
    return outside;
}

const std::string two_queues =
    "flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index 1 / end\n"
    "flow create 0 ingress pattern eth / ipv4 / udp dst is 50002 / end actions queue index 2 / end\n";

FrameSpec frame_to(Random& random, std::uint16_t port) {
    FrameSpec frame;
    do {
        frame = test::random_frame(random);
    } while (!frame.tags.empty() || frame.network != Network::ipv4 || !frame.udp || frame.fragment);
    frame.values[Field::udp_dst] = {0, port};
    return frame;
}

TEST(PortRules, ADeviceWithSomeOfTheRulesChangesNothing) {
    Random random(std::random_device{}());
    SCOPED_TRACE(random.seed_text());
    std::size_t in_device = 0;
    std::size_t dropped_by_device = 0;
    for (int round = 0; round < weir::test::repeated(150); ++round) {
        const std::vector<FlowRule> rules = test::random_rules(random, 1 + random.below(30));
        FakeDevice device;
        const std::size_t share = 1 + random.below(4);
        device.accepts = [&](const FlowRule&) { return random.below(4) < share ? "" : "no"; };
        device.counts = random.one_in(2);
        PortRules port(rules, {.alone = false, .spreads = random.one_in(2)}, &device);
        in_device += device.size();
        Lcore lcore(port);
        for (int i = 0; i < 300; ++i) {
            const FrameSpec frame = test::random_frame(random);
            const auto arrival = device.receive(frame, 0);
            dropped_by_device += arrival.arrives ? 0 : 1;
            ASSERT_EQ(without_mark_of_dropped(lcore.take(frame, arrival)), alone(rules, frame))
                << "round " << round << ": " << frame.text();
            if (i % 50 != 49) continue;
            ASSERT_TRUE(lcore.update().empty()) << "a rule that works was taken for one that does not";
        }
    }
    // How many depends on the rules that came up; none would mean that the device was not at work.
    EXPECT_GT(in_device, 0U);
    EXPECT_GT(dropped_by_device, 0U);
}

TEST(PortRules, ADeviceThatTakesAllAndDoesNothingIsFoundOutAndChangesNothing) {
    Random random(std::random_device{}());
    SCOPED_TRACE(random.seed_text());
    FakeDevice device;
    device.works = false;
    const std::vector<FlowRule> rules = rules_of(
        two_queues +
        "flow create 0 priority 1 ingress pattern eth / ipv4 / udp dst is 80 / end actions drop / end\n"
        "flow create 0 ingress pattern eth / ipv4 / udp dst is 4791 / end actions mark id 4 / queue index 0 / end\n");
    PortRules port(rules, {.spreads = false}, &device);
    EXPECT_EQ(device.size(), 4U);
    Lcore lcore(port);
    std::set<std::uint32_t> found;
    for (int i = 0; i < 400; ++i) {
        const FrameSpec frame = frame_to(random, random.of(std::vector<std::uint16_t>{50001, 50002, 80, 4791, 50003}));
        ASSERT_EQ(without_mark_of_dropped(lcore.take(frame, device.receive(frame, 0))), alone(rules, frame));
        for (const std::uint32_t rule : lcore.update()) found.insert(rule);
    }
    EXPECT_EQ(found, (std::set<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(device.size(), 0U);
    for (const PortRules::Entry& entry : port.entries()) {
        EXPECT_EQ(entry.where, Where::software);
        EXPECT_EQ(entry.effective, Effective::no);
        EXPECT_NE(entry.message.find("without effect"), std::string::npos);
    }
}

TEST(PortRules, WorkingRulesAreVerifiedAndThenOnlySampled) {
    Random random(1);
    FakeDevice device;
    PortRules port(rules_of(two_queues), {.spreads = false}, &device);
    EXPECT_EQ(port.runtime().looks.load(), Looks::every);
    Lcore lcore(port);
    for (int i = 0; i < 100; ++i) {
        const FrameSpec frame = frame_to(random, i % 2 == 0 ? 50001 : 50002);
        static_cast<void>(lcore.take(frame, device.receive(frame, 0)));
        ASSERT_TRUE(lcore.update().empty());
    }
    EXPECT_EQ(port.entries()[0].effective, Effective::verified);
    EXPECT_EQ(port.entries()[1].effective, Effective::verified);
    EXPECT_EQ(port.runtime().looks.load(), Looks::some);
    EXPECT_FALSE(port.counted_all());
    // It stops working (a reset, say): samples tell.
    device.works = false;
    std::vector<std::uint32_t> found;
    for (int i = 0; i < 4000 && found.empty(); ++i) {
        const FrameSpec frame = frame_to(random, 50001);
        static_cast<void>(lcore.take(frame, device.receive(frame, 0)));
        found = lcore.update();
    }
    EXPECT_EQ(found, std::vector<std::uint32_t>{0});
    EXPECT_EQ(port.runtime().looks.load(), Looks::every);
}

TEST(PortRules, ArrivingWhereEverythingArrivesProvesNothing) {
    Random random(2);
    const auto effective = [&](const std::string& text, PortRules::Options options, bool counts,
                               std::uint16_t otherwise) {
        FakeDevice device;
        device.counts = counts;
        PortRules port(rules_of(text), options, &device);
        Lcore lcore(port);
        const FrameSpec frame = frame_to(random, 50001);
        for (int i = 0; i < 20; ++i) static_cast<void>(lcore.take(frame, device.receive(frame, otherwise)));
        static_cast<void>(lcore.update());
        return port.entries()[0].effective;
    };
    const std::string to = "flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index ";
    EXPECT_EQ(effective(to + "0 / end\n", {.spreads = false}, false, 0), Effective::unverified);
    EXPECT_EQ(effective(to + "0 / end\n", {.spreads = false}, true, 0), Effective::verified);
    EXPECT_EQ(effective(to + "0 / end\n", {.alone = true}, false, 0), Effective::verified);
    EXPECT_EQ(effective(to + "1 / end\n", {.spreads = false}, false, 0), Effective::verified);
    EXPECT_EQ(effective(to + "1 / end\n", {.spreads = true}, false, 0), Effective::unverified);  // one flow only
    EXPECT_EQ(effective(to + "0 / mark id 3 / end\n", {.spreads = true}, false, 0), Effective::verified);
}

TEST(PortRules, ADropWaitsForWhatWeirHasToDoFirst) {
    FakeDevice device;
    device.accepts = [](const FlowRule& rule) {
        return has_action(rule, ActionKind::queue) ? "queues: not supported" : "";
    };
    const std::string drop = "flow create 0 priority 3 ingress pattern eth / ipv4 / udp ";
    PortRules port(
        rules_of(two_queues + drop + "dst is 9 / end actions drop / end\n" + drop + "/ end actions drop / end\n"), {},
        &device);
    EXPECT_EQ(port.entries()[0].where, Where::software);
    EXPECT_EQ(port.entries()[0].message, "queues: not supported");
    EXPECT_EQ(port.entries()[2].where, Where::hardware);  // meets neither of the others
    EXPECT_EQ(port.entries()[3].where, Where::software);
    EXPECT_NE(port.entries()[3].message.find("would take packets from line 1"), std::string::npos);
}

TEST(PortRules, RefusalIsToldFromSoftware) {
    FakeDevice device;
    device.accepts = [](const FlowRule&) { return "not today"; };
    PortRules port(rules_of(two_queues), {.fail_on_refusal = true}, &device);
    EXPECT_TRUE(port.any(Where::refused));
    EXPECT_EQ(name_of(port.entries()[0].where), "refused");
    PortRules unasked(rules_of(two_queues), {.fail_on_refusal = true, .ask_device = false}, &device);
    EXPECT_FALSE(unasked.any(Where::refused));
    EXPECT_TRUE(unasked.entries()[0].message.empty());
}

TEST(PortRules, AtTheEndTheDeviceHasNoRuleLeft) {
    FakeDevice device;
    {
        PortRules port(rules_of(two_queues), {}, &device);
        EXPECT_EQ(device.size(), 2U);
    }
    EXPECT_EQ(device.size(), 0U);
}

TEST(PortRules, OwnRulesCostNothingWhereTheDeviceHasNone) {
    FakeDevice device;
    device.accepts = [](const FlowRule&) { return "no"; };
    PortRules none(rules_of(two_queues), {.own = true}, &device);
    EXPECT_EQ(none.runtime().looks.load(), Looks::none);
    device.accepts = [](const FlowRule&) { return ""; };
    PortRules all(rules_of(two_queues), {.own = true}, &device);
    EXPECT_EQ(all.runtime().looks.load(), Looks::some);
}

}  // namespace
