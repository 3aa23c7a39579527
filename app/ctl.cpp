// `weir ctl`: what a running weir does, and what it is to do.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <thread>

#include "cluster_ask.hpp"
#include "cluster_screen.hpp"
#include "command.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/print_stderr.hpp"
#include "core/printable.hpp"
#include "options_common.hpp"
#include "serve/cluster_order.hpp"
#include "serve/life.hpp"
#include "terminal.hpp"
#include "watch_target.hpp"
#include "watch_text.hpp"
#include "watch_verdict.hpp"

namespace weir::app {

namespace {

namespace po = boost::program_options;
using nlohmann::json;

constexpr std::string_view ctl_intro = R"(usage: weir ctl [options] [COMMAND]

Asks a running weir what it does, or tells it what to do. `weir serve` takes all commands; `weir run` and `weir replay` with a table [serve] only say how they are.

)";

constexpr std::string_view ctl_others =
    R"(  get PATH        a value, or a table as JSON: status/state, rates, where/0/packets
  set PATH VALUE  what the next run is to be: config/duration_s 10

)";

constexpr std::string_view ctl_examples = R"(
examples:
  weir ctl                               of the only weir that runs here
  weir ctl --name det start
  weir ctl set config/duration_s 60
  weir ctl get rates/packets_per_s
  weir ctl --url http://daq1:9321 --token-file token stop
  weir ctl --name det-builder0 --cluster start       a run of all nodes, with one number; asked of any of them
  weir ctl --name det-builder0 --cluster status      how they all are, and who waits for whom

Over the UNIX socket, which is the usual way, who may write to its file may do everything. Over the network changes need the token: docs/guides/WATCHING.md.

exit status: 0 done, 1 refused or failed or nobody answers, 2 bad usage
)";

struct CtlOptions {
    std::vector<std::string> words;
    bool cluster = false;
    std::vector<std::string> without{};  ///< nodes that a run is started without
    std::string comment{};
    bool as_json = false;
    bool waits = true;
    double wait_s = 0;
};

constexpr int accepted_status = 202;

/// As people type it: "new-run".
std::string typed_name(serve::Command command) {
    std::string name(serve::name_of(command));
    std::ranges::replace(name, '_', '-');
    return name;
}

/// As the API calls it: "new-run" is new_run. Empty if it is none.
std::string api_command(std::string name) {
    std::ranges::replace(name, '-', '_');
    return serve::command_of(name) ? name : "";
}

std::string ctl_usage() {
    std::string text(ctl_intro);
    const auto add = [&text](std::string_view name, std::string_view sentence) {
        text += fmt::format("  {:<14}  {}\n", name, sentence);
    };
    add("status", "how it is, in a few lines; the default");
    for (const serve::Command command : serve::commands()) add(typed_name(command), serve::sentence_of(command));
    text += ctl_others;
    return text;
}

/// "; did you mean start?", or nothing.
std::string suggestion(const std::string& word) {
    std::vector<std::string> known{"status", "get", "set"};
    for (const serve::Command command : serve::commands()) known.push_back(typed_name(command));
    const std::vector<std::string> close = core::closest(word, known, 2);
    return close.empty() ? "" : fmt::format("; did you mean {}?", close.front());
}

/// The body, if it was answered well. Throws core::RunError with what the other side says.
json well(web::Client::Answer answer, const std::string& what) {
    if (!answer.good()) throw core::RunError(fmt::format("ctl: {}: {}", what, core::printable(answer.error())));
    return std::move(answer.body);
}

std::string stranger(const web::Client& client) {
    return fmt::format("ctl: {} answers something else than a weir", client.place());
}

int show_status(web::Client& client, const CtlOptions& options) {
    const json document = well(client.get(""), "status");
    if (watch_words(document, "/status/state").empty()) throw core::RunError(stranger(client));
    std::cout << (options.as_json ? document.dump(2) + "\n" : watch_text(document));
    return 0;
}

int show_cluster(web::Client& client, const CtlOptions& options) {
    const json document = ask_cluster_anew(client, "ctl");
    TopView view;
    view.width = 1000;  // a line each, for scripts too
    std::cout << (options.as_json ? document.dump(2) + "\n" : top_text(cluster_screen(document, view)));
    return 0;
}

int get_path(web::Client& client, const CtlOptions& options) {
    const std::string& path = options.words.at(1);
    json found = well(client.get(path), path);
    // A value is the only thing that the answer says; a table may have a key of that name among others.
    if (!options.as_json && found.is_object() && found.size() == 1 && found.contains("value")) found = found["value"];
    if (!options.as_json && found.is_string())
        std::cout << core::printable(found.get<std::string>()) << '\n';
    else
        std::cout << found.dump(2) << '\n';
    return 0;
}

int set_path(web::Client& client, const CtlOptions& options) {
    const std::string& path = options.words.at(1);
    const std::string& text = options.words.at(2);
    json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;  // what is no JSON is a text, and needs no quotes
    const json answer = well(client.put(path, value), path);
    std::cout << (options.as_json ? answer.dump() : core::printable(answer.value("message", ""))) << '\n';
    return 0;
}

json last_command(web::Client& client, const CtlOptions& options) {
    const web::Client::Answer answer = client.get(options.cluster ? "/cluster" : "command/last");
    if (!answer.good() || !answer.body.is_object()) return json::object();
    return options.cluster ? answer.body.value("command", json::object()) : answer.body;
}

/// Until it is done, or another one has been done since.
int wait_for(web::Client& client, const std::string& command, const json& before, const CtlOptions& options) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds pause(50);
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.wait_s));
    for (; Clock::now() < end; std::this_thread::sleep_for(pause)) {
        const json last = last_command(client, options);
        if (last.value("accepted", "") == before.value("accepted", "") || !last.value("done", false)) continue;
        if (options.as_json) std::cout << last.dump() << '\n';
        if (last.value("command", "") != command)
            throw core::RunError(fmt::format("ctl: {} was followed by {}, which is done", command,
                                             core::printable(last.value("command", ""))));
        if (const std::string error = last.value("error", ""); !error.empty())
            throw core::RunError(fmt::format("ctl: {}: {}", command, core::printable(error)));
        if (const std::string message = last.value("message", ""); !options.as_json && !message.empty())
            std::cout << core::printable(message) << '\n';
        return 0;
    }
    throw core::RunError(fmt::format("ctl: {} is not done after {:g} s; it goes on, and `weir ctl` says how it is",
                                     command, options.wait_s));
}

json order_json(const std::string& command, const CtlOptions& options) {
    json order = {{"execute", command}};
    if (!options.without.empty()) order["without"] = options.without;
    if (!options.comment.empty()) order["comment"] = options.comment;
    return order;
}

int execute(web::Client& client, const std::string& command, const CtlOptions& options) {
    const json before = options.waits ? last_command(client, options) : json::object();
    const web::Client::Answer answer =
        options.cluster ? client.put("/cluster", order_json(command, options)) : client.put("command/execute", command);
    const json body = well(answer, command);
    if (answer.status == accepted_status && options.waits) return wait_for(client, command, before, options);
    if (options.as_json)
        std::cout << body.dump() << '\n';
    else if (const std::string message = body.value("message", ""); !message.empty())
        std::cout << core::printable(message) << '\n';
    return 0;
}

/// What goes with --cluster, and only with it.
void check_cluster_words(const CtlOptions& options) {
    const std::string& name = options.words.front();
    if (!options.cluster && (!options.without.empty() || !options.comment.empty()))
        throw core::UsageError("ctl: --without and --comment go with --cluster");
    if (!options.cluster || name == "status") return;
    const std::optional<serve::Command> command = serve::command_of(api_command(name));
    if (!command || std::ranges::find(serve::cluster_commands(), *command) == serve::cluster_commands().end())
        throw core::UsageError(
            fmt::format("ctl: {} is for one node; accepted with --cluster: status, start, stop, new-run, abort", name));
    const bool starts = *command == serve::Command::start || *command == serve::Command::new_run;
    if (!starts && (!options.without.empty() || !options.comment.empty()))
        throw core::UsageError("ctl: --without and --comment go with start and new-run");
}

void check_words(const CtlOptions& options) {
    const std::string& name = options.words.front();
    const std::size_t wanted = name == "get" ? 2 : name == "set" ? 3 : 1;
    if (wanted == 1 && name != "status" && api_command(name).empty())
        throw core::UsageError(
            fmt::format("ctl: there is no command '{}'{} (weir ctl --help)", name, suggestion(name)));
    if (options.words.size() != wanted)
        throw core::UsageError(fmt::format("ctl: {} (weir ctl --help)", name == "get" ? "get takes a PATH"
                                                                        : name == "set"
                                                                            ? "set takes a PATH and a VALUE"
                                                                            : name + " takes nothing more"));
}

int ctl_command(const std::vector<std::string>& args) {
    po::options_description visible = options_for_terminal("options");
    add_target_options(visible);
    constexpr double usual_wait_s = 120;
    // clang-format off
    visible.add_options()
        ("cluster", "all nodes of the cluster that this one is of: status, start, stop, new-run, abort")
        ("without", po::value<std::vector<std::string>>()->value_name("NODE"), "--cluster start or new-run without this node; may be given several times")
        ("comment", po::value<std::string>()->value_name("TEXT"), "--cluster start or new-run: goes into the manifests and run logs")
        ("json", "print JSON instead of text")
        ("wait", po::value<double>()->value_name("S")->default_value(usual_wait_s), "how long a command may take until it is done")
        ("no-wait", "return as soon as it is accepted")
        ("help,h", "this text");
    // clang-format on
    po::options_description all;
    all.add(visible).add_options()("word", po::value<std::vector<std::string>>());
    const po::variables_map given = parse(args, all, "word");
    if (given.count("help") > 0) {
        print_help(ctl_usage(), visible, ctl_examples);
        return 0;
    }
    CtlOptions options{.words = {"status"},
                       .cluster = given.count("cluster") > 0,
                       .as_json = given.count("json") > 0,
                       .waits = given.count("no-wait") == 0,
                       .wait_s = given["wait"].as<double>()};
    if (given.count("without") > 0) options.without = given["without"].as<std::vector<std::string>>();
    if (given.count("comment") > 0) options.comment = given["comment"].as<std::string>();
    if (given.count("word") > 0) options.words = given["word"].as<std::vector<std::string>>();
    check_words(options);
    check_cluster_words(options);
    if (!(options.wait_s >= 0 && options.wait_s < 1e6))
        throw core::UsageError("ctl: --wait: accepted: seconds from 0 on");
    web::Client client = target_of(given, "ctl");
    const std::string& name = options.words.front();
    try {
        if (name == "status") return options.cluster ? show_cluster(client, options) : show_status(client, options);
        if (name == "get") return get_path(client, options);
        if (name == "set") return set_path(client, options);
        return execute(client, api_command(name), options);
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("{}: {}", stranger(client), core::printable(error.what())));
    }
}

}  // namespace

Command ctl_entry() {
    return {"ctl", "ask a running weir how it is, or tell it to start and stop", ctl_command};
}

}  // namespace weir::app
