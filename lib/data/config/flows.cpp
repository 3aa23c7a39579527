// The keys of [[port]] that are about flow rules, and the rule file that one of them names.
#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"
#include "steer/rule_parser.hpp"

namespace weir::config::detail {

namespace {

/// Highest queue that the rule sends packets to; 0 if to none.
std::uint32_t highest_queue(const steer::FlowRule& rule) {
    std::uint32_t highest = 0;
    for (const steer::Action& action : rule.actions) {
        if (action.kind == steer::ActionKind::queue) highest = std::max(highest, action.value);
        if (action.kind == steer::ActionKind::rss)
            for (const std::uint16_t queue : action.rss.queues) highest = std::max<std::uint32_t>(highest, queue);
    }
    return highest;
}

void read_rules(TableReader& table, PortConfig& port) {
    const std::string flows = *table.text("flows");
    std::filesystem::path path = flows;
    if (path.is_relative()) path = std::filesystem::path(table.file()).parent_path() / path;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        table.wrong("flows", fmt::format("{} ({} is not a file)", in_quotes(flows), path.string()),
                    "a rule file that exists; the path is relative to the configuration's folder");
    // Absolute, so that what --print-config shows means the same from everywhere.
    path = std::filesystem::absolute(path, error).lexically_normal();
    port.flows = path.string();
    port.rules = steer::load_rules(path);
}

}  // namespace

void check_rules(const PortConfig& port, std::uint32_t index) {
    for (const steer::FlowRule& rule : port.rules) {
        if (rule.port != 0 && rule.port != index)
            throw core::UsageError(fmt::format(
                "{}:{}: flow create: found port {}; accepted: {}, because this file belongs to port '{}' ({}:{})",
                port.flows, rule.line, rule.port,
                index == 0 ? std::string("0") : fmt::format("0, or {}, its place in the configuration", index),
                port.name, port.place.file, port.place.line));
        if (const std::uint32_t queue = highest_queue(rule); queue >= port.queues)
            throw core::UsageError(
                fmt::format("{}:{}: flow create: found queue {}; accepted: 0 to {}, because port '{}' has queues = {}",
                            port.flows, rule.line, queue, port.queues - 1, port.name, port.queues));
    }
}

void add_flow_options(OptionTable<PortConfig>& out) {
    out.add("flows", "path",
            "a file of flow rules in testpmd's syntax ([the page](../guides/FLOWS.md)). "
            "Their port number is 0 or the port's place among the `[[port]]` tables, from 0; "
            "their queues are below `queues`. Without it weir writes rules itself, "
            "from the streams, where there are several queues")
        .reads(read_rules)
        .shows([](const PortConfig& port) { return value_of(port.flows); })
        .unset("weir writes the rules itself, and `weir flows print` shows them")
        .usually("none");
    out.choice("steer", steer_names, &PortConfig::steer,
               "`\"rules\"`: rules for the device even where one queue needs none. `\"software\"`: "
               "the device is not asked, weir does what the rules say");
    out.choice("on_refusal", refusal_names, &PortConfig::on_refusal,
               "a rule that the device refuses is done in software with the same meaning, "
               "or ends the run before it begins");
    out.boolean("isolated", &PortConfig::isolated,
                "the device hands over only what a rule matches: no ARP, no ping, nothing unsteered. "
                "Only while every rule is in the device: otherwise weir leaves isolation and says so")
        .check([](TableReader& table, const PortConfig& port) {
            if (port.isolated && port.steer == SteerMode::software)
                table.wrong("isolated", "true with steer = \"software\"",
                            "false: a device that is given no rules hands nothing over when it is isolated");
        });
}

void check_mark(const TableReader& table, const PortConfig& port, std::uint32_t mark) {
    const bool given = std::ranges::any_of(port.rules, [&](const steer::FlowRule& rule) {
        return std::ranges::any_of(rule.actions, [&](const steer::Action& action) {
            return action.kind == steer::ActionKind::mark && action.value == mark;
        });
    });
    if (given) return;
    table.wrong("mark", std::to_string(mark),
                port.flows.empty()
                    ? fmt::format("a mark that a rule gives: port {} has no flows", in_quotes(port.name))
                    : fmt::format("a mark that a rule gives: none in {} has \"mark id {}\"", port.flows, mark));
}

}  // namespace weir::config::detail
