// [[reduce]] kind = "veto": which events are kept. docs/reference/reduce/veto.md says what the keys mean.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr auto keys = std::to_array<std::string_view>(
    {"threshold", "min_pixels", "max_pixels", "min_peaks", "max_peaks", "require", "incomplete", "keep_every",
     "peak_threshold", "snr", "peak_radius", "background_radius", "separation", "min_peak_pixels"});

using reduce::PeakOptions;
using reduce::VetoOptions;

constexpr std::array require_names{Named{"all", VetoOptions::Keep::all}, Named{"any", VetoOptions::Keep::any}};
constexpr std::array incomplete_names{Named{"keep", VetoOptions::Incomplete::keep},
                                      Named{"judge", VetoOptions::Incomplete::judge}};
constexpr double energy_max = 1e9;
constexpr std::uint64_t count_max = 0xffffffff;

std::optional<std::uint32_t> count(TableReader& table, std::string_view key, std::uint64_t least) {
    const auto value = table.integer(key, {least, count_max});
    if (!value) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
}

void read_bounds(TableReader& table, VetoOptions& out) {
    out.pixels_min = count(table, "min_pixels", 1);
    out.pixels_max = count(table, "max_pixels", 0);
    out.peaks_min = count(table, "min_peaks", 1);
    out.peaks_max = count(table, "max_peaks", 0);
    if (!out.pixels_min && !out.pixels_max && !out.wants_peaks())
        table.missing("min_pixels", "at least one of min_pixels, max_pixels, min_peaks and max_peaks");
    if (out.pixels_min && out.pixels_max && *out.pixels_max < *out.pixels_min)
        table.wrong("max_pixels", fmt::format("{}", *out.pixels_max),
                    fmt::format("not less than min_pixels, which is {}", *out.pixels_min));
    if (out.peaks_min && out.peaks_max && *out.peaks_max < *out.peaks_min)
        table.wrong("max_peaks", fmt::format("{}", *out.peaks_max),
                    fmt::format("not less than min_peaks, which is {}", *out.peaks_min));
}

void read_peaks(TableReader& table, VetoOptions& options) {
    PeakOptions& out = options.peaks;
    if (!options.wants_peaks()) {
        for (const std::string_view key :
             {"peak_threshold", "snr", "peak_radius", "background_radius", "separation", "min_peak_pixels"})
            table.refuse(key, "peaks are looked for with min_peaks or max_peaks");
        return;
    }
    out.threshold = table.number("peak_threshold", -energy_max, energy_max).value_or(options.threshold);
    out.snr = table.number("snr", 0, 1e6).value_or(out.snr);
    const auto distance = [&](std::string_view key, std::uint64_t least, std::uint64_t most, std::uint32_t fallback) {
        return static_cast<std::uint32_t>(table.integer(key, {least, most}).value_or(fallback));
    };
    out.radius = distance("peak_radius", 1, PeakOptions::radius_max, out.radius);
    const std::uint32_t around = std::max(out.background_radius, out.radius + 1);
    out.background_radius = distance("background_radius", out.radius + 1, PeakOptions::reach_max, around);
    out.separation = distance("separation", 1, PeakOptions::reach_max, out.separation);
    const std::uint64_t square = (2ULL * out.radius + 1) * (2ULL * out.radius + 1);
    out.pixels_min = distance("min_peak_pixels", 1, square, out.pixels_min);
}

ReduceOptions read(TableReader& table) {
    VetoOptions options;
    const auto threshold = table.number("threshold", -energy_max, energy_max);
    if (!threshold)
        table.missing("threshold", "the energy above which a pixel is counted, in the unit of the jungfrau before it");
    options.threshold = *threshold;
    read_bounds(table, options);
    if (options.pixels_min && options.peaks_min)
        options.keep = table.choice("require", require_names).value_or(options.keep);
    else
        table.refuse("require", "it says whether an event needs both min_pixels and min_peaks, or either");
    options.incomplete = table.choice("incomplete", incomplete_names).value_or(options.incomplete);
    options.keep_every = static_cast<std::uint32_t>(table.integer("keep_every", {0, count_max}).value_or(0));
    read_peaks(table, options);
    return options;
}

void print_count(Printer& out, std::string_view key, const std::optional<std::uint32_t>& value) {
    if (value)
        out.line(key, std::to_string(*value));
    else
        out.comment(fmt::format("{}: not asked (default)", key));
}

void print(Printer& out, const ReduceOptions& from) {
    const auto& options = std::get<VetoOptions>(from);
    const VetoOptions defaults;
    out.line("threshold", fmt::format("{}", options.threshold));
    print_count(out, "min_pixels", options.pixels_min);
    print_count(out, "max_pixels", options.pixels_max);
    print_count(out, "min_peaks", options.peaks_min);
    print_count(out, "max_peaks", options.peaks_max);
    if (options.pixels_min && options.peaks_min) out.choice("require", require_names, options.keep, defaults.keep);
    out.choice("incomplete", incomplete_names, options.incomplete, defaults.incomplete);
    out.number("keep_every", options.keep_every, defaults.keep_every);
    if (!options.wants_peaks()) return;
    const PeakOptions& peaks = options.peaks;
    out.line("peak_threshold", fmt::format("{}", peaks.threshold), peaks.threshold == options.threshold);
    out.line("snr", fmt::format("{}", peaks.snr), peaks.snr == defaults.peaks.snr);
    out.number("peak_radius", peaks.radius, defaults.peaks.radius);
    out.number("background_radius", peaks.background_radius, defaults.peaks.background_radius);
    out.number("separation", peaks.separation, defaults.peaks.separation);
    out.number("min_peak_pixels", peaks.pixels_min, defaults.peaks.pixels_min);
}

nlohmann::json json(const ReduceOptions& from) {
    const auto& options = std::get<VetoOptions>(from);
    nlohmann::json out{{"threshold", options.threshold},
                       {"incomplete", name_of(incomplete_names, options.incomplete)},
                       {"keep_every", options.keep_every}};
    if (options.pixels_min) out["min_pixels"] = *options.pixels_min;
    if (options.pixels_max) out["max_pixels"] = *options.pixels_max;
    if (options.peaks_min) out["min_peaks"] = *options.peaks_min;
    if (options.peaks_max) out["max_peaks"] = *options.peaks_max;
    if (options.pixels_min && options.peaks_min) out["require"] = name_of(require_names, options.keep);
    if (!options.wants_peaks()) return out;
    const PeakOptions& peaks = options.peaks;
    out.update({{"peak_threshold", peaks.threshold},
                {"snr", peaks.snr},
                {"peak_radius", peaks.radius},
                {"background_radius", peaks.background_radius},
                {"separation", peaks.separation},
                {"min_peak_pixels", peaks.pixels_min}});
    return out;
}

}  // namespace

const ReducerEntry veto_entry{"veto", set_of(ReduceData::energies), {}, {}, keys, read, print, json};

}  // namespace weir::pipeline::detail
