// [[sink]] of kind "hdf5": read, printed and as JSON.
#include "config/hdf5_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/nexus.hpp"
#include "config/parts.hpp"
#include "config/printer.hpp"
#include "config/sink_kinds.hpp"

namespace weir::pipeline::detail {

namespace {

/// HDF5 has no filter for `bits`.
std::vector<std::string_view> codec_words() {
    std::vector<std::string_view> words(reduce::pack::codec_names.begin(), reduce::pack::codec_names.end());
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(reduce::pack::Codec::bits));
    return words;
}

bool is_zstd(reduce::pack::Codec codec) noexcept {
    return codec == reduce::pack::Codec::zstd || codec == reduce::pack::Codec::bitshuffle_zstd;
}

/// Of a reducer that compresses.
std::optional<reduce::pack::Codec> codec_of(const ReduceConfig& reducer) {
    if (const auto* pack = reducer.as<PackOptions>(); pack != nullptr) return pack->codec;
    return reducer.as<ZstdOptions>() != nullptr ? std::optional(reduce::pack::Codec::zstd) : std::nullopt;
}

}  // namespace

void warn_of_codecs(RunConfig& run) {
    const auto compressed = [](const ReduceConfig& reducer) {
        const std::optional<reduce::pack::Codec> codec = codec_of(reducer);
        return codec.has_value() && is_zstd(*codec);
    };
    const bool chain = std::ranges::any_of(run.reduce, compressed);
    for (const SinkConfig& sink : run.sinks) {
        if (sink.kind != SinkKind::hdf5) continue;
        const std::string place = fmt::format("{}:{}: sink.codec", sink.place.file, sink.place.line);
        const auto& codec = sink.hdf5().codec;
        if (codec.has_value() && is_zstd(*codec))
            run.warnings.push_back(fmt::format(
                "{}: \"{}\": the HDF5 plug-ins of Debian 12 cannot read it, those of PyPI's hdf5plugin can; "
                "\"bitshuffle-lz4\" is read by both",
                place, reduce::pack::name(*codec)));
        else if (!codec.has_value() && chain)
            run.warnings.push_back(fmt::format(
                "{}: the reducers compress with zstd, which the HDF5 plug-ins of Debian 12 cannot read: the "
                "sink's one thread compresses again with \"bitshuffle-lz4\". Let the reducer `pack` do that "
                "(codec = \"bitshuffle-lz4\"), or set the sink's codec",
                place));
    }
}

void read_hdf5_sink(TableReader& table, SinkConfig& sink) {
    Hdf5SinkConfig hdf5;
    hdf5.segment_bytes = table.size("segment_bytes", {1U << 20, std::uint64_t{1} << 44}).value_or(hdf5.segment_bytes);
    hdf5.events_per_file = table.integer("events_per_file", {0, 1U << 30}).value_or(0);
    hdf5.sync_bytes = table.size("sync_bytes", {4096, std::uint64_t{1} << 44}).value_or(hdf5.sync_bytes);
    hdf5.sync_ms = static_cast<std::uint32_t>(table.integer("sync_ms", {1, 3'600'000}).value_or(hdf5.sync_ms));
    const std::vector<std::string_view> words = codec_words();
    if (const auto word = table.word("codec", words)) hdf5.codec = static_cast<reduce::pack::Codec>(*word);
    if (auto nexus = table.table("nexus")) hdf5.nexus = read_nexus(*nexus);
    sink.options = hdf5;
}

void print_hdf5_sink(Printer& out, const SinkConfig& sink) {
    const Hdf5SinkConfig& hdf5 = sink.hdf5();
    const Hdf5SinkConfig defaults;
    out.size("segment_bytes", hdf5.segment_bytes, defaults.segment_bytes);
    out.number("events_per_file", hdf5.events_per_file, defaults.events_per_file);
    out.size("sync_bytes", hdf5.sync_bytes, defaults.sync_bytes);
    out.number("sync_ms", hdf5.sync_ms, defaults.sync_ms);
    if (hdf5.codec)
        out.line("codec", in_quotes(reduce::pack::name(*hdf5.codec)));
    else
        out.comment("codec: as the reducers compress (default)");
    if (const std::string nexus = nexus_text(hdf5.nexus); !nexus.empty()) out.line("nexus", nexus);
}

void hdf5_sink_json(nlohmann::json& out, const SinkConfig& sink) {
    const Hdf5SinkConfig& hdf5 = sink.hdf5();
    out.update({{"segment_bytes", hdf5.segment_bytes},
                {"events_per_file", hdf5.events_per_file},
                {"sync_bytes", hdf5.sync_bytes},
                {"sync_ms", hdf5.sync_ms},
                {"codec", hdf5.codec ? nlohmann::json(reduce::pack::name(*hdf5.codec)) : nlohmann::json()},
                {"nexus", nexus_json(hdf5.nexus)}});
}

}  // namespace weir::pipeline::detail
