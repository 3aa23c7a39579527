#include "program.hpp"

#include <fmt/core.h>

#include <boost/program_options/errors.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "core/refused_memory.hpp"
#include "help.hpp"
#include "process.hpp"
#include "version.hpp"

namespace weir::app {
namespace {

int dispatch(std::vector<std::string> args) {
    if (args.empty()) {
        core::say_text(help_text());
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
    for (const Command& command : commands()) {
        if (args[0] == command.name) return command.execute({args.begin() + 1, args.end()});
        names.emplace_back(command.name);
    }
    throw core::UsageError(unknown_command_text(args[0], names));
}

int fail(std::string_view what, int status) {
    core::print_stderr("weir: {}\n", what);
    return status;
}

/// What did not reach a full disk was not reported. A reader who has left, as `head` does, has what he wanted.
int output_failed(int status) {
    return output_reader_left() ? status : fail("cannot write to standard output", 1);
}

std::string out_of_memory_text(const std::string& command) {
    const core::RefusedMemory refused = core::refused_memory();
    return fmt::format(
        "{}: out of memory{}{}", command, refused.what != nullptr ? fmt::format(" for {}", refused.what) : "",
        refused.bytes > 0 ? fmt::format(": there were no {} more bytes in one piece", refused.bytes) : "");
}

std::string text_of(const std::exception& error) {
    // Of std::thread, which only says what the system said.
    const auto* const system = dynamic_cast<const std::system_error*>(&error);
    if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return "the system has no room for another thread (memory: ulimit -v, processes: ulimit -u)";
    return error.what();
}

}  // namespace

int run_program(std::vector<std::string> args) {
    // A command that prints need not go on when nobody takes it.
    std::cout.exceptions(std::ios::badbit | std::ios::failbit);
    const std::string command = args.empty() ? "" : args[0];
    try {
        const int status = dispatch(std::move(args));
        const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
        return printed ? status : output_failed(status);
    } catch (const core::UsageError& error) {
        return fail(error.what(), 2);
    } catch (const boost::program_options::error& error) {
        return fail(error.what(), 2);
    } catch (const std::bad_alloc&) {
        return fail(out_of_memory_text(command), 1);
    } catch (const std::exception& error) {
        return std::ferror(stdout) != 0 ? output_failed(1) : fail(text_of(error), 1);
    }
}

}  // namespace weir::app
