#include "serve/service.hpp"

#include "command.hpp"
#include "core/error.hpp"
#include "options_common.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* serve_usage = R"(weir serve --config FILE [options]

Brings the devices up and keeps them, and takes a run whenever somebody asks for one: `weir ctl start`, the page, or any
program by HTTP. Who may see and who may change something is the configuration's [serve] table; without it, everybody on
this host sees the page at http://127.0.0.1:9321, and only who may write to the UNIX socket starts and stops runs.

Examples:
  weir serve --config det.toml                  devices up, no run yet
  weir ctl start                                in another terminal: begins a run; stop, new-run, abort likewise
  weir serve --config det.toml --start          the first run begins at once
  weir serve --config c.toml --node builder0    a node of a cluster: weir ctl --cluster start, at any of them

)";

int serve_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("config", po::value<std::string>()->value_name("FILE"), "docs/reference/CONFIGURATION.md has its keys")
        ("node", po::value<std::string>()->value_name("NAME"), "which [[node]] of the configuration this is. Default: $WEIR_NODE, or the name of the host")
        ("start", "begin the first run at once")
        ("telemetry", po::value<std::string>()->value_name("NAME"), "answer DPDK's telemetry clients: dpdk-telemetry.py -f NAME, then /weir/ledger and so on")
        ("progress", po::value<std::string>()->default_value("none")->value_name("MODE"), "what is said while a run goes on: auto (a line on a terminal, nothing elsewhere), line, json (an object per second on stderr), none")
        ("keep-privileges", "do not give up capabilities that are not needed any more once devices are up")
        ("force", "start although the host is sure to lose data (weir doctor)")
        ("quiet", "no summaries of runs")
        ("help,h", "this text");
    // clang-format on
    const po::variables_map given = parse(args, description, nullptr);
    if (given.count("help") > 0) {
        print_help(serve_usage, description);
        return 0;
    }
    run::RunOptions options = run_options(given, "serve");
    options.allow_empty = true;  // a service waits for its detector
    options.force = given.count("force") > 0;
    options.keep_privileges = given.count("keep-privileges") > 0;
    return serve::Service(std::move(options), given.count("start") > 0).run();
}

}  // namespace

Command serve_entry() {
    return {"serve", "devices stay up, runs come and go as others ask for them", serve_command};
}

}  // namespace weir::app
