// Ctrl-C for commands that end what they have begun, and report it.
#pragma once

#include <atomic>

namespace weir::app {

/// Set by SIGINT and SIGTERM after catch_interrupts().
extern std::atomic<bool> interrupted;

/// From now on SIGINT and SIGTERM ask to stop; a second one ends the process. System calls that block return then.
void catch_interrupts();

}  // namespace weir::app
