// Reads what files say of a host, below a root that can be a recorded machine. Whatever is not there is "not known".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/host_facts.hpp"

namespace weir::doctor {

/// The devices that matter.
struct Interest {
    std::vector<std::string> pci;         ///< full addresses
    std::vector<std::string> interfaces;  ///< of the kernel
};
[[nodiscard]] Interest interest_of(const config::RunConfig& config);

enum class Depth : std::uint8_t {
    quick,  ///< without what grows with the number of processes or CPUs; a few milliseconds
    all,
};

/// Files only: nothing is asked of the kernel or of a device.
[[nodiscard]] HostFacts read_host(const std::filesystem::path& root, const Interest& interest, Depth depth);

}  // namespace weir::doctor
