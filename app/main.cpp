// The program `weir`: finds the subcommand, runs it, and turns what it throws into an exit status and one clear line.
#include <boost/program_options/errors.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/counters_text.hpp"
#include "core/error.hpp"
#include "explain.hpp"
#include "help.hpp"
#ifndef WEIR_WITHOUT_INSPECT
#include "inspect.hpp"
#endif
#ifndef WEIR_WITHOUT_REPLAY
#include "replay.hpp"
#endif
#ifndef WEIR_WITHOUT_RUN
#include "run.hpp"
#endif
#ifndef WEIR_WITHOUT_SEND
#include "send.hpp"
#endif
#include "version.hpp"

namespace weir::app {
namespace {

struct Command {
    const char* name;
    int (*run)(const std::vector<std::string>& args);
};
constexpr Command commands[] = {
#ifndef WEIR_WITHOUT_RUN
    {"run", run_command},
#endif
#ifndef WEIR_WITHOUT_REPLAY
    {"replay", replay_command},
#endif
#ifndef WEIR_WITHOUT_SEND
    {"send", send_command},
#endif
#ifndef WEIR_WITHOUT_INSPECT
    {"inspect", inspect_command},
#endif
    {"explain", explain_command},
};

[[noreturn]] void unknown_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command& command : commands) names.emplace_back(command.name);
    std::string text = "there is no command '" + name + "'";
    const std::vector<std::string> near = core::closest(name, names, 3);
    if (!near.empty()) text += "; did you mean '" + near.front() + "'?";
    throw core::UsageError(text + " (weir --help lists them)");
}

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
    for (const Command& command : commands)
        if (args[0] == command.name) return command.run({args.begin() + 1, args.end()});
    unknown_command(args[0]);
}

int run_program(std::vector<std::string> args) {
    try {
        const int status = dispatch(std::move(args));
        // What did not reach a full disk or a closed pipe was not reported.
        if (!std::cout.flush() || std::fflush(stdout) != 0) throw core::RunError("cannot write to standard output");
        return status;
    } catch (const core::UsageError& error) {
        std::cerr << "weir: " << error.what() << '\n';
        return 2;
    } catch (const boost::program_options::error& error) {
        std::cerr << "weir: " << error.what() << '\n';
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "weir: " << error.what() << '\n';
        return 1;
    }
}

}  // namespace
}  // namespace weir::app

int main(int argc, char** argv) {
    return weir::app::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
