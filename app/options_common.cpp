#include "options_common.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "core/error.hpp"
#include "options/text.hpp"
#include "simulate/simulator_feeder.hpp"
#include "version.hpp"

namespace weir::app {

namespace po = boost::program_options;

void add_common_options(po::options_description& description) {
    // clang-format off
    description.add_options()
        ("config", po::value<std::string>()->value_name("FILE"), "docs/reference/CONFIGURATION.md has its keys")
        ("node", po::value<std::string>()->value_name("NAME"), "which [[node]] of the configuration this is. Default: $WEIR_NODE, or the name of the host")
        ("out", po::value<std::string>()->value_name("PATH"), "write the run exactly here, whatever the configuration's first [[sink]] says, or without one; refused if it exists")
        ("run-number", po::value<std::uint32_t>()->value_name("N"), "the number of this run, {run} in paths; the nodes of a cluster work together only if they were given the same")
        ("report", po::value<std::string>()->value_name("FILE"), "write the run report as JSON")
        ("require-lossless", po::value<std::string>()->implicit_value("yes")->value_name("yes|known"), "exit with status 3 if something was lost, or if nothing shows whether it was; `known` lets the second pass, with a warning")
        ("expect-events", po::value<std::uint64_t>()->value_name("N"), "how many events were sent: fewer are a loss")
        ("sent", po::value<std::vector<std::string>>()->value_name("FILE"), "the same from the report of `weir send`; once for each sender")
        ("allow-empty", "that no packet came for any stream is no failure")
        ("print-config", "print the effective configuration and the plan, and do nothing else")
        ("progress", po::value<std::string>()->default_value("auto")->value_name("MODE"), "what is said while it runs: auto (a line on a terminal, nothing elsewhere), line, json (an object per second on stderr), json:FILE, none")
        ("telemetry", po::value<std::string>()->value_name("NAME"), "answer DPDK's telemetry clients: dpdk-telemetry.py -f NAME, then /weir/ledger and so on")
        ("quiet", "no summary, and no progress unless --progress asks for it")
        ("help,h", "this text");
    // clang-format on
}

std::string required_lossless(const po::variables_map& given) {
    if (given.count("require-lossless") == 0) return {};
    auto what = given["require-lossless"].as<std::string>();
    if (what != "yes" && what != "known")
        throw core::UsageError("--require-lossless: found '" + what +
                               "'; accepted: --require-lossless, --require-lossless=known");
    return what;
}

po::variables_map parse(const std::vector<std::string>& args, const po::options_description& description,
                        const char* positional) {
    po::positional_options_description positions;
    if (positional != nullptr) positions.add(positional, -1);
    po::variables_map given;
    // Its value goes after "=" only; the library would take the next argument for it, which may be a capture.
    std::vector<std::string> whole = args;
    std::ranges::replace(whole, std::string("--require-lossless"), std::string("--require-lossless=yes"));
    try {
        // No guessing: an option that is abbreviated today may be ambiguous tomorrow.
        namespace style = po::command_line_style;
        const int strict = style::unix_style & ~style::allow_guessing;
        po::store(po::command_line_parser(whole).options(description).positional(positions).style(strict).run(), given);
        po::notify(given);
    } catch (const po::error& error) {
        throw core::UsageError(error.what());
    }
    return given;
}

namespace {

/// What was sent, and what the exit status has to say about losses.
void read_expectations(const po::variables_map& given, run::RunOptions& options) {
    using Require = run::RunOptions::Require;
    if (const std::string what = required_lossless(given); !what.empty())
        options.require = what == "yes" ? Require::lossless : Require::not_lossy;
    if (given.count("expect-events") > 0 && given.count("sent") > 0)
        throw core::UsageError("--expect-events and --sent say the same thing: give one of them");
    if (given.count("expect-events") > 0)
        options.expected = {given["expect-events"].as<std::uint64_t>(), "--expect-events"};
    if (given.count("sent") > 0)
        options.expected = observe::Expectation::of_reports(given["sent"].as<std::vector<std::string>>());
    options.allow_empty |= given.count("allow-empty") > 0;
}

std::string names_of(const std::vector<config::ClusterNode>& nodes) {
    std::vector<std::string_view> names;
    for (const config::ClusterNode& node : nodes) names.push_back(node.name);
    return options::any_of(names);
}

std::uint32_t run_number_of(std::uint32_t number) {
    if (number == 0 || number >= UINT32_MAX - 1)
        throw core::UsageError(fmt::format("--run-number: found {}; accepted: 1 to {}", number, UINT32_MAX - 2));
    return number;
}

/// The configuration of all nodes becomes that of one of them.
void choose_node(const po::variables_map& given, run::RunOptions& options) {
    if (!options.config.cluster) {
        if (given.count("node") > 0)
            throw core::UsageError("--node is for a configuration with a [cluster], and this has none");
        return;
    }
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), HOST_NAME_MAX);
    const char* const from_environment = std::getenv("WEIR_NODE");
    const std::string usual = from_environment != nullptr ? from_environment : host.data();
    const std::string name = given.count("node") > 0 ? given["node"].as<std::string>() : usual;
    if (given.count("node") == 0 &&
        std::ranges::none_of(options.config.cluster->nodes, [&](const auto& node) { return node.name == name; }))
        throw core::UsageError(fmt::format("--node is missing: {} is \"{}\"; accepted: {}",
                                           from_environment != nullptr ? "WEIR_NODE" : "the name of this host", name,
                                           names_of(options.config.cluster->nodes)));
    const std::uint32_t node = find_node(options.config, name);
    options.cluster = run::ClusterPart{std::move(options.config), node};
    options.config = options.cluster->view();
    // It may be that there are fewer blocks than builders.
    options.allow_empty |= options.cluster->self().role == config::NodeRole::builder;
}

}  // namespace

run::RunOptions run_options(const po::variables_map& given, const char* command) {
    const auto text = [&](const char* name) {
        return given.count(name) > 0 ? given[name].as<std::string>() : std::string();
    };
    if (given.count("config") == 0)
        throw core::UsageError(std::string("weir ") + command + " needs --config FILE (weir " + command + " --help)");
    run::RunOptions options;
    options.make_built_in = simulate::make_simulator;
    options.config = config::load_config(text("config"), given.count("out") > 0);
    choose_node(given, options);
    options.out = text("out");
    options.report = text("report");
    read_expectations(given, options);
    options.print_config = given.count("print-config") > 0;
    if (given.count("run-number") > 0) options.run_number = run_number_of(given["run-number"].as<std::uint32_t>());
    options.quiet = given.count("quiet") > 0;
    options.progress = observe::parse_progress(text("progress"));
    options.telemetry = text("telemetry");
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    if (given.count("telemetry") > 0 && (options.telemetry.empty() || !std::ranges::all_of(options.telemetry, plain)))
        throw core::UsageError("--telemetry: found '" + options.telemetry + "'; accepted: letters, digits, - and _");
    options.version = std::string(version()) + " " + commit();
    return options;
}

}  // namespace weir::app
