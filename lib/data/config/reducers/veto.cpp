// [[reduce]] kind = "veto": which events are kept. docs/reference/reduce/veto.md says what the keys mean.
#include <fmt/format.h>

#include <algorithm>

#include "config/files.hpp"
#include "config/reducers/entry.hpp"
#include "reduce/veto/veto.hpp"

namespace weir::config::detail {

namespace {

using reduce::PeakOptions;
using reduce::VetoOptions;

constexpr std::array require_names{Named{"all", VetoOptions::Keep::all}, Named{"any", VetoOptions::Keep::any}};
constexpr std::array judge_names{Named{"keep", VetoOptions::Incomplete::keep},
                                 Named{"judge", VetoOptions::Incomplete::judge}};
constexpr std::uint64_t count_max = 0xffffffff;

/// What the bounds say together.
void check_bounds(TableReader& table, const VetoOptions& veto) {
    if (!veto.pixels_min && !veto.pixels_max && !veto.wants_peaks())
        table.missing("min_pixels", "at least one of min_pixels, max_pixels, min_peaks and max_peaks");
    const auto check = [&table](const char* key, const auto& least, const auto& most, const char* other) {
        if (least && most && *most < *least)
            table.wrong(key, fmt::format("{}", *most), fmt::format("not less than {}, which is {}", other, *least));
    };
    check("max_pixels", veto.pixels_min, veto.pixels_max, "min_pixels");
    check("max_peaks", veto.peaks_min, veto.peaks_max, "min_peaks");
}

std::string no_peaks(const VetoOptions& veto) {
    return veto.wants_peaks() ? "" : "peaks are looked for with min_peaks or max_peaks";
}

/// A distance between pixels, or a number of them, whose bounds follow from those before it.
template <class BoundsOf>
Option<VetoOptions> add_distance(OptionTable<VetoOptions>& out, std::string_view key, std::string kind,
                                 std::uint32_t PeakOptions::*member, BoundsOf bounds, std::string_view meaning) {
    return out.add(key, std::move(kind), meaning)
        .refused_where(no_peaks)
        .reads([key = std::string(key), member, bounds](TableReader& table, VetoOptions& veto) {
            veto.peaks.*member = static_cast<std::uint32_t>(*table.integer(key, bounds(veto.peaks)));
        })
        .shows([member](const VetoOptions& veto) { return value_of(veto.peaks.*member); });
}

void add_peaks(OptionTable<VetoOptions>& out) {
    constexpr std::uint64_t reach = PeakOptions::reach_max;
    out.number(
           "peak_threshold", -energy_max, energy_max, [](auto& veto) -> auto& { return veto.peaks.threshold; },
           "the highest pixel of a peak is above this")
        .refused_where(no_peaks)
        .otherwise([](VetoOptions& veto) { veto.peaks.threshold = veto.threshold; })
        .usually("`threshold`");
    out.number(
           "snr", 0, 1e6, [](auto& veto) -> auto& { return veto.peaks.snr; },
           "pixels of a peak are above the background by more than this times its noise")
        .refused_where(no_peaks);
    add_distance(
        out, "peak_radius", "1..3", &PeakOptions::radius,
        [](const PeakOptions&) {
            return Bounds{1, PeakOptions::radius_max};
        },
        "pixels of a peak are no further than this from its highest one");
    add_distance(
        out, "background_radius", "`peak_radius` + 1..15", &PeakOptions::background_radius,
        [](const PeakOptions& peaks) {
            return Bounds{peaks.radius + 1, reach};
        },
        "pixels no further than this, without the peak's square, are its background")
        .otherwise([](VetoOptions& veto) {
            veto.peaks.background_radius = std::max(PeakOptions{}.background_radius, veto.peaks.radius + 1);
        })
        .usually("5");
    add_distance(
        out, "separation", "1..15", &PeakOptions::separation,
        [](const PeakOptions&) {
            return Bounds{1, reach};
        },
        "a peak's highest pixel is the highest as far as this");
    add_distance(
        out, "min_peak_pixels", "1..", &PeakOptions::pixels_min,
        [](const PeakOptions& peaks) {
            const std::uint64_t side = 2ULL * peaks.radius + 1;
            return Bounds{1, side * side};
        },
        "connected pixels of a peak; 1 lets single hot pixels and cosmic rays be peaks");
}

}  // namespace

OptionTable<VetoOptions> veto_options() {
    OptionTable<VetoOptions> out;
    out.number("threshold", -energy_max, energy_max, &VetoOptions::threshold,
               "a pixel counts when its energy is above this, in the `unit` of `jungfrau`")
        .required("the energy above which a pixel is counted, in the unit of the jungfrau before it");
    const auto count = [&out](std::string_view key, std::uint64_t least,
                              std::optional<std::uint32_t> VetoOptions::*member, std::string_view meaning) {
        return out.integer(key, {least, count_max}, member, meaning).unset("not asked");
    };
    count("min_pixels", 1, &VetoOptions::pixels_min, "keep only events with so many pixels above the threshold");
    count("max_pixels", 0, &VetoOptions::pixels_max, "keep only events with no more");
    count("min_peaks", 1, &VetoOptions::peaks_min, "keep only events with so many peaks");
    count("max_peaks", 0, &VetoOptions::peaks_max, "keep only events with no more")
        .check(check_bounds)
        .check_unset(check_bounds);
    out.choice("require", require_names, &VetoOptions::keep,
               "with `min_pixels` and `min_peaks`: an event must have both, or either. Upper bounds always hold")
        .refused_where([](const VetoOptions& veto) -> std::string {
            return veto.pixels_min && veto.peaks_min
                       ? ""
                       : "it says whether an event needs both min_pixels and min_peaks, or either";
        });
    out.choice("incomplete", judge_names, &VetoOptions::incomplete,
               "what is missing may be what was looked for, so incomplete events are kept unjudged; "
               "or they are judged by what is there");
    out.integer("keep_every", {0, count_max}, &VetoOptions::keep_every,
                "of events that would be vetoed, those are kept whose number this divides; 0: none");
    add_peaks(out);
    return out;
}

ReducerEntry veto_reducer() {
    return {.kind = kind_of("veto", veto_options()), .takes = set_of(ReduceData::energies)};
}

}  // namespace weir::config::detail
