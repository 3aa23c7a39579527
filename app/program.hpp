// What the program does with its arguments.
#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Finds the subcommand that `args` begin with and runs it; turns what it throws into one clear line on standard error.
/// Returns the exit status.
[[nodiscard]] int run_program(std::vector<std::string> args);

}  // namespace weir::app
