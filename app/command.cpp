// The table of commands: WEIR_COMMANDS is COMMAND(name) for each name in meson.build.
#include "command.hpp"

#include <array>

namespace weir::app {

#define COMMAND(name) Command name##_entry();
WEIR_COMMANDS
#undef COMMAND

std::span<const Command> commands() noexcept {
#define COMMAND(name) name##_entry(),
    static const std::array all{WEIR_COMMANDS};
#undef COMMAND
    return all;
}

}  // namespace weir::app
