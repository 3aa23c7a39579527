#include "serve/cluster_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "serve/node_summary.hpp"

namespace weir::serve {

namespace {

using Clock = std::chrono::steady_clock;
using config::NodeRole;
using nlohmann::json;

constexpr std::array orders{Command::start, Command::stop, Command::new_run, Command::abort};

bool is_in(const Colleagues::Answer& answer, State state) {
    return text_at(answer.summary, "/state") == name_of(state);
}

/// "; builder1: no space left"
void add(std::string& text, const std::string& more) {
    text += (text.empty() ? "" : "; ") + more;
}

std::string error_of(const Colleagues::Answer& answer) {
    return core::printable(text_at(answer.summary, "/error"));
}

std::uint32_t next_run_of(const Colleagues::Answer& answer) {
    constexpr double most = UINT32_MAX - 2;
    return static_cast<std::uint32_t>(std::clamp(number_at(answer.summary, "/next_run"), 0.0, most));
}

/// Whether a run goes on that is to miss it: it is no spare, and not all nodes that are in a run began without it.
bool is_missed(const Colleagues::Node& node, const std::vector<Colleagues::Answer>& answers) {
    if (node.spare) return false;
    bool may_be_absent = false;
    for (const Colleagues::Answer& answer : answers) {
        if (answer.summary.is_null() || is_in(answer, State::idle)) continue;
        const json& names = part_at(answer.summary, "/cluster/may_be_absent");
        may_be_absent = std::find(names.begin(), names.end(), node.name) != names.end();
        if (!may_be_absent) break;
    }
    return !may_be_absent;
}

/// Blocks of which no event is left, as the node that knows of most has them: of these no account of events tells.
double lost_blocks(const std::vector<Colleagues::Answer>& answers, const std::vector<bool>& ran) {
    double most = 0;
    for (std::size_t node = 0; node < answers.size(); ++node) {
        if (!ran[node]) continue;
        double lost = 0;
        for (const char* cause : {"builder_down", "nothing_held", "node_down", "late"})
            lost += number_at(answers[node].summary, fmt::format("/cluster/lost_blocks/{}", cause).c_str());
        most = std::max(most, lost);
    }
    return most;
}

/// Who has lost something, or cannot say whether anything is lost; else that nothing is. Who only manages has no
/// account, and a builder, which has a share of the events, can only say what its own lack.
std::string verdict_of(const std::vector<Colleagues::Node>& nodes, const std::vector<Colleagues::Answer>& answers,
                       const std::vector<bool>& ran) {
    std::string doubts;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        if (!ran[node] || nodes[node].role == NodeRole::manager) continue;
        const std::string error = core::printable(text_at(answers[node].summary, "/last_run/error"));
        if (!error.empty()) add(doubts, fmt::format("{} failed: {}", nodes[node].name, error));
        const std::string lossless = core::printable(text_at(answers[node].summary, "/last_run/lossless"));
        const bool is_share = nodes[node].role == NodeRole::builder && lossless == "unknown";
        if (lossless != "yes" && !is_share) add(doubts, fmt::format("{} lossless {}", nodes[node].name, lossless));
        if (const double incomplete = number_at(answers[node].summary, "/last_run/incomplete");
            nodes[node].role == NodeRole::builder && incomplete > 0)
            add(doubts, fmt::format("{} has {:.0f} incomplete events", nodes[node].name, incomplete));
    }
    if (const double lost = lost_blocks(answers, ran); lost > 0)
        add(doubts, fmt::format("{:.0f} blocks of events were lost whole", lost));
    return doubts.empty() ? "all lossless" : doubts;
}

}  // namespace

std::span<const Command> cluster_commands() noexcept {
    return orders;
}

std::string ClusterOrders::carry_out(const ClusterOrder& order) {
    switch (order.command) {
        case Command::start:
            return start(order);
        case Command::stop:
            return stop();
        case Command::new_run: {
            const std::string ended = stop();
            return ended + "; " + start(order);
        }
        case Command::abort:
            return abort();
        default:
            throw core::RunError(fmt::format("{} is not for a cluster", name_of(order.command)));
    }
}

ClusterOrders::Answers ClusterOrders::ask() {
    Answers answers = colleagues_.ask();
    if (options_.heard) options_.heard(answers);
    return answers;
}

void ClusterOrders::pause() const {
    if (is_given_up_()) throw core::RunError("given up, because somebody asked for something else");
    std::this_thread::sleep_for(options_.pause);
}

/// Empty, or what the node says against it.
std::string ClusterOrders::tell(std::size_t node, std::span<const web::Controls::Value> values, Command command) {
    const web::Controls::Outcome outcome = colleagues_.tell(node, values, name_of(command));
    if (outcome.status < 300) return {};
    return fmt::format("{}: {}", name(node),
                       outcome.message.empty() ? fmt::format("HTTP status {}", outcome.status) : outcome.message);
}

/// All that are not left out. Throws core::RunError if that makes no cluster.
std::vector<std::size_t> ClusterOrders::taking_part(const ClusterOrder& order) const {
    const auto& nodes = colleagues_.nodes();
    for (const std::string& left_out : order.without)
        if (std::ranges::find(nodes, left_out, &Colleagues::Node::name) == nodes.end())
            throw core::RunError(fmt::format("there is no node {}", left_out));
    std::vector<std::size_t> found;
    for (std::size_t node = 0; node < nodes.size(); ++node)
        if (std::ranges::find(order.without, nodes[node].name) == order.without.end()) found.push_back(node);
    for (const NodeRole role : {NodeRole::readout, NodeRole::builder})
        if (std::ranges::none_of(found, [&](std::size_t node) { return nodes[node].role == role; }))
            throw core::RunError(fmt::format("nothing was started: there would be no {}",
                                             role == NodeRole::readout ? "readout node" : "builder"));
    return found;
}

/// Throws core::RunError if not all of those that are wanted can begin, or are in the same run.
ClusterOrders::Beginners ClusterOrders::beginners(const ClusterOrder& order, const Answers& answers) const {
    Beginners found;
    std::string missing;
    for (const std::size_t node : taking_part(order)) {
        const Colleagues::Answer& answer = answers[node];
        const auto number = static_cast<std::uint32_t>(std::clamp(number_at(answer.summary, "/run/number"), 0.0, 4e9));
        const bool may_join = found.number == 0 || found.number == number;
        if (answer.summary.is_null() && colleagues_.nodes()[node].spare) continue;
        if (answer.summary.is_null())
            add(missing, fmt::format("{} is not reached ({})", name(node), answer.error));
        else if (text_at(answer.summary, "/mode") != "serve")
            add(missing, fmt::format("{} is not run by weir serve", name(node)));
        else if (is_in(answer, State::idle))
            found.nodes.push_back(node);
        else if (is_in(answer, State::running) && may_join)
            found.number = number;
        else
            add(missing, fmt::format("{} is {}{}", name(node), core::printable(text_at(answer.summary, "/state")),
                                     may_join ? "" : fmt::format(" in run {}", number)));
    }
    if (!missing.empty()) throw core::RunError("nothing was started: " + missing);
    if (found.nodes.empty())
        throw core::RunError(fmt::format("nothing was started: all nodes are in run {}", found.number));
    return found;
}

std::string ClusterOrders::start(const ClusterOrder& order) {
    const Answers answers = ask();
    const auto [nodes, running] = beginners(order, answers);
    std::uint32_t number = std::max(running, 1U);
    if (running == 0)
        for (const std::size_t node : nodes) number = std::max(number, next_run_of(answers[node]));
    std::vector<web::Controls::Value> values{{"config/run_number", number}};
    if (!order.without.empty()) values.emplace_back("config/without", fmt::format("{}", fmt::join(order.without, " ")));
    if (!order.comment.empty()) values.emplace_back("config/comment", order.comment);
    std::string refused;
    std::vector<std::size_t> told;
    for (const std::size_t node : nodes) {
        if (const std::string why = tell(node, values, Command::start); why.empty())
            told.push_back(node);
        else
            add(refused, why);
    }
    try {
        if (!refused.empty()) throw core::RunError(refused);
        await_running(nodes, number);
    } catch (const core::RunError& error) {
        undo_start(told);
        throw core::RunError(
            fmt::format("run {} was not started{}: {}", number, running == 0 ? "" : " on all nodes", error.what()));
    }
    if (running == 0) return fmt::format("run {}, started on {} nodes", number, nodes.size());
    std::string names;
    for (const std::size_t node : nodes) names += (names.empty() ? "" : ", ") + name(node);
    return fmt::format("run {} goes on, now with {}", number, names);
}

/// Throws core::RunError if one of them cannot begin.
void ClusterOrders::await_running(const std::vector<std::size_t>& nodes, std::uint32_t number) {
    const auto end = Clock::now() + options_.start_wait;
    while (true) {
        const Answers answers = ask();
        std::string waited_for;
        for (const std::size_t node : nodes) {
            const Colleagues::Answer& answer = answers[node];
            if (is_in(answer, State::idle) && !error_of(answer).empty())
                throw core::RunError(fmt::format("{}: {}", name(node), error_of(answer)));
            const bool runs = is_in(answer, State::running) && number_at(answer.summary, "/run/number") == number;
            if (!runs) add(waited_for, name(node));
        }
        if (waited_for.empty()) return;
        if (Clock::now() >= end)
            throw core::RunError(
                fmt::format("after {} s these do not run: {}",
                            std::chrono::duration_cast<std::chrono::seconds>(options_.start_wait).count(), waited_for));
        pause();
    }
}

/// Without those that did not begin there is no run: nothing of it is kept waiting.
void ClusterOrders::undo_start(const std::vector<std::size_t>& nodes) {
    for (const std::size_t node : nodes) static_cast<void>(colleagues_.tell(node, {}, name_of(Command::abort)));
}

/// The nodes that are in the run which is being stopped.
struct ClusterOrders::Stopping {
    std::vector<bool> ran;
    std::vector<bool> told;
    std::vector<std::optional<Clock::time_point>> unheard;  ///< since when a node has not been reached
    std::string trouble;
    double number = 0;  ///< of the run
};

ClusterOrders::Stopping ClusterOrders::begin_stop(const Answers& answers) const {
    const std::size_t count = colleagues_.nodes().size();
    Stopping stopping{std::vector<bool>(count), std::vector<bool>(count), {}, {}, 0};
    stopping.unheard.resize(count);
    for (std::size_t node = 0; node < count; ++node) {
        const Colleagues::Answer& answer = answers[node];
        stopping.ran[node] = !answer.summary.is_null() && !is_in(answer, State::idle);
        if (stopping.ran[node]) stopping.number = std::max(stopping.number, number_at(answer.summary, "/run/number"));
        if (answer.summary.is_null() && is_missed(colleagues_.nodes()[node], answers))
            add(stopping.trouble, fmt::format("{} is not reached ({})", name(node), answer.error));
    }
    if (std::ranges::find(stopping.ran, true) == stopping.ran.end())
        throw core::RunError("no node is in a run" + (stopping.trouble.empty() ? "" : "; " + stopping.trouble));
    return stopping;
}

/// Whether the node still has to end. One that dies meanwhile is not waited for.
bool ClusterOrders::has_to_end(std::size_t node, const Colleagues::Answer& answer, Stopping& stopping) const {
    if (!stopping.ran[node] || is_in(answer, State::idle)) return false;
    std::optional<Clock::time_point>& unheard = stopping.unheard[node];
    if (!answer.summary.is_null()) {
        unheard.reset();
        return true;
    }
    if (!unheard) unheard = Clock::now();
    if (Clock::now() - *unheard < options_.end_wait) return true;
    stopping.ran[node] = false;
    add(stopping.trouble, fmt::format("{} went away meanwhile ({})", name(node), answer.error));
    return false;
}

std::string ClusterOrders::stop() {
    const auto& nodes = colleagues_.nodes();
    Answers answers = ask();
    Stopping stopping = begin_stop(answers);
    std::optional<Clock::time_point> others_by;
    while (true) {
        bool readouts_run = false;
        bool others_run = false;
        const bool all = others_by && Clock::now() >= *others_by;
        for (std::size_t node = 0; node < nodes.size(); ++node) {
            if (!has_to_end(node, answers[node], stopping)) continue;
            const bool is_readout = nodes[node].role == NodeRole::readout;
            (is_readout ? readouts_run : others_run) = true;
            if ((!is_readout && !all) || stopping.told[node] || !is_in(answers[node], State::running)) continue;
            stopping.told[node] = true;
            if (const std::string why = tell(node, {}, Command::stop); !why.empty()) add(stopping.trouble, why);
        }
        if (!readouts_run && !others_run) break;
        if (!readouts_run && !others_by) others_by = Clock::now() + options_.end_wait;
        pause();
        answers = ask();
    }
    std::string text = fmt::format("run {:.0f} ended: {}", stopping.number, verdict_of(nodes, answers, stopping.ran));
    if (!stopping.trouble.empty()) throw core::RunError(text + "; " + stopping.trouble);
    return text;
}

std::string ClusterOrders::abort() {
    const auto& nodes = colleagues_.nodes();
    std::string trouble;
    std::size_t count = 0;
    Answers answers = ask();
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        if (answers[node].summary.is_null() && is_missed(nodes[node], answers))
            add(trouble, fmt::format("{} is not reached ({})", name(node), answers[node].error));
        if (answers[node].summary.is_null() || is_in(answers[node], State::idle)) continue;
        ++count;
        if (const std::string why = tell(node, {}, Command::abort); !why.empty()) add(trouble, why);
    }
    const auto runs = [](const Colleagues::Answer& answer) {
        return !answer.summary.is_null() && !is_in(answer, State::idle);
    };
    const auto end = Clock::now() + options_.start_wait;
    while (count > 0 && std::ranges::any_of(answers, runs) && Clock::now() < end) {
        std::this_thread::sleep_for(options_.pause);
        answers = ask();
    }
    if (!trouble.empty()) throw core::RunError(trouble);
    return count == 0 ? "no node was in a run" : fmt::format("given up on {} nodes", count);
}

}  // namespace weir::serve
