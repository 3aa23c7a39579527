// peak_finder.hpp on a whole module, written for reading: what the finder must equal, peak by peak.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reduce/veto/peak_finder.hpp"

namespace weir::reduce::reference {

[[nodiscard]] std::vector<Peak> find_peaks(std::span<const float> energy, std::uint32_t columns,
                                           const PeakOptions& options);

}  // namespace weir::reduce::reference
