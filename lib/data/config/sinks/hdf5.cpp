// [[sink]] of kind "hdf5".
#include "config/sinks/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/parts.hpp"
#include "config/sinks/entry.hpp"
#include "config/sinks/nexus.hpp"
#include "store/hdf5/recovery.hpp"
#include "store/hdf5/writer.hpp"

namespace weir::config {

namespace {

using namespace detail;

/// HDF5 has no filter for `bits`.
std::vector<std::string_view> codec_words() {
    std::vector<std::string_view> words(reduce::pack::codec_names.begin(), reduce::pack::codec_names.end());
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(reduce::pack::Codec::bits));
    return words;
}

bool is_zstd(reduce::pack::Codec codec) noexcept {
    return codec == reduce::pack::Codec::zstd || codec == reduce::pack::Codec::bitshuffle_zstd;
}

void warn_of_codecs(RunConfig& run) {
    const auto packed = packing(run.reduce);
    const bool chain = packed && is_zstd(packed->codec);
    for (const SinkConfig& sink : run.sinks) {
        const auto* hdf5 = sink.as<Hdf5SinkConfig>();
        if (hdf5 == nullptr) continue;
        const std::string place = fmt::format("{}:{}: sink.codec", sink.place.file, sink.place.line);
        const auto& codec = hdf5->codec;
        if (codec.has_value() && is_zstd(*codec))
            run.warnings.push_back(fmt::format(
                "{}: \"{}\": the HDF5 plug-ins of Debian 12 cannot read it, those of PyPI's hdf5plugin can; "
                "\"bitshuffle-lz4\" is read by both",
                place, reduce::pack::name(*codec)));
        else if (!codec.has_value() && chain)
            run.warnings.push_back(
                fmt::format("{}: the reducers compress with zstd, which the HDF5 plug-ins of Debian 12 cannot read: "
                            "the sink's one thread compresses again with \"bitshuffle-lz4\". "
                            "Let the reducer `pack` do that (codec = \"bitshuffle-lz4\"), or set the sink's codec",
                            place));
    }
}

OptionTable<Hdf5SinkConfig> hdf5_options() {
    constexpr std::uint64_t bytes_max = std::uint64_t{1} << 44;
    OptionTable<Hdf5SinkConfig> out;
    out.size("segment_bytes", {1U << 20, bytes_max}, &Hdf5SinkConfig::segment_bytes,
             "a new data file begins after this many bytes,");
    out.integer("events_per_file", {0, 1U << 30}, &Hdf5SinkConfig::events_per_file,
                "and after this many events; 0: not by number");
    out.size("sync_bytes", {4096, bytes_max}, &Hdf5SinkConfig::sync_bytes,
             "data is flushed, for readers that follow, and synced to the disk after this many bytes,");
    out.integer("sync_ms", {1, 3'600'000}, &Hdf5SinkConfig::sync_ms,
                "and at least this often. What is not flushed does not survive the end of the program");
    out.add("codec", quoted_words(codec_words()),
            "of the chunks. Another one than that of the reducers is compressed again by the sink's one thread")
        .reads([](TableReader& table, Hdf5SinkConfig& hdf5) {
            hdf5.codec = static_cast<reduce::pack::Codec>(*table.word("codec", codec_words()));
        })
        .shows([](const Hdf5SinkConfig& hdf5) {
            return hdf5.codec ? nlohmann::json(reduce::pack::name(*hdf5.codec)) : nlohmann::json();
        })
        .unset("as the reducers compress")
        .usually("as the reducers compress; `\"bitshuffle-lz4\"` if that is zstd");
    out.table("nexus", nexus_options(), &Hdf5SinkConfig::nexus,
              "what weir cannot know of the experiment: `title`, `instrument`, `source`, `sample`, `detector`, "
              "`sensor_material` (texts); `sensor_thickness_um`, `pixel_size_um`, `wavelength_angstrom`, "
              "`total_flux`, `distance_mm` (numbers); `beam_center` (x, y in pixels); `fast_direction`, "
              "`slow_direction` (vectors of length 1); `module_gap` (pixels between modules, or a list)")
        .usually("empty");
    return out;
}

std::unique_ptr<store::EventSink> open_hdf5(const SinkContext& context) {
    const Hdf5SinkConfig& hdf5 = *context.sink.as<Hdf5SinkConfig>();
    store::hdf5::Writer::Config config;
    config.path = context.path.path;
    config.name = context.config.name;
    config.start_json = context.start_json;
    config.segment_bytes = hdf5.segment_bytes;
    config.events_per_file = hdf5.events_per_file;
    config.sync_bytes = hdf5.sync_bytes;
    config.sync_interval_ns = hdf5.sync_ms * core::ns_per_ms;
    config.codec = hdf5.codec;
    config.nexus = hdf5.nexus;
    return std::make_unique<store::hdf5::Writer>(config);
}

/// Keys that would make the files an NXmx; nothing if that is not what somebody has begun to write down.
std::string nxmx_text(const SinkConfig& sink, const store::EventSink& open) {
    const auto* writer = dynamic_cast<const store::hdf5::Writer*>(&open);
    if (writer == nullptr || sink.as<Hdf5SinkConfig>()->nexus == store::hdf5::Nexus{}) return {};
    const std::vector<std::string> missing = writer->missing_for_nxmx();
    if (missing.empty()) return {};
    return fmt::format("sink: {}: no NXmx without {} in nexus\n", open.path().string(), fmt::join(missing, ", "));
}

}  // namespace

SinkEntry hdf5_sink() {
    return {.kind = kind_of("hdf5", hdf5_options()),
            .meaning = "HDF5 files in NeXus layout ([HDF5.md](HDF5.md))",
            .open = open_hdf5,
            .start_note = nxmx_text,
            .leftover =
                [](const std::filesystem::path& hidden) {
                    return fmt::format("{} shows what is there", (hidden / "master.h5").string());
                },
            .recover = store::hdf5::recover_run,
            .warn = warn_of_codecs};
}

}  // namespace weir::config
