// Where a source took no part at the beginning or the end of a run: because the recording begins or ends in the middle
// of an event, or because the source itself began late or stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stages/source_span.hpp"

namespace weir::observe {

struct SourceEnds {
    /// Events that came without the source, one after another.
    struct Outage {
        std::uint64_t events = 0;
        std::uint64_t packets = 0;      ///< that these lack
        core::TimeNs seen_ns = 0;       ///< its last packet before them, or the first event after them
        core::TimeNs run_first_ns = 0;  ///< the first packet of the run
        std::uint64_t number = 0;       ///< of the last event that it took part in
    };
    stages::SourceSpan::Without cut_at_start;  ///< what may have come before the recording began
    bool cut_at_end = false;                   ///< what it lacks last may have come after the recording ended
    std::optional<Outage> began_late;
    std::optional<Outage> stopped;
};

/// `is_cut_short`: the input was stopped before its end.
[[nodiscard]] SourceEnds judge_ends(const stages::SourceSpan::Summary& source, const stages::EventSpan::Summary& run,
                                    bool is_cut_short);

/// "2026-09-21 14:13:20.039803 UTC, 0.040 s after the first packet"
[[nodiscard]] std::string seen_at_text(const SourceEnds::Outage& outage);

}  // namespace weir::observe
