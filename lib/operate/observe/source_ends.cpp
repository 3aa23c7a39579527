#include "observe/source_ends.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace weir::observe {

namespace {

using Summary = stages::SourceSpan::Summary;
using Without = stages::SourceSpan::Without;

/// Whether single losses, as many as the source has elsewhere, hardly make a row of so many events without it.
bool is_outage(const Summary& source, const Without& row) {
    constexpr double by_chance = 1e-3;
    const std::uint64_t others = source.without - std::min(source.without, row.events);
    const double chance = static_cast<double>(others + 1) / static_cast<double>(source.with + others + 2);
    return std::pow(chance, static_cast<double>(row.events)) < by_chance;
}

}  // namespace

SourceEnds judge_ends(const Summary& source, const stages::EventSpan::Summary& run, bool is_cut_short) {
    SourceEnds ends;
    if (source.with == 0) return ends;
    // An event that began no longer before an edge than a whole one takes may reach beyond it.
    const bool known = run.longest_ns >= 0;
    if (source.before.events > 0) {
        if (known && source.before_until_ns - run.first_ns <= run.longest_ns)
            ends.cut_at_start = source.before;
        else if (is_outage(source, source.before))
            ends.began_late = {source.before.events, source.before.packets, source.oldest_ns, run.first_ns, 0};
    }
    const core::TimeNs lacks_from_ns = source.after.events > 0 ? source.after_from_ns : source.newest_ns;
    ends.cut_at_end = known ? run.last_ns - lacks_from_ns <= run.longest_ns : is_cut_short;
    if (!ends.cut_at_end && source.after.events > 0 && is_outage(source, source.after))
        ends.stopped = {source.after.events, source.after.packets, source.last_seen_ns, run.first_ns,
                        source.newest_number};
    return ends;
}

std::string seen_at_text(const SourceEnds::Outage& outage) {
    constexpr core::TimeNs second = 1'000'000'000;
    const std::time_t whole = outage.seen_ns / second;
    return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06} UTC, {:.3f} s after the first packet", fmt::gmtime(whole),
                       outage.seen_ns % second / 1000,
                       static_cast<double>(outage.seen_ns - outage.run_first_ns) / static_cast<double>(second));
}

}  // namespace weir::observe
