// Who shows a run to others while it goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "pipeline/finding.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::store {
class LatestEvent;
}  // namespace weir::store

namespace weir::observe {
struct Ledger;
class Watch;
}  // namespace weir::observe

namespace weir::run {

/// Everything on the control thread. Must not throw, and must not take long: the run is stopped from there.
class Onlooker {
public:
    struct RunFacts {
        std::optional<std::uint32_t> number;       ///< nothing: no path of a sink has {run}
        std::vector<std::filesystem::path> paths;  ///< as they will be called
        core::TimeNs started_ns = 0;               ///< UNIX time
        /// What a node of a cluster says of itself at the moment: "cluster" of the document. Until finish(); empty: the
        /// run is of none.
        std::function<nlohmann::json()> cluster{};
    };

    virtual ~Onlooker() = default;
    /// A run is about to be made, whose sinks were opened with `start`. What gets to see its events, and outlives the
    /// pipeline; null: nothing.
    [[nodiscard]] virtual store::LatestEvent* watch_events(const nlohmann::json& start) = 0;
    /// The pipeline runs.
    virtual void begin(const pipeline::Pipeline& pipeline, const observe::Watch& watch, const RunFacts& facts) = 0;
    /// Every few milliseconds; `seconds` since the start.
    virtual void look(const pipeline::Pipeline& pipeline, const observe::Watch& watch, double seconds) = 0;
    /// The account is drawn up: what is shown now agrees with the report. The pipeline goes after this.
    virtual void finish(const pipeline::Pipeline& pipeline, const observe::Watch& watch, const observe::Ledger& ledger,
                        const std::vector<pipeline::Finding>& findings, double seconds) = 0;
    // Instead of all of these, of a node that only manages a cluster and has no pipeline:
    virtual void begin_managing(const RunFacts& facts) = 0;
    /// Every few milliseconds; `seconds` since the start.
    virtual void look_at_cluster(double seconds) = 0;
    virtual void finish_managing(double seconds) = 0;
};

}  // namespace weir::run
