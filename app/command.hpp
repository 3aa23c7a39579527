// What a subcommand is. Each has a file of its name, whose NAME_entry() makes its entry; the list of names is in
// meson.build beside this and nowhere else.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace weir::app {

struct Command {
    const char* name;
    const char* summary;  ///< one line of `weir --help`, and of its man page
    /// Takes what follows the name; returns the exit status. Throws core::UsageError (2) and core::RunError (1).
    int (*execute)(const std::vector<std::string>& args);
};

/// All of them, in the order of help.
[[nodiscard]] std::span<const Command> commands() noexcept;

}  // namespace weir::app
