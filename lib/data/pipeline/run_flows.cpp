#include "pipeline/run_flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "plan/stream_rules.hpp"
#include "port/rte_rules.hpp"
#include "wire/packet_counter.hpp"

namespace weir::pipeline {

using steer::Effective;
using steer::PortRules;
using steer::Where;

namespace {

std::string place_of(const std::string& from, const steer::FlowRule& rule) {
    return fmt::format("{}:{}", from, rule.line);
}

/// on_refusal = "fail"
void check_refused(const std::string& port, const std::string& from, const PortRules& rules) {
    std::string text;
    std::size_t refused = 0;
    for (std::size_t i = 0; i < rules.entries().size(); ++i) {
        if (rules.entries()[i].where != Where::refused) continue;
        ++refused;
        text += fmt::format("\n  {}: {}", place_of(from, rules.rules()[i]), rules.entries()[i].message);
    }
    if (refused > 0)
        throw core::RunError(fmt::format("port '{}': on_refusal = \"fail\", and the device refuses {} of {} rules:{}",
                                         port, refused, rules.rules().size(), text));
}

std::size_t count(const PortRules& rules, Where where) {
    return static_cast<std::size_t>(std::ranges::count(rules.entries(), where, &PortRules::Entry::where));
}

}  // namespace

RunFlows::RunFlows(const config::RunConfig& config, const std::vector<std::uint16_t>& owners,
                   const plan::Placement& placement, const Ports& ports) {
    for (std::uint32_t i = 0; i < config.ports.size(); ++i) {
        const config::PortConfig& port_config = config.ports[i];
        Port port;
        port.name = port_config.name;
        port.from = port_config.flows.empty() ? "weir" : port_config.flows;
        std::vector<steer::FlowRule> rules = port_config.rules;
        // In a replay there is no device that could take rules which say what weir does anyway.
        if (port_config.flows.empty() && !ports.empty()) rules = make_own_rules(config, i, owners, placement);
        if (rules.empty())
            port.remark = plan::no_rules_reason(port_config);
        else if (ports.empty())
            port.rules = std::make_unique<PortRules>(std::move(rules), PortRules::Options{}, nullptr);
        else
            give_to_device(port_config, std::move(rules), *ports[i], port);
        ports_.push_back(std::move(port));
    }
}

RunFlows::~RunFlows() = default;

void RunFlows::give_to_device(const config::PortConfig& config, std::vector<steer::FlowRule> rules,
                              const port::LivePort& live, Port& port) {
    auto owned = std::make_unique<port::EthdevRules>(live.id());
    port::EthdevRules* const device = owned.get();
    port.device = std::move(owned);  // outlives the rules, also when one of them is refused
    PortRules::Options options;
    options.own = config.flows.empty();
    options.fail_on_refusal = config.on_refusal == config::RefusalMode::fail;
    options.ask_device = config.steer != config::SteerMode::software;
    options.spreads = config.queues > 1;  // as far as anyone can tell
    if (config.isolated) {
        const std::string refusal = device->isolate(true);
        options.alone = refusal.empty();
        if (!refusal.empty()) port.remark = fmt::format("not isolated: {}", refusal);
        if (!refusal.empty() && options.fail_on_refusal)
            throw core::RunError(fmt::format("port '{}': on_refusal = \"fail\", and the device cannot be isolated: {}",
                                             config.name, refusal));
    }
    port.rules = std::make_unique<PortRules>(rules, options, device);
    check_refused(port.name, port.from, *port.rules);
    const auto outside = std::ranges::find_if(
        port.rules->entries(), [](const PortRules::Entry& entry) { return entry.where != Where::hardware; });
    if (options.alone && outside != port.rules->entries().end()) {
        // What weir is to do it has to see.
        const std::size_t at = static_cast<std::size_t>(outside - port.rules->entries().begin());
        port.remark = fmt::format("not isolated, because a rule is done in software ({}: {})",
                                  place_of(port.from, port.rules->rules()[at]), outside->message);
        port.rules.reset();
        if (const std::string refusal = device->isolate(false); !refusal.empty())
            throw core::RunError(fmt::format("port '{}': leaving isolation: {}", config.name, refusal));
        options.alone = false;
        port.rules = std::make_unique<PortRules>(std::move(rules), options, device);
        check_refused(port.name, port.from, *port.rules);
    }
    port.isolated = options.alone;
}

std::vector<steer::RuleRuntime*> RunFlows::runtimes() const {
    std::vector<steer::RuleRuntime*> all;
    for (const Port& port : ports_) all.push_back(port.rules != nullptr ? &port.rules->runtime() : nullptr);
    return all;
}

std::vector<std::string> RunFlows::update(const RxStages& rx) {
    std::vector<std::string> warnings;
    for (std::size_t p = 0; p < ports_.size(); ++p) {
        Port& port = ports_[p];
        if (port.rules == nullptr) continue;
        std::vector<steer::RuleCounts> counts(port.rules->rules().size());
        for (const auto& stage : rx)
            if (const steer::RuleTally* tallies = stage->rules().tallies(p); tallies != nullptr)
                for (std::size_t i = 0; i < counts.size(); ++i) counts[i].add(tallies[i]);
        for (const std::uint32_t rule : port.rules->update(counts))
            warnings.push_back(
                fmt::format("port {}: the device accepts a rule that does nothing ({}): {}; weir does it", port.name,
                            place_of(port.from, port.rules->rules()[rule]), port.rules->entries()[rule].message));
    }
    return warnings;
}

std::uint64_t RunFlows::dropped_of_streams(const RxStages& rx) const {
    std::uint64_t sum = 0;
    for (std::size_t p = 0; p < ports_.size(); ++p) {
        if (ports_[p].rules == nullptr) continue;
        for (const auto& stage : rx)
            if (const steer::RuleTally* tallies = stage->rules().tallies(p); tallies != nullptr)
                for (std::size_t i = 0; i < ports_[p].rules->rules().size(); ++i)
                    sum += tallies[i].of_streams.load(std::memory_order_relaxed);
    }
    return sum;
}

std::string RunFlows::text() const {
    constexpr std::size_t lines_max = 40;
    std::string text;
    for (const Port& port : ports_) {
        if (port.rules == nullptr) {
            text += fmt::format("flows: port {}: no rules; {}\n", port.name, port.remark);
            continue;
        }
        const PortRules& rules = *port.rules;
        text += fmt::format("flows: port {}: {} rules {}, {} in the device and {} in software{}{}\n", port.name,
                            rules.rules().size(), rules.own() ? "from its streams" : "of " + port.from,
                            count(rules, Where::hardware), count(rules, Where::software),
                            port.isolated ? "; isolated" : "", port.remark.empty() ? "" : "; " + port.remark);
        for (std::size_t i = 0; i < rules.rules().size() && i < lines_max; ++i) {
            const PortRules::Entry& entry = rules.entries()[i];
            text +=
                fmt::format("  line {:3}  {:8}  {}{}\n", rules.rules()[i].line, steer::name_of(entry.where),
                            steer::to_text(rules.rules()[i]), entry.message.empty() ? "" : "  [" + entry.message + "]");
        }
        if (rules.rules().size() > lines_max)
            text += fmt::format("  and {} more, which the report lists\n", rules.rules().size() - lines_max);
    }
    return text;
}

nlohmann::json RunFlows::json() const {
    nlohmann::json ports = nlohmann::json::array();
    for (const Port& port : ports_) {
        nlohmann::json rules = nlohmann::json::array();
        for (std::size_t i = 0; port.rules != nullptr && i < port.rules->rules().size(); ++i) {
            const steer::FlowRule& rule = port.rules->rules()[i];
            const PortRules::Entry& entry = port.rules->entries()[i];
            nlohmann::json row = {
                {"line", rule.line},        {"text", steer::to_text(rule)}, {"where", steer::name_of(entry.where)},
                {"message", entry.message}, {"effective", nullptr},         {"hits", nullptr},
                {"hits_hardware", nullptr}};
            if (entry.effective != Effective::not_asked) row["effective"] = steer::name_of(entry.effective);
            if (port.rules->counted_all()) row["hits"] = entry.hits;
            if (entry.hits_hardware.has_value()) row["hits_hardware"] = *entry.hits_hardware;
            if (port.rules->runtime().outcomes[i].drop) row["dropped_of_streams"] = entry.of_streams;
            rules.push_back(std::move(row));
        }
        ports.push_back({{"port", port.name},
                         {"from", port.rules != nullptr ? port.from : ""},
                         {"isolated", port.isolated},
                         {"remark", port.remark},
                         {"rules", std::move(rules)}});
    }
    return ports;
}

void RunFlows::add_findings(std::vector<Finding>& findings) const {
    for (const Port& port : ports_)
        for (std::size_t i = 0; port.rules != nullptr && i < port.rules->rules().size(); ++i) {
            const PortRules::Entry& entry = port.rules->entries()[i];
            const std::string place = place_of(port.from, port.rules->rules()[i]);
            const std::string_view counter =
                wire::packet_counters[static_cast<std::size_t>(wire::PacketCounter::flow_rule)].name;
            if (entry.effective == Effective::no)
                findings.push_back({std::string(counter), 0, false,
                                    fmt::format("the device of port {} accepts a rule that does nothing ({}): {}; "
                                                "weir did it in software",
                                                port.name, place, entry.message),
                                    "docs/guides/FLOWS.md#who-does-a-rule"});
        }
}

}  // namespace weir::pipeline
