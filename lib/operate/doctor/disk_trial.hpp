// Writes to the disk of a sink for a moment, to know what it takes. The file has no name, so that nothing is left of it
// however the program ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/host_facts.hpp"

namespace weir::doctor {

struct DiskTrialLimits {
    std::uint64_t bytes_max = std::uint64_t{1} << 30U;
    double seconds_max = 2;
};

struct DiskTrialResult {
    Known<double> bytes_per_s;
    std::string how;  ///< "past the page cache"
};

/// Several writes under way, past the page cache where the file system has that, otherwise each synced. At most a
/// quarter of what is free.
[[nodiscard]] DiskTrialResult time_writes(const std::filesystem::path& folder, const DiskTrialLimits& limits);

/// The folders of the sinks that write. `host` says what is mounted; `limits`: null: nothing is written.
[[nodiscard]] std::vector<DiskFacts> look_at_disks(const config::RunConfig& config, const HostFacts& host,
                                                   const DiskTrialLimits* limits);

}  // namespace weir::doctor
