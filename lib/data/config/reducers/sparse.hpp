// [[reduce]] kind = "sparse", as configured.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace weir::config {

/// docs/reference/reduce/sparse.md. At least one of the two.
struct SparseOptions {
    std::optional<double> threshold;         ///< a pixel that is kept is above it, in the unit of the energies,
    std::optional<double> sigma;             ///< and above this times its noise
    std::vector<std::filesystem::path> rms;  ///< noise in ADU; empty: that of the reducer `pedestal`

    bool operator==(const SparseOptions&) const = default;
};

}  // namespace weir::config
