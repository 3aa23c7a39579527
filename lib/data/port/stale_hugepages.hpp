// Hugepages that a killed run still holds: DPDK keeps them in files, which stay when their program ends by force.
#pragma once

#include <cstddef>
#include <filesystem>

namespace weir::port {

/// Removes DPDK's files that nobody holds any more from all hugetlbfs, so that their pages are free again: DPDK
/// itself does so only when it starts, and weir looks before that whether there are enough. How many there were. What
/// belongs to somebody else or cannot be removed stays. `mounts`: the system's table of mounts.
std::size_t remove_stale_hugepages(const std::filesystem::path& mounts = "/proc/self/mounts");

}  // namespace weir::port
