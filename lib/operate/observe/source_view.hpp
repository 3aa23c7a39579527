// The sources of a run side by side: what came of each, how fast, when last, and which ones lag behind the others.
// Cheap for a thousand of them. Control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/ledger.hpp"
#include "observe/watch.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// What is held against the others.
struct SourcePace {
    std::uint32_t group = 0;           ///< sources that send as many packets as each other
    std::uint64_t packets = 0;         ///< in the last two seconds or so
    std::optional<double> silent_s{};  ///< since its last packet; nothing: none came yet
};

/// A source lags when
/// - it sent less than half as many packets as the median of its group, which sent at least 20; or
/// - it has been silent for `patience_s` longer than the median of all; or none has come yet and the median has been
///   sending for that long (`since_s`: since the first packet of any).
/// Where two are in the middle the better one is the median, so that one of two sources can lag.
[[nodiscard]] std::vector<bool> lagging_sources(std::span<const SourcePace> sources, double since_s, double patience_s);

class SourceView {
public:
    explicit SourceView(const pipeline::Pipeline& pipeline);

    /// {"label": [...], "packets": [...], "missing": [...], "per_s": [...], "last_seen_s": [...], "lagging": [...]}, by
    /// source. Rates are over the last two seconds; none lags in a replay, because its clock says nothing of that.
    [[nodiscard]] nlohmann::json update(const Ledger& ledger, const Watch& watch, double seconds);

private:
    /// The packets of each source at one time.
    struct Past {
        double seconds = 0;
        std::vector<std::uint64_t> packets;
    };
    void remember(const Ledger& ledger, double seconds);

    std::vector<std::string> labels_;
    std::vector<std::uint32_t> groups_;  ///< per source
    double patience_s_ = 1;
    bool replay_ = false;
    std::optional<double> first_s_;  ///< when a packet of any was seen first
    std::deque<Past> past_;          ///< oldest first
};

}  // namespace weir::observe
