// `weir top`: a running weir in a terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>

#include "cluster_ask.hpp"
#include "cluster_screen.hpp"
#include "command.hpp"
#include "core/error.hpp"
#include "options_common.hpp"
#include "terminal.hpp"
#include "top_screen.hpp"
#include "top_terminal.hpp"
#include "watch_target.hpp"

namespace weir::app {

namespace {

namespace po = boost::program_options;
using TopClock = std::chrono::steady_clock;

constexpr std::string_view top_intro = R"(usage: weir top [options]

Shows a running weir in the terminal: whether data is lost, where and why; rates, lcores, rings, sinks, and the sources, those in trouble first.
Any weir that listens can be watched: `weir serve`, and `weir run` and `weir replay` with a table [serve]. Nothing is changed by it.

)";

constexpr std::string_view top_examples = R"(
examples:
  weir top                               the only weir that runs here
  weir top --name det
  weir top --url http://daq1:9321
  weir top --cluster                     all nodes: who is slow, who waits for whom
  weir top --once                        one screen as text, for scripts

keys: q quit, s sort the sources, arrows and PgUp PgDn go through them, ? help

exit status: 0 done, 1 nobody answers, 2 bad usage
)";

/// What is asked, and what is made of it.
struct TopSubject {
    std::function<nlohmann::json(web::Client&)> ask;
    std::function<nlohmann::json(web::Client&)> ask_anew;  ///< no answer from before
    std::function<TopScreen(const nlohmann::json&, const TopView&)> screen;
};

nlohmann::json document_of(web::Client& client) {
    web::Client::Answer answer = client.get("");
    if (!answer.good()) throw core::RunError("top: " + answer.error());
    if (!answer.body.is_object())
        throw core::RunError(fmt::format("top: {} answers something else than a weir", client.place()));
    return std::move(answer.body);
}

TopSubject one_weir() {
    return {document_of, document_of, top_screen};
}

TopSubject whole_cluster() {
    return {[](web::Client& client) { return ask_cluster(client, "top"); },
            [](web::Client& client) { return ask_cluster_anew(client, "top"); }, cluster_screen};
}

int show_once(web::Client& client, const TopSubject& subject) {
    TopView view;
    view.width = columns_of(STDOUT_FILENO);
    const nlohmann::json document = subject.ask_anew(client);
    std::cout << top_text(subject.screen(document, view));
    return 0;
}

/// What a key changes; false: it is time to go.
bool take_key(TopKey key, TopView& view, const TopScreen& screen) {
    const std::size_t last = screen.sources - std::min(screen.sources, screen.source_rows);
    const auto go = [&](std::size_t back, std::size_t forth) {
        view.first_source = std::min(view.first_source, last);
        view.first_source = std::min(last, view.first_source + forth - std::min(view.first_source + forth, back));
    };
    switch (key) {
        case TopKey::quit:
            return false;
        case TopKey::sort:
            view.order = static_cast<TopOrder>((static_cast<std::size_t>(view.order) + 1) % top_orders);
            view.first_source = 0;
            break;
        case TopKey::help:
            view.help = !view.help;
            break;
        case TopKey::up:
            go(1, 0);
            break;
        case TopKey::down:
            go(0, 1);
            break;
        case TopKey::page_up:
            go(std::max<std::size_t>(1, screen.source_rows), 0);
            break;
        case TopKey::page_down:
            go(0, std::max<std::size_t>(1, screen.source_rows));
            break;
        case TopKey::home:
            view.first_source = 0;
            break;
        case TopKey::none:
        case TopKey::resized:
            break;
    }
    return true;
}

int watch(web::Client& client, const TopSubject& subject) {
    constexpr std::chrono::milliseconds pause(500);
    nlohmann::json document = subject.ask_anew(client);  // who does not answer at once is an error, not a screen
    TopClock::time_point heard = TopClock::now();
    TopClock::time_point due = heard + pause;
    TopTerminal terminal;
    TopView view;
    for (;;) {
        view.width = terminal.width();
        view.height = terminal.height();
        view.heard_s_ago = std::chrono::duration<double>(TopClock::now() - heard).count();
        const TopScreen screen = subject.screen(document, view);
        terminal.draw(screen);
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - TopClock::now());
        if (!take_key(terminal.key(std::max(left, std::chrono::milliseconds(0))), view, screen)) return 0;
        if (TopClock::now() < due) continue;
        try {
            document = subject.ask(client);
            heard = TopClock::now();
            view.trouble.clear();
        } catch (const core::RunError& error) {
            view.trouble = error.what();
        }
        due = TopClock::now() + pause;
    }
}

int top_command(const std::vector<std::string>& args) {
    po::options_description visible = options_for_terminal("options");
    add_target_options(visible);
    // clang-format off
    visible.add_options()
        ("cluster", "all nodes of the cluster that this one is of")
        ("once", "print one screen as text, and end")
        ("help,h", "this text");
    // clang-format on
    const po::variables_map given = parse(args, visible, "");
    if (given.count("help") > 0) {
        print_help(top_intro, visible, top_examples);
        return 0;
    }
    const bool once = given.count("once") > 0;
    if (!once && (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0))
        throw core::UsageError("top: this is no terminal; accepted: --once, which prints one screen as text");
    web::Client client = target_of(given, "top");
    const TopSubject subject = given.count("cluster") > 0 ? whole_cluster() : one_weir();
    return once ? show_once(client, subject) : watch(client, subject);
}

}  // namespace

Command top_entry() {
    return {"top", "watch a running weir in the terminal", top_command};
}

}  // namespace weir::app
