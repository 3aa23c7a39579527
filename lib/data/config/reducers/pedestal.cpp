// [[reduce]] kind = "pedestal": which frames are dark, and what is made of them.
#include <fmt/format.h>

#include <algorithm>

#include "config/field.hpp"
#include "config/files.hpp"
#include "config/reducers/entry.hpp"
#include "config/reducers/pedestal.hpp"
#include "reduce/pedestal/collect.hpp"
#include "wire/formats/sls/sls.hpp"

namespace weir::config::detail {

namespace {

using Dark = PedestalOptions::Dark;
using Start = PedestalOptions::Start;

constexpr std::string_view dark_accepted =
    "one of every = N (every Nth event number), flag = { offset = 40, bytes = 4, "
    "mask = 0x80000000 } (a field of the detector header), all = true (a run of nothing but dark frames)";

/// How dark frames are told: one way, and only one. `every` comes last of the three.
void check_dark(TableReader& table, PedestalOptions& out) {
    const bool every = table.get("every") != nullptr;
    const bool flag = table.get("flag") != nullptr;
    const bool all = table.get("all") != nullptr && table.boolean("all").value_or(false);
    const int found = (every ? 1 : 0) + (flag ? 1 : 0) + (all ? 1 : 0);
    if (found == 0) table.missing("every", dark_accepted);
    if (found > 1)
        table.wrong(every ? "every" : "flag", fmt::format("{} ways to tell dark frames", found), dark_accepted);
    out.dark = every ? Dark::every : flag ? Dark::flag : Dark::all;
}

/// The sums of an interval have room for so many dark frames.
std::uint64_t interval_max(const PedestalOptions& options) {
    return reduce::PedestalSums::frames_max * std::max<std::uint64_t>(options.every, 1);
}

std::uint64_t interval_default(const PedestalOptions& options) {
    return options.dark == Dark::every ? 10 * options.every : 1000;
}

void read_start(TableReader& table, PedestalOptions& out) {
    const std::string start = *table.text("start");
    if (start == "last")
        out.start = Start::last;
    else if (start != "files") {
        out.start = Start::snapshot;
        out.start_path = config_path(table, start).string();
    }
}

std::string start_text(const PedestalOptions& options) {
    return options.start == Start::files ? "files" : options.start == Start::last ? "last" : options.start_path;
}

void add_dark(OptionTable<PedestalOptions>& out) {
    const auto of = [](Dark dark) {
        return [dark](const PedestalOptions& from, const nlohmann::json& value) {
            return from.dark == dark ? value : nlohmann::json();
        };
    };
    out.add("flag", "field",
            "`{ offset, bytes, mask, shift, value }`: dark frames are the events whose detector header says so")
        .usually("one of three")
        .reads([](TableReader& table, PedestalOptions& into) {
            auto reader = table.table("flag");
            const WrittenField field = read_field(*reader, wire::Sls::header_bytes, FieldExtra::value);
            into.flag = field.field;
            into.flag_value = field.value;
        })
        .shows([of](const PedestalOptions& from) {
            return of(Dark::flag)(from, field_json({from.flag, from.flag_value, {}}));
        })
        .written(field_text);
    out.add("all", "true", "every event is a dark frame")
        .usually("one of three")
        .reads([](TableReader& table, PedestalOptions&) { table.boolean("all"); })
        .shows([of](const PedestalOptions& from) { return of(Dark::all)(from, true); });
    out.add("every", "1..1099511627776", "dark frames are the events whose number is a multiple of this")
        .usually("one of three")
        .reads([](TableReader& table, PedestalOptions& into) {
            into.every = *table.integer("every", {1, std::uint64_t{1} << 40U});
        })
        .shows([of](const PedestalOptions& from) { return of(Dark::every)(from, from.every); })
        .check(check_dark)
        .check_unset(check_dark);
}

}  // namespace

OptionTable<PedestalOptions> pedestal_options() {
    using P = PedestalOptions;
    OptionTable<P> out;
    add_dark(out);
    out.integer("gain", {0, 2}, &P::gain, "whose pedestal is followed");
    out.integer("frames", {2, 10'000'000}, &P::frames, "the window, in dark frames");
    out.number("outlier", 0, 1000, &P::outlier,
               "RMS away from its mean from which on a pixel is not taken; 0: all are");
    out.add("outlier_after", "2..`frames`", "frames of a pixel from which on its RMS is believed")
        .reads([](TableReader& table, P& into) {
            into.outlier_after = static_cast<std::uint32_t>(*table.integer("outlier_after", {2, into.frames}));
        })
        .otherwise([](P& into) { into.outlier_after = std::min(P{}.outlier_after, into.frames); })
        .usually("50")
        .shows([](const P& from) { return value_of(from.outlier_after); });
    out.number("rms_max", 0, 16383, &P::rms_max, "ADU; a pixel with a larger RMS, or none, becomes bad; 0: not asked");
    out.add("interval", "`every`..65535 × `every`", "event numbers from one generation of pedestals to the next")
        .reads([](TableReader& table, P& into) {
            into.interval = *table.integer("interval", {std::max<std::uint64_t>(into.every, 1), interval_max(into)});
        })
        .otherwise([](P& into) { into.interval = interval_default(into); })
        .usually("10 × `every`, or 1000")
        .shows([](const P& from) { return value_of(from.interval); });
    out.text("snapshots", &P::snapshots, "where snapshots are saved")
        .kind("folder")
        .check([](TableReader& table, P& into) { into.snapshots = config_path(table, into.snapshots).string(); })
        .unset("with the run, if it has a folder")
        .usually("the run's own");
    out.integer("snapshot_seconds", {0, 86400 * 365}, &P::snapshot_seconds, "how often, besides the end");
    out.add("start", "`\"files\"`, `\"last\"`, path",
            "begins with the pedestals of `jungfrau`, with the newest snapshot in `snapshots`, or with a snapshot")
        .reads(read_start)
        .shows([](const P& from) { return nlohmann::json(start_text(from)); })
        .check([](TableReader& table, const P& into) {
            if (into.start == Start::last && into.snapshots.empty())
                table.wrong("start", "\"last\" without snapshots",
                            "\"last\" with snapshots = \"DIR\", where to look for it");
        });
    add_files(out, "rms", "files", &P::rms, "RMS of the pedestals of `jungfrau`")
        .check([](TableReader& table, const P& into) {
            if (into.start == Start::snapshot)
                table.wrong("rms", "files beside a snapshot to start from, which has them",
                            "rms where start is \"files\"");
        });
    out.boolean("keep", &P::keep, "dark frames are events like others, or `vetoed`");
    out.integer("queue", {1, 1024}, &P::queue, "dark frames on their way from the workers");
    out.integer("threads", {1, 64}, &P::threads, "that add dark frames up");
    return out;
}

ReducerEntry pedestal_reducer() {
    return {.kind = kind_of("pedestal", pedestal_options()), .takes = set_of(ReduceData::raw_pixels)};
}

}  // namespace weir::config::detail
