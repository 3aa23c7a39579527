// What weir's numbers are called in Prometheus: each counter of the tables is one series, with the name, the unit and
// the help that follow from the table; the others are listed here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/counters.hpp"

namespace weir::observe {

enum class MetricKind : std::uint8_t {
    counter,  ///< only grows within a run
    gauge,
};

/// The series of a counter.
struct MetricName {
    std::string family;  ///< "weir_packets_dropped_total"
    std::string label;   ///< "cause", which tells it from others of its family; empty: it is alone
    std::string value;   ///< of that label: "late"
    MetricKind kind = MetricKind::counter;
    std::string help;  ///< of the family
};
/// `section`: as CounterSection has it, but "rings" and "levels", which are several numbers each.
[[nodiscard]] MetricName metric_name(std::string_view section, const core::CounterInfo& counter);

/// A family that is not made of a table.
struct MetricFamilyInfo {
    std::string_view name;
    MetricKind kind;
    std::string_view labels;  ///< "port", "sink, kind", empty: none
    std::string_view help;
};
[[nodiscard]] std::span<const MetricFamilyInfo> other_metrics();
/// Throws std::logic_error where it is not listed.
[[nodiscard]] const MetricFamilyInfo& other_metric(std::string_view name);

/// Of a level: "weir_level_open_used", "weir_level_open_capacity".
[[nodiscard]] std::string level_metric(std::string_view level, std::string_view what);

/// What is before the first end of a sentence, and that: short enough for # HELP.
[[nodiscard]] std::string first_sentence(std::string_view text);

/// All of docs/reference/METRICS.md.
[[nodiscard]] std::string metrics_markdown();

}  // namespace weir::observe
