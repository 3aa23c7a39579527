// [[reduce]] kind = "sparse": which pixels are kept. docs/reference/reduce/sparse.md says what the keys mean.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr auto keys = std::to_array<std::string_view>({"threshold", "sigma", "rms"});

constexpr double energy_max = 1e9;

ReduceOptions read(TableReader& table) {
    SparseOptions options;
    options.threshold = table.number("threshold", -energy_max, energy_max);
    options.sigma = table.number("sigma", 0, 1e6);
    if (!options.threshold && !options.sigma)
        table.missing("threshold",
                      "the energy above which a pixel is kept, in the unit of the jungfrau before it, or sigma = N for "
                      "N times the noise of each pixel, or both");
    if (!options.sigma) {
        table.refuse("rms", "sigma says how many times the noise a pixel must have");
    } else if (const toml::node* node = table.get("rms"); node != nullptr) {
        options.rms = read_files(table, "rms", *node);
    }
    return options;
}

void print(Printer& out, const ReduceOptions& from) {
    const auto& options = std::get<SparseOptions>(from);
    if (options.threshold)
        out.line("threshold", fmt::format("{}", *options.threshold));
    else
        out.comment("threshold: as sigma says (default)");
    if (options.sigma) out.line("sigma", fmt::format("{}", *options.sigma));
    if (!options.rms.empty())
        out.line("rms", files_text(options.rms));
    else if (options.sigma)
        out.comment("rms: that of the pedestal reducer (default)");
}

nlohmann::json json(const ReduceOptions& from) {
    const auto& options = std::get<SparseOptions>(from);
    nlohmann::json out = nlohmann::json::object();
    if (options.threshold) out["threshold"] = *options.threshold;
    if (options.sigma) out["sigma"] = *options.sigma;
    if (!options.rms.empty()) out["rms"] = files_json(options.rms);
    return out;
}

}  // namespace

const ReducerEntry sparse_entry{"sparse", set_of(ReduceData::energies), ReduceData::sparse, {}, keys, read, print,
                                json};

/// The noise must come from somewhere.
void check_sparse(const RunConfig& run) {
    for (const ReduceConfig& reducer : run.reduce) {
        const auto* options = reducer.as<SparseOptions>();
        if (options == nullptr || !options->sigma || !options->rms.empty()) continue;
        if (std::ranges::find(run.reduce, "pedestal", &ReduceConfig::kind) != run.reduce.end()) continue;
        fail(reducer.place, "reduce.rms", "nothing",
             "the file with the RMS of each pixel's dark signal in ADU, or a reducer \"pedestal\" in the chain, which "
             "finds it out");
    }
}

}  // namespace weir::pipeline::detail
