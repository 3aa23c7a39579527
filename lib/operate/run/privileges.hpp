// Capabilities (capabilities(7)) that a run needs to start and not to go on: given up in every thread once it runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace weir::run {

/// A capability that a run keeps, and what for.
struct KeptPrivilege {
    int capability = 0;  ///< CAP_...
    std::string why;     ///< "det0 (net_tap): its interface and queue rules are changed while it runs"

    bool operator==(const KeptPrivilege&) const = default;
};

/// What the devices of a run use while it goes on.
[[nodiscard]] std::vector<KeptPrivilege> kept_for_devices(const config::RunConfig& config);
/// What this process needs besides, as it was started: physical addresses of EAL, memory that is pinned later, and
/// folders that it writes to and that are not its own. EAL runs.
[[nodiscard]] std::vector<KeptPrivilege> kept_for_process(bool has_pci, std::span<const std::filesystem::path> folders);

struct PrivilegesLeft {
    bool had_any = false;               ///< false: there was nothing to give up
    std::uint64_t given_up = 0;         ///< bits of capabilities that were permitted before and are not any more
    std::vector<KeptPrivilege> kept;    ///< of those asked for, what the process had
    std::vector<std::string> failures;  ///< threads that would not, in words
    /// For the start of a run; empty if there was nothing to give up.
    [[nodiscard]] std::string text() const;
};

/// Gives up all capabilities but `keep`, also from the bounding and the ambient set, and the way back to any
/// (PR_SET_NO_NEW_PRIVS), in this thread and in all others of the process: the kernel has them for each thread, so each
/// is interrupted by a signal to do it itself. Threads that are started later inherit it.
[[nodiscard]] PrivilegesLeft give_up_privileges(std::span<const KeptPrivilege> keep);

/// For libraries whose threads cannot be asked later, because they block all signals: runs `action` in a thread without
/// any capability, which those that it starts inherit, and waits for it. Throws what it throws.
void run_without_privileges(const std::function<void()>& action);

/// "CAP_NET_ADMIN"; "capability 40" for one that weir never keeps.
[[nodiscard]] std::string capability_name(int capability);

}  // namespace weir::run
