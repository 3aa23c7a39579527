// The program `weir`: finds the subcommand, runs it, and turns what it throws into an exit status and one clear line.
#include <boost/program_options/errors.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "explain.hpp"
#include "export.hpp"
#include "flows.hpp"
#include "help.hpp"
#include "inspect.hpp"
#include "replay.hpp"
#include "run.hpp"
#include "send.hpp"
#include "version.hpp"

namespace weir::app {
namespace {

struct Command {
    const char* name;
    int (*run)(const std::vector<std::string>& args);
};
constexpr Command commands[] = {
    {"run", run_command},       {"replay", replay_command},   {"send", send_command},   {"inspect", inspect_command},
    {"export", export_command}, {"explain", explain_command}, {"flows", flows_command},
};

int dispatch(std::vector<std::string> args) {
    if (args.empty()) {
        std::cerr << help_text();
        return 2;
    }
    if (args[0] == "help" && args.size() > 1) args = {args[1], "--help"};
    if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
        std::cout << help_text();
        return 0;
    }
    if (args[0] == "--version" || args[0] == "-V") {
        std::cout << version_text();
        return 0;
    }
    std::vector<std::string> names;
    for (const Command& command : commands) {
        if (args[0] == command.name) return command.run({args.begin() + 1, args.end()});
        names.emplace_back(command.name);
    }
    throw core::UsageError(unknown_command_text(args[0], names));
}

int fail(const std::exception& error, int status) {
    std::cerr << "weir: " << error.what() << '\n';
    return status;
}

int run_program(std::vector<std::string> args) {
    try {
        const int status = dispatch(std::move(args));
        // What did not reach a full disk or a closed pipe was not reported.
        if (!std::cout.flush() || std::fflush(stdout) != 0) throw core::RunError("cannot write to standard output");
        return status;
    } catch (const core::UsageError& error) {
        return fail(error, 2);
    } catch (const boost::program_options::error& error) {
        return fail(error, 2);
    } catch (const std::exception& error) {
        return fail(error, 1);
    }
}

}  // namespace
}  // namespace weir::app

int main(int argc, char** argv) {
    return weir::app::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
