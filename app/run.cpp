#include "command.hpp"

#include <iostream>

#include "core/error.hpp"
#include "options_common.hpp"
#include "serve/shown_run.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* run_usage = R"(weir run --config FILE [options]

Takes packets from the configured ports, builds events and writes them, until SIGINT or SIGTERM, or until one of the
limits below is reached. Events that are open then are closed as incomplete, everything is written, and the ledger says
where every packet went. SIGUSR1 asks a run how it goes: what it counted, and what it sees if nothing comes.

Examples:
  weir run --config examples/live-af-packet.toml               a kernel interface, until Ctrl-C
  weir run --config det.toml --events 1000 --report r.json     stop after 1000 events, report as JSON
  weir run --config det.toml --print-config                    what would be used, and why

)";

template <class T>
std::optional<T> limit(const po::variables_map& given, const char* name) {
    if (given.count(name) == 0) return std::nullopt;
    const double value = given[name].as<double>();
    if (!(value > 0) || value > 1e18)
        throw core::UsageError("--" + std::string(name) + ": found " + std::to_string(value) +
                               "; accepted: a number above 0");
    return static_cast<T>(value);
}

int run_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    add_common_options(description);
    // clang-format off
    description.add_options()
        ("duration", po::value<double>()->value_name("S"), "stop after this many seconds")
        ("events", po::value<double>()->value_name("N"), "stop once this many events are closed")
        ("idle-exit", po::value<double>()->value_name("S"), "stop when no packet for a stream has come for this many seconds")
        ("keep-privileges", "do not give up capabilities that are not needed any more once it runs")
        ("force", "start although the host is sure to lose data (weir doctor)");
    // clang-format on
    const po::variables_map given = parse(args, description, nullptr);
    if (given.count("help") > 0) {
        print_help(run_usage, description);
        return 0;
    }
    run::RunOptions options = run_options(given, "run");
    options.force = given.count("force") > 0;
    options.duration_s = limit<double>(given, "duration");
    options.events = limit<std::uint64_t>(given, "events");
    options.idle_exit_s = limit<double>(given, "idle-exit");
    options.keep_privileges = given.count("keep-privileges") > 0;
    const serve::ShownRun shown(options);
    return run::execute_run(std::move(options));
}

}  // namespace

Command run_entry() {
    return {"run", "the appliance: from a network port to event files, until you stop it", run_command};
}

}  // namespace weir::app
