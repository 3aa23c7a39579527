// What a run's reducers have counted, all workers added up: for the report, the manifest and whoever watches.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "reduce/chain/fragment_converter.hpp"

namespace weir::stages {
class PedestalKeeper;
class WorkStage;
}  // namespace weir::stages

namespace weir::observe {

struct ReducerReport {
    std::string_view kind;                                           ///< as in the configuration
    std::vector<std::pair<std::string_view, std::uint64_t>> values;  ///< named and merged as its counters say
};

/// In the order of the chain. `pedestals` (may be null) and `converters` have counters of reducers besides workers.
[[nodiscard]] std::vector<ReducerReport> collect_reducers(
    const std::vector<std::unique_ptr<stages::WorkStage>>& workers, const stages::PedestalKeeper* pedestals,
    const std::vector<std::unique_ptr<reduce::FragmentConverter>>& converters);

/// The report's `reduce`: the counters, the seconds that they took on all lcores together, and what an
/// event (or a piece) took of the time of a work lcore.
[[nodiscard]] nlohmann::json reduce_json(const std::vector<ReducerReport>& reducers);

}  // namespace weir::observe
