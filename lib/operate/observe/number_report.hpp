// Whole events that never came: what the numbers of those that did come say about it, for the run and for each source.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/event_numbers.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

struct NumberReport {
    using Range = assemble::NumberAccount::Range;
    static constexpr std::size_t source_ranges_max = 64;

    pipeline::EventNumbers::Summary run;
    bool of_arrival = false;     ///< weir numbered the messages as they came, so no number can be missing
    bool declared = false;       ///< `events.stride` says how numbers rise
    bool sparse = false;         ///< ... namely not evenly
    bool counts_frames = false;  ///< the detector counts every frame by one
    struct Source {
        std::uint64_t absent = 0;           ///< incomplete events for which nothing came from it
        std::vector<std::uint64_t> lowest;  ///< numbers of such events, in order
        std::uint64_t highest = 0;
    };
    std::vector<Source> sources;  ///< empty where an event does not need every source

    /// Why the numbers say nothing about whole events; empty if they do.
    [[nodiscard]] std::string why_unknown() const;
    /// Exact if why_unknown() is empty.
    [[nodiscard]] std::uint64_t missing() const { return run.missing(); }
};

/// While a live run goes on: of the numbers that nothing can change any more, without sources. Nothing: there are none
/// yet, or it is a replay, where no time tells when an event would have come.
[[nodiscard]] std::optional<NumberReport> report_settled_numbers(const pipeline::Pipeline& pipeline);
/// Once the run has ended.
[[nodiscard]] NumberReport report_numbers(const pipeline::Pipeline& pipeline);

/// {"total": N | "unknown", "why", "stride", "first", "last", "seen", "ranges": [[first, last], ...],
/// "ranges_left_out"}
[[nodiscard]] nlohmann::json numbers_json(const NumberReport& report);
/// {"total", "ranges", "numbers_left_out"} of a source: numbers that are missing in the run, and those of events in
/// which it alone, or with others, sent nothing.
[[nodiscard]] nlohmann::json source_numbers_json(const NumberReport& report, std::size_t source);
/// "6-99, 120": the first few.
[[nodiscard]] std::string ranges_text(const NumberReport& report);

}  // namespace weir::observe
