#include "steer/port_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "steer/rule_relations.hpp"

namespace weir::steer {

namespace {

// A few packets may have been on their way when the rule came; a rule that works has none later.
constexpr std::uint64_t wrong_min = 8;
constexpr std::uint64_t right_min = 4;
// So many different flows that all land in one queue of several do not do so by chance.
constexpr int flows_min = 8;

}  // namespace

std::string_view name_of(Where where) noexcept {
    switch (where) {
        case Where::hardware:
            return "hardware";
        case Where::software:
            return "software";
        case Where::refused:
            break;
    }
    return "refused";
}

std::string_view name_of(Effective effective) noexcept {
    switch (effective) {
        case Effective::unverified:
            return "unverified";
        case Effective::verified:
            return "verified";
        case Effective::no:
            return "no";
        case Effective::not_asked:
            break;
    }
    return "";
}

Outcome outcome_of(const FlowRule& rule) {
    Outcome outcome;
    const auto send = [&](std::uint32_t queue) {
        outcome.steers = true;
        if (queue < Outcome::queues_max) outcome.queues[queue / 64] |= std::uint64_t{1} << (queue % 64);
    };
    for (const Action& action : rule.actions) {
        if (action.kind == ActionKind::drop) outcome.drop = true;
        if (action.kind == ActionKind::mark) {
            outcome.marks = true;
            outcome.mark = action.value;
        }
        if (action.kind == ActionKind::queue) send(action.value);
        if (action.kind == ActionKind::rss)
            for (const std::uint16_t queue : action.rss.queues) send(queue);
    }
    return outcome;
}

RuleRuntime::RuleRuntime(std::vector<FlowRule> rules) : classifier(std::move(rules)) {
    for (const FlowRule& rule : classifier.rules()) {
        outcomes.push_back(outcome_of(rule));
        marks |= outcomes.back().marks;
    }
}

PortRules::PortRules(std::vector<FlowRule> rules, const Options& options, RuleDevice* device)
    : options_(options),
      device_(device),
      runtime_(std::move(rules)),
      entries_(this->rules().size()),
      order_(precedence(this->rules())) {
    if (device_ != nullptr && options_.ask_device) install();
    set_mode();
}

PortRules::~PortRules() {
    withdraw_all();
}

void PortRules::install() {
    const std::vector<std::uint32_t> priorities = device_priorities(rules());
    for (const std::uint32_t rule : order_) give(rule, priorities[rule]);
    runtime_.verify.store(any(Where::hardware), std::memory_order_relaxed);
}

/// In order of precedence: what stands before the rule has been decided.
void PortRules::give(std::uint32_t rule, std::uint32_t priority) {
    Entry& entry = entries_[rule];
    const Outcome& outcome = runtime_.outcomes[rule];
    if (!outcome.drop && !outcome.steers) {
        // What a device makes of a rule without a queue or drop is not defined.
        entry.message = "neither queue, rss nor drop: nothing that a device could be asked for";
        return;
    }
    if (const auto first = in_the_way(rule); outcome.drop && first.has_value()) {
        entry.message = fmt::format("would take packets from line {}, which is done in software", rules()[*first].line);
        return;
    }
    const std::string refusal = device_->create(rule, rules()[rule], priority);
    if (refusal.empty()) {
        entry.where = Where::hardware;
        entry.effective = Effective::unverified;
    } else {
        entry.where = options_.fail_on_refusal ? Where::refused : Where::software;
        entry.message = refusal;
    }
}

std::optional<std::uint32_t> PortRules::in_the_way(std::uint32_t rule) const {
    for (const std::uint32_t other : order_) {
        if (other == rule) break;
        if (entries_[other].where != Where::hardware && !same_outcome(rules()[other], rules()[rule]) &&
            may_overlap(rules()[other], rules()[rule]))
            return other;
    }
    return std::nullopt;
}

void PortRules::take_back(std::uint32_t rule, std::string why) {
    device_->destroy(rule);
    entries_[rule].where = Where::software;
    entries_[rule].message = std::move(why);
}

/// What is done in software now may have been protected from a drop by its own place in the device.
void PortRules::take_back_drops() {
    for (const std::uint32_t rule : order_) {
        if (entries_[rule].where != Where::hardware || !runtime_.outcomes[rule].drop) continue;
        if (const auto first = in_the_way(rule); first.has_value()) {
            take_back(rule,
                      fmt::format("would take packets from line {}, which is done in software", rules()[*first].line));
            entries_[rule].effective = Effective::not_asked;
        }
    }
}

void PortRules::judge(std::uint32_t rule, const RuleCounts& counts) {
    Entry& entry = entries_[rule];
    const Outcome& outcome = runtime_.outcomes[rule];
    if (const auto hits = device_->hits(rule); hits.has_value()) entry.hits_hardware = hits;
    const bool counted = entry.hits_hardware.value_or(0) > 0;
    if (counts.wrong >= wrong_min && counts.wrong > counts.right / 8) {
        entry.effective = Effective::no;
        take_back(rule, fmt::format("accepted by the device, and without effect: of {} packets {} arrived otherwise",
                                    counts.right + counts.wrong, counts.wrong));
        return;
    }
    if (counts.wrong > 0) {
        entry.effective = Effective::unverified;
        entry.message = fmt::format("{} of {} packets arrived otherwise", counts.wrong, counts.right + counts.wrong);
        return;
    }
    if (outcome.drop) {
        if (counted) entry.effective = Effective::verified;
        return;
    }
    if (counts.right < right_min) return;
    // Arrival proves something only if the packet would have arrived elsewhere without the rule.
    const bool telling = options_.alone || (!options_.spreads && !outcome.sends_to(0));
    const bool marked = outcome.marks && counts.marked >= right_min;
    const bool many = options_.spreads && std::popcount(counts.flows) >= flows_min;
    if (counted || telling || marked || many) {
        entry.effective = Effective::verified;
        entry.message.clear();
    } else {
        entry.message = "packets arrive where the rule sends them, as they might without it";
    }
}

std::vector<std::uint32_t> PortRules::update(std::span<const RuleCounts> counts) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t rule = 0; rule < entries_.size(); ++rule) {
        entries_[rule].hits = counts[rule].hits;
        entries_[rule].of_streams = counts[rule].of_streams;
        if (entries_[rule].where != Where::hardware) continue;
        judge(rule, counts[rule]);
        if (entries_[rule].effective == Effective::no) found.push_back(rule);
    }
    if (!found.empty()) take_back_drops();
    set_mode();
    return found;
}

void PortRules::withdraw_all() {
    if (device_ == nullptr) return;
    for (std::uint32_t rule = 0; rule < entries_.size(); ++rule)
        if (entries_[rule].where == Where::hardware) device_->destroy(rule);
    device_ = nullptr;
}

bool PortRules::any(Where where) const noexcept {
    return std::ranges::find(entries_, where, &Entry::where) != entries_.end();
}

void PortRules::set_mode() {
    const bool proven = std::ranges::all_of(entries_, [](const Entry& entry) {
        return entry.where == Where::hardware && entry.effective == Effective::verified;
    });
    Looks looks = proven ? Looks::some : Looks::every;
    // Weir's own rules say what its steering by streams does anyway.
    if (options_.own) looks = any(Where::hardware) ? Looks::some : Looks::none;
    if (entries_.empty()) looks = Looks::none;
    if (looks != Looks::every) counted_all_ = false;
    runtime_.looks.store(looks, std::memory_order_relaxed);
}

}  // namespace weir::steer
