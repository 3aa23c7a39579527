#include "doctor/rule_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/rule_frame.hpp"
#include "steer/packet_fields.hpp"

namespace weir::doctor {

namespace {

using steer::Effective;
using steer::PortRules;
using steer::Where;

class Trial {
public:
    Trial(PortRules& rules, RuleTraffic& traffic)
        : rules_(rules), traffic_(traffic), counts_(rules.rules().size()), sent_(rules.rules().size()) {}

    void run() {
        bool sends = true;
        for (std::uint32_t turn = 0; traffic_.go_on(); ++turn) {
            // A few packets in each turn, each of a flow of its own.
            constexpr std::uint32_t turns_that_send = 16;
            if (sends && turn < turns_that_send) sends = send_one_for_each(turn);
            traffic_.receive([this](const RuleTraffic::Arrival& arrival) { take(arrival); });
            rules_.update(counts_);
            if (turn > turns_that_send && proven()) break;
        }
    }

    [[nodiscard]] RuleOutcome outcome(std::uint32_t rule) const {
        using Effect = RuleOutcome::Effect;
        const PortRules::Entry& entry = rules_.entries()[rule];
        RuleOutcome out{to_text(rules_.rules()[rule]), Effect::not_seen, entry.message};
        if (entry.where == Where::refused)
            out.effect = Effect::refused;
        else if (entry.effective == Effective::no)
            out.effect = Effect::none;
        else if (entry.where == Where::software)
            out.effect = Effect::software;
        else if (entry.effective == Effective::verified || dropped_by_effect(rule))
            out.effect = Effect::verified;
        return out;
    }

private:
    bool send_one_for_each(std::uint32_t variety) {
        for (std::uint32_t rule = 0; rule < counts_.size(); ++rule) {
            if (rules_.entries()[rule].where != Where::hardware) continue;
            const auto frame = rule_frame(rules_.runtime().classifier, rule, variety);
            if (!frame) continue;
            if (!traffic_.send(*frame)) return false;
            ++sent_[rule];
        }
        return true;
    }

    /// As rx lcores count (stages/rx/rx_rules.cpp).
    void take(const RuleTraffic::Arrival& arrival) {
        const steer::PacketFields fields = steer::read_fields(arrival.frame);
        const std::uint32_t winner = rules_.runtime().classifier.match(fields);
        if (winner == steer::Classifier::none) return;
        ++arrived_;
        const steer::Outcome& outcome = rules_.runtime().outcomes[winner];
        const bool marked = !outcome.marks || arrival.mark == outcome.mark;
        const bool right = !outcome.drop && marked && (!outcome.steers || outcome.sends_to(arrival.queue));
        steer::RuleCounts& counts = counts_[winner];
        ++counts.hits;
        ++(right ? counts.right : counts.wrong);
        if (!right) return;
        if (outcome.marks) ++counts.marked;
        const std::uint64_t flow = fields[steer::Field::ipv4_src].low * 31 + fields[steer::Field::udp_src].low;
        counts.flows |= std::uint64_t{1} << (flow % 64);
    }

    /// What was sent for it did not come, while other packets did.
    [[nodiscard]] bool dropped_by_effect(std::uint32_t rule) const {
        constexpr std::uint32_t enough = 8;
        return rules_.runtime().outcomes[rule].drop && sent_[rule] >= enough && counts_[rule].hits == 0 &&
               arrived_ >= enough;
    }

    [[nodiscard]] bool proven() const {
        for (std::uint32_t rule = 0; rule < counts_.size(); ++rule)
            if (rules_.entries()[rule].where == Where::hardware &&
                rules_.entries()[rule].effective != Effective::verified && !dropped_by_effect(rule))
                return false;
        return true;
    }

    PortRules& rules_;
    RuleTraffic& traffic_;
    std::vector<steer::RuleCounts> counts_;
    std::vector<std::uint32_t> sent_;
    std::uint64_t arrived_ = 0;
};

}  // namespace

std::vector<RuleOutcome> try_rules(const std::vector<steer::FlowRule>& rules, const PortRules::Options& options,
                                   steer::RuleDevice& device, RuleTraffic& traffic) {
    PortRules on_device(rules, options, &device);
    Trial trial(on_device, traffic);
    if (on_device.any(Where::hardware)) trial.run();
    std::vector<RuleOutcome> outcomes;
    for (std::uint32_t rule = 0; rule < rules.size(); ++rule) outcomes.push_back(trial.outcome(rule));
    return outcomes;
}

}  // namespace weir::doctor
