#include "options_common.hpp"

#include <algorithm>
#include <cctype>

#include "core/error.hpp"
#include "version.hpp"

namespace weir::app {

namespace po = boost::program_options;

void add_common_options(po::options_description& description) {
    // clang-format off
    description.add_options()
        ("config", po::value<std::string>()->value_name("FILE"), "the configuration (docs/CONFIGURATION.md)")
        ("out", po::value<std::string>()->value_name("PATH"), "write the run exactly here, whatever the configuration's sink says; refused if it exists")
        ("report", po::value<std::string>()->value_name("FILE"), "write the run report as JSON")
        ("require-lossless", "exit with status 3 if an event is incomplete or a packet was lost")
        ("print-config", "print the effective configuration and the plan, and do nothing else")
        ("progress", po::value<std::string>()->default_value("auto")->value_name("MODE"), "what is said while it runs: auto (a line on a terminal, nothing elsewhere), line, json (an object per second on stderr), json:FILE, none")
        ("telemetry", po::value<std::string>()->value_name("NAME"), "answer DPDK's telemetry clients: dpdk-telemetry.py -f NAME, then /weir/ledger and so on")
        ("quiet", "no summary, and no progress unless --progress asks for it")
        ("help", "this text");
    // clang-format on
}

po::variables_map parse(const std::vector<std::string>& args, const po::options_description& description,
                        const char* positional) {
    po::positional_options_description positions;
    if (positional != nullptr) positions.add(positional, -1);
    po::variables_map given;
    try {
        // No guessing: an option that is abbreviated today may be ambiguous tomorrow.
        namespace style = po::command_line_style;
        const int strict = style::unix_style & ~style::allow_guessing;
        po::store(po::command_line_parser(args).options(description).positional(positions).style(strict).run(), given);
        po::notify(given);
    } catch (const po::error& error) {
        throw core::UsageError(error.what());
    }
    return given;
}

pipeline::RunOptions run_options(const po::variables_map& given, const char* command) {
    const auto text = [&](const char* name) {
        return given.count(name) > 0 ? given[name].as<std::string>() : std::string();
    };
    if (given.count("config") == 0)
        throw core::UsageError(std::string("weir ") + command + " needs --config FILE (weir " + command + " --help)");
    pipeline::RunOptions options;
    options.config = pipeline::load_config(text("config"));
    options.out = text("out");
    options.report = text("report");
    options.require_lossless = given.count("require-lossless") > 0;
    options.print_config = given.count("print-config") > 0;
    options.quiet = given.count("quiet") > 0;
    options.progress = pipeline::parse_progress(text("progress"));
    options.telemetry = text("telemetry");
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    if (given.count("telemetry") > 0 && (options.telemetry.empty() || !std::ranges::all_of(options.telemetry, plain)))
        throw core::UsageError("--telemetry: found '" + options.telemetry + "'; accepted: letters, digits, - and _");
    options.version = std::string(version()) + " " + commit();
    return options;
}

}  // namespace weir::app
