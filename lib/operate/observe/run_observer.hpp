// The points in time of a run at which those who watch it are told.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
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
struct Verdict;
class Watch;

/// Facts that are known when a run begins.
struct RunFacts {
    std::optional<std::uint32_t> number;       ///< nothing: no path of a sink has {run}
    std::vector<std::filesystem::path> paths;  ///< as they will be called
    core::TimeNs started_ns = 0;               ///< UNIX time
    /// "cluster" of the document: a node of a cluster as it is at the moment of the call. Until closed() or
    /// finish_managing(); empty: the run is of no cluster.
    std::function<nlohmann::json()> cluster{};
};

/// A run at one moment, to be looked at during the call only.
struct RunMoment {
    const pipeline::Pipeline& pipeline;
    const Watch& watch;
    double seconds = 0;  ///< since the start
};

/// Everything on the control thread, in the order below. Must not take long: the run is stopped from there. An
/// exception ends the run, and whoever comes later in the order is not told.
class RunObserver {
public:
    RunObserver() = default;
    virtual ~RunObserver() = default;
    RunObserver(const RunObserver&) = delete;
    RunObserver& operator=(const RunObserver&) = delete;

    /// A run is about to be made, whose sinks were opened with `start`. Returns the picture that gets to see its
    /// events, and outlives the pipeline; null: none. At most one observer of a run has one.
    [[nodiscard]] virtual store::LatestEvent* watch_events(const nlohmann::json& /*start*/) { return nullptr; }
    /// The pipeline is made, and nothing polls yet.
    virtual void starting(const RunMoment& /*moment*/) {}
    /// The pipeline runs.
    virtual void begin(const RunFacts& /*facts*/, const RunMoment& /*moment*/) {}
    /// Every few milliseconds, once the run has looked itself: to show something.
    virtual void look(const RunMoment& /*moment*/) {}
    /// As often, once the run has answered its senders and looked after its sinks: to warn of something.
    virtual void check(const RunMoment& /*moment*/) {}
    /// As often, after that: somebody may have asked this one, since the last call, for what the flight recorder has.
    /// Returns the way in which they asked, for people; empty: nobody has.
    [[nodiscard]] virtual std::string_view take_record_request() noexcept { return {}; }
    /// All lcores have ended, and nothing is counted yet: what this one writes itself is complete after this.
    virtual void ended(const RunMoment& /*moment*/) {}
    /// The account is final; sinks are still open.
    virtual void counted(const RunMoment& /*moment*/, const Ledger& /*ledger*/, const Verdict& /*verdict*/) {}
    /// Sinks are closed: what is shown now agrees with the report. The pipeline goes after this.
    virtual void closed(const RunMoment& /*moment*/, const Ledger& /*ledger*/, const Verdict& /*verdict*/,
                        const std::vector<pipeline::Finding>& /*findings*/) {}

    // Instead of all of these, of a node that only manages a cluster and has no pipeline:

    /// The node takes part in its cluster.
    virtual void begin_managing(const RunFacts& /*facts*/) {}
    /// Every few milliseconds; `seconds` since the start.
    virtual void look_at_cluster(double /*seconds*/) {}
    /// The cluster's run is over for this node.
    virtual void finish_managing(double /*seconds*/) {}
};

}  // namespace weir::observe
