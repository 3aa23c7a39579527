// What a run shows of itself while it goes on, as one JSON document: for the page, the API and /metrics. On the control
// thread; made of counters that lcores publish anyway.
//
//     observe::RunView view({config.serve->updates_per_s, &latest_event});
//     ... in the control loop, after pipeline.look() and watch.look():
//     if (auto document = view.update(moment)) board.publish(with_status(std::move(*document)));
//     ... after the join, with the ledger and the findings that the report has:
//     board.publish(with_status(view.finish(moment, ledger, findings)));
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/ledger.hpp"
#include "observe/rate_history.hpp"
#include "observe/run_sampler.hpp"
#include "observe/source_view.hpp"
#include "pipeline/finding.hpp"

namespace weir::store {
class LatestEvent;
}  // namespace weir::store

namespace weir::observe {

struct RunMoment;
class Watch;

/// Of one run.
class RunView {
public:
    struct Options {
        std::uint32_t updates_per_s = 2;                   ///< at most; at least 1
        const store::LatestEvent* latest_event = nullptr;  ///< what Pipeline::Options has; null: no pictures
    };
    explicit RunView(Options options) : options_(options) {}

    /// The run's part of the document, if one is due; else nothing, at once: it may be called as often as one likes.
    /// "rates", "ledger", "where", "losses", "sources", "pipeline", "bottleneck", "findings", "history", "picture"
    /// (docs/reference/WATCH_API.md).
    [[nodiscard]] std::optional<nlohmann::json> update(const RunMoment& moment);
    /// The last one, when everything has ended: it agrees with the report to the last packet, and has "balanced".
    [[nodiscard]] nlohmann::json finish(const RunMoment& moment, const Ledger& ledger,
                                        const std::vector<pipeline::Finding>& findings);

private:
    [[nodiscard]] nlohmann::json make(const pipeline::Pipeline& pipeline, const Watch& watch, const RunSample& sample,
                                      double step_s);
    void look_for_findings(const pipeline::Pipeline& pipeline, const Watch& watch, const Ledger& ledger,
                           double seconds);
    [[nodiscard]] nlohmann::json losses(const Ledger& ledger, double step_s);
    [[nodiscard]] double lost_per_s(const nlohmann::json& where, double step_s);

    Options options_;
    RunSampler sampler_;
    RateHistory history_;
    std::optional<SourceView> sources_;
    std::optional<double> made_s_;
    std::optional<double> diagnosed_s_;
    nlohmann::json findings_ = nlohmann::json::array();
    std::map<std::string_view, std::uint64_t> lost_by_cause_;  ///< in the document before
    std::uint64_t lost_ = 0;
};

/// [{"severity": "error" | "warning" | "note", "text", "page", "counter", "packets"}, ...]
[[nodiscard]] nlohmann::json shown_findings_json(const std::vector<pipeline::Finding>& findings);

}  // namespace weir::observe
