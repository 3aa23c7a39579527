#include "serve/cluster_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "pipeline/wall_clock.hpp"
#include "serve/node_summary.hpp"
#include "serve/time_text.hpp"
#include "web/tree.hpp"

namespace weir::serve {

namespace {

using nlohmann::json;

constexpr std::size_t order_comment_bytes_max = 4096;

constexpr const char* role_text(config::NodeRole role) {
    return role == config::NodeRole::readout ? "readout" : role == config::NodeRole::builder ? "builder" : "manager";
}

/// Who waits for whom, in seconds since the run began: what readout nodes wait for at builders, and builders at them.
void add_waits(json& waits, const std::string& name, const json& list, const char* key) {
    if (!list.is_array()) return;
    for (const json& partner : list)
        if (const double waited_s = number_at(partner, key); waited_s > 0)
            waits.push_back({{"node", name}, {"for", text_at(partner, "/node")}, {"total_s", waited_s}});
}

void add_losses(json& losses, const std::string& name, const json& list) {
    if (!list.is_array()) return;
    for (const json& partner : list) {
        json line = {{"builder", name}, {"readout", text_at(partner, "/node")}};
        double sum = 0;
        for (const char* cause : {"node_down", "not_held", "late"}) {
            const double parts = number_at(partner, fmt::format("/missing/{}", cause).c_str());
            line[cause] = static_cast<std::uint64_t>(std::max(parts, 0.0));
            sum += parts;
        }
        if (sum > 0) losses.push_back(std::move(line));
    }
}

/// "share": of the time since `before` that the node waited, 0 to 1 where it waits in one place.
void add_shares(json& waits, const json& before, double seconds) {
    std::map<std::pair<std::string, std::string>, double> earlier;
    if (before.is_array())
        for (const json& wait : before)
            earlier[{text_at(wait, "/node"), text_at(wait, "/for")}] = number_at(wait, "/total_s");
    for (json& wait : waits) {
        const auto found = earlier.find({text_at(wait, "/node"), text_at(wait, "/for")});
        const double since = number_at(wait, "/total_s") - (found == earlier.end() ? 0 : found->second);
        wait["share"] = found == earlier.end() || seconds <= 0 || since < 0 ? 0.0 : since / seconds;
    }
}

/// What all that were reached have in common; null: nothing.
json common_of(const json& nodes, const char* pointer) {
    json common;
    bool first = true;
    for (const json& node : nodes) {
        if (!node.value("reached", false)) continue;
        const json& value = part_at(node, pointer);
        if (!std::exchange(first, false) && value != common) return nullptr;
        common = value;
    }
    return common;
}

std::vector<std::string> names_in(const json& list) {
    std::vector<std::string> names;
    for (const json& name : list) names.push_back(name.get<std::string>());
    return names;
}

bool is_list_of_texts(const json& value) {
    return value.is_array() && std::ranges::all_of(value, [](const json& text) { return text.is_string(); });
}

}  // namespace

json cluster_document(const std::vector<Colleagues::Node>& nodes, const std::vector<Colleagues::Answer>& answers,
                      const json& before, double seconds) {
    json document = {{"nodes", json::array()}, {"waits", json::array()}, {"losses", json::array()}};
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        const Colleagues::Answer& answer = answers[node];
        json line = answer.summary.is_object() ? answer.summary : json::object();
        line["name"] = nodes[node].name;
        line["role"] = role_text(nodes[node].role);
        line["serve"] = nodes[node].serve;
        line["spare"] = nodes[node].spare;
        line["reached"] = answer.summary.is_object();
        if (!answer.summary.is_object()) line["error"] = answer.error;
        const json& cluster = part_at(line, "/cluster");
        add_waits(document["waits"], nodes[node].name, part_at(cluster, "/readout/builders"), "/waited_s");
        add_waits(document["waits"], nodes[node].name, part_at(cluster, "/builder/readouts"), "/awaited_s");
        add_losses(document["losses"], nodes[node].name, part_at(cluster, "/builder/readouts"));
        document["nodes"].push_back(std::move(line));
    }
    add_shares(document["waits"], part_at(before, "/waits"), seconds);
    const json state = common_of(document["nodes"], "/state");
    document["state"] = state.is_string() ? state : json("mixed");
    document["run"] = common_of(document["nodes"], "/run/number");
    return document;
}

ClusterWatch::ClusterWatch(std::unique_ptr<Colleagues> colleagues, Options options)
    : colleagues_(std::move(colleagues)),
      options_(std::move(options)),
      wanted_(Clock::now() - options_.interest),
      thread_([this] { work(); }) {}

ClusterWatch::~ClusterWatch() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ClusterWatch::add_to(web::Routes& routes) {
    routes.add("GET", "/cluster", [this](const web::Request&) { return web::json_response(document()); });
    routes.add("PUT", "/cluster", [this](const web::Request& request) {
        try {
            const web::Controls::Outcome outcome = order(web::parse_bounded(request.body));
            if (outcome.status >= 300) return web::error_response(outcome.status, outcome.message);
            return web::json_response({{"message", outcome.message}}, outcome.status);
        } catch (const core::UsageError& error) {
            return web::error_response(400, error.what());
        }
    });
}

json ClusterWatch::document() {
    json document;
    {
        const std::lock_guard lock(mutex_);
        wanted_ = Clock::now();
        document = shown_;
        document["name"] = options_.name;
        document["age_s"] = looked_ ? json(std::chrono::duration<double>(wanted_ - *looked_).count()) : json();
        document["rounds"] = rounds_;
        document["allowed"] = json::array();
        for (const Command command : cluster_commands())
            if (options_.controls && (command == Command::abort || (!busy_ && !asked_)))
                document["allowed"].push_back(name_of(command));
        document["command"] = {{"command", last_.command},
                               {"accepted", last_.accepted},
                               {"done", last_.done},
                               {"message", last_.message},
                               {"error", last_.error}};
    }
    changed_.notify_all();
    return document;
}

web::Controls::Outcome ClusterWatch::order(const json& body) {
    if (!options_.controls) return {403, "this node is not run by weir serve: nothing can be changed here"};
    const std::optional<Command> command = command_of(text_at(body, "/execute"));
    if (!command || std::ranges::find(cluster_commands(), *command) == cluster_commands().end())
        return {400, "accepted: {\"execute\": \"start\", \"stop\", \"new_run\" or \"abort\"}"};
    const json& without = part_at(body, "/without");
    if (!without.is_null() && !is_list_of_texts(without)) return {400, "without: accepted: a list of names of nodes"};
    const std::string comment = text_at(body, "/comment");
    if (comment.size() > order_comment_bytes_max)
        return {400, fmt::format("comment: accepted: a text of at most {} bytes", order_comment_bytes_max)};
    {
        const std::lock_guard lock(mutex_);
        if ((busy_ || asked_) && *command != Command::abort)
            return {409, fmt::format("{} is under way", last_.command)};
        asked_ = ClusterOrder{*command, without.is_null() ? std::vector<std::string>() : names_in(without), comment};
        give_up_ = busy_;
        last_ = {std::string(name_of(*command)), time_text(pipeline::wall_ns()), false, "", ""};
    }
    changed_.notify_all();
    return {202, fmt::format("{}: under way", name_of(*command))};
}

/// With the lock.
bool ClusterWatch::wants_look() const {
    const auto now = Clock::now();
    return now - wanted_ < options_.interest && (!looked_ || now - *looked_ >= options_.interval);
}

void ClusterWatch::work() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
        if (asked_) {
            const ClusterOrder order = *std::exchange(asked_, std::nullopt);
            busy_ = true;
            give_up_ = false;
            lock.unlock();
            do_order(order);
            lock.lock();
            busy_ = false;
        } else if (wants_look()) {
            lock.unlock();
            show(colleagues_->ask());
            lock.lock();
        } else {
            changed_.wait_for(lock, options_.interval);
        }
    }
}

void ClusterWatch::show(const std::vector<Colleagues::Answer>& answers) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const double seconds = looked_ ? std::chrono::duration<double>(now - *looked_).count() : 0;
    shown_ = cluster_document(colleagues_->nodes(), answers, shown_, seconds);
    looked_ = now;
    ++rounds_;
}

void ClusterWatch::do_order(const ClusterOrder& order) {
    const auto is_given_up = [this] {
        const std::lock_guard lock(mutex_);
        return give_up_ || ends_;
    };
    ClusterOrders::Options options = options_.orders;
    options.heard = [this](const std::vector<Colleagues::Answer>& answers) { show(answers); };
    std::string message;
    std::string error;
    try {
        message = ClusterOrders(*colleagues_, std::move(options), is_given_up).carry_out(order);
    } catch (const std::exception& failure) {
        error = failure.what();
    }
    show(colleagues_->ask());  // what is shown with the outcome is of after it
    const std::lock_guard lock(mutex_);
    if (asked_) return;  // another one has been asked for since
    last_.done = true;
    last_.message = message;
    last_.error = error;
}

}  // namespace weir::serve
