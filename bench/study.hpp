// Measurements behind two decisions: the kind of buffer pool, and whether payload stays in received buffers until its
// event has left (reference) or is copied out of them on arrival (copy).
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "working_set.hpp"

namespace weir::bench {

struct StudyInput {
    std::string name;  ///< pools | assembly
    std::size_t set_bytes = 0;
    std::uint32_t repetitions = 5;
    double tsc_hz = 0;
};

/// DPDK memory that any study needs.
inline constexpr std::uint64_t study_eal_bytes = std::uint64_t{1200} << 20U;

/// Prints one line per combination and returns them.
nlohmann::json run_study(const StudyInput& input, const FrameMemory& memory, std::span<std::byte> outputs);

}  // namespace weir::bench
