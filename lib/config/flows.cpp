// The keys of [[port]] that are about flow rules, and the rule file that one of them names.
#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"
#include "steer/rule_parser.hpp"

namespace weir::pipeline::detail {

namespace {

/// Highest queue that the rule sends packets to; 0 if to none.
std::uint32_t highest_queue(const flow::FlowRule& rule) {
    std::uint32_t highest = 0;
    for (const flow::Action& action : rule.actions) {
        if (action.kind == flow::ActionKind::queue) highest = std::max(highest, action.value);
        if (action.kind == flow::ActionKind::rss)
            for (const std::uint16_t queue : action.rss.queues) highest = std::max<std::uint32_t>(highest, queue);
    }
    return highest;
}

/// What the syntax cannot know: that the rules are about this port, and that it has the queues.
void check_rules(const PortConfig& port, std::uint32_t index) {
    for (const flow::FlowRule& rule : port.rules) {
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

}  // namespace

void read_flow_keys(TableReader& table, std::uint32_t index, PortConfig& port) {
    port.steer = table.choice("steer", steer_names).value_or(port.steer);
    port.on_refusal = table.choice("on_refusal", refusal_names).value_or(port.on_refusal);
    port.isolated = table.boolean("isolated").value_or(port.isolated);
    if (port.isolated && port.steer == SteerMode::software)
        table.wrong("isolated", "true with steer = \"software\"",
                    "false: a device that is given no rules hands nothing over when it is isolated");
    const auto flows = table.text("flows");
    if (!flows) return;
    std::filesystem::path path = *flows;
    if (path.is_relative()) path = std::filesystem::path(table.file()).parent_path() / path;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        table.wrong("flows", fmt::format("{} ({} is not a file)", in_quotes(*flows), path.string()),
                    "a rule file that exists; the path is relative to the configuration's folder");
    // Absolute, so that what --print-config shows means the same from everywhere.
    path = std::filesystem::absolute(path, error).lexically_normal();
    port.flows = path.string();
    port.rules = flow::load_rules(path);
    check_rules(port, index);
}

void check_mark(const TableReader& table, const PortConfig& port, std::uint32_t mark) {
    const bool given = std::ranges::any_of(port.rules, [&](const flow::FlowRule& rule) {
        return std::ranges::any_of(rule.actions, [&](const flow::Action& action) {
            return action.kind == flow::ActionKind::mark && action.value == mark;
        });
    });
    if (given) return;
    table.wrong("mark", std::to_string(mark),
                port.flows.empty()
                    ? fmt::format("a mark that a rule gives: port {} has no flows", in_quotes(port.name))
                    : fmt::format("a mark that a rule gives: none in {} has \"mark id {}\"", port.flows, mark));
}

}  // namespace weir::pipeline::detail
