// [[reduce]] kind = "sparse": which pixels are kept. docs/reference/reduce/sparse.md says what the keys mean.
#include <fmt/format.h>

#include <algorithm>

#include "config/files.hpp"
#include "config/reducers/entry.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/sparse.hpp"

namespace weir::config::detail {

namespace {}  // namespace

OptionTable<SparseOptions> sparse_options() {
    OptionTable<SparseOptions> out;
    out.number("threshold", -energy_max, energy_max, &SparseOptions::threshold,
               "a pixel is kept when its energy is above this, in the `unit` of `jungfrau`")
        .unset("as sigma says")
        .usually("none");
    out.number("sigma", 0, 1e6, &SparseOptions::sigma, "a pixel is kept when its energy is above this times its noise")
        .check_unset([](TableReader& table, const SparseOptions& sparse) {
            if (!sparse.threshold)
                table.missing("threshold",
                              "the energy above which a pixel is kept, in the unit of the jungfrau before it, "
                              "or sigma = N for N times the noise of each pixel, or both");
        });
    add_files(out, "rms", "file, or a list of one for each module", &SparseOptions::rms,
              "with `sigma`: RMS of each pixel in G0, in ADU: raw 32-bit or 64-bit floats, "
              "512 x 1024 for each module (and, if it has so many, storage cell)")
        .refused_where([](const SparseOptions& sparse) -> std::string {
            return sparse.sigma ? "" : "sigma says how many times the noise a pixel must have";
        })
        .unset("that of the pedestal reducer")
        .usually("the reducer `pedestal`, if there is one");
    return out;
}

/// The noise must come from somewhere.
/// Throws if `sparse` does not know where to take the noise from.
void check_sparse(RunConfig& run) {
    for (const ReduceConfig& reducer : run.reduce) {
        const auto* options = reducer.as<SparseOptions>();
        if (options == nullptr || !options->sigma || !options->rms.empty()) continue;
        if (std::ranges::find(run.reduce, "pedestal", &ReduceConfig::kind) != run.reduce.end()) continue;
        fail(reducer.place, "reduce.rms", "nothing",
             "the file with the RMS of each pixel's dark signal in ADU, or a reducer \"pedestal\" in the chain, "
             "which finds it out");
    }
}

ReducerEntry sparse_reducer() {
    return {.kind = kind_of("sparse", sparse_options()),
            .takes = set_of(ReduceData::energies),
            .gives = ReduceData::sparse,
            .check = check_sparse};
}

}  // namespace weir::config::detail
