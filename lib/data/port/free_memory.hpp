// How much memory this process can still have: what the machine has left without swapping, and what its control group
// leaves of that. Beyond it the kernel does not refuse, but ends a process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace weir::port {

struct FreeMemory {
    bool known = false;
    std::uint64_t bytes = 0;
    std::string limited_by;  ///< in words: "the machine (MemAvailable)"
};

/// As the files below `root` say ("/": this machine). `control_group`: the text of /proc/self/cgroup.
[[nodiscard]] FreeMemory free_memory(const std::filesystem::path& root, const std::string& control_group);
/// Of this process.
[[nodiscard]] FreeMemory free_memory();

}  // namespace weir::port
