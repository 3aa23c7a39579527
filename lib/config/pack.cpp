// [[reduce]] kind = "pack": which codec, and what is known of the numbers that it packs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline {

using reduce::pack::Codec;

namespace detail {

namespace {

constexpr auto keys = std::to_array<std::string_view>({"codec", "level", "element_bytes"});

constexpr std::array codecs{Codec::bitshuffle_lz4, Codec::bitshuffle_zstd, Codec::lz4, Codec::zstd, Codec::bits};

ReduceOptions read_pack(TableReader& table) {
    PackOptions options;
    std::vector<std::string_view> names;
    for (const Codec codec : codecs) names.push_back(reduce::pack::name(codec));
    if (const auto index = table.word("codec", names)) options.codec = codecs[*index];

    const std::string codec = in_quotes(reduce::pack::name(options.codec));
    if (const auto levels = reduce::pack::levels(options.codec)) {
        const std::int64_t level = table.signed_integer("level").value_or(levels->usual);
        const bool is_zstd = options.codec == Codec::zstd || options.codec == Codec::bitshuffle_zstd;
        if (level < levels->lowest || level > levels->highest || (level == 0 && is_zstd))
            table.wrong("level", fmt::format("the integer {}", level),
                        is_zstd ? "1..19, or -7..-1 (faster, compresses less)"
                                : "1..9 (from 3 on slow and thorough), or -99..0 (faster, compresses less)");
        options.level = static_cast<std::int32_t>(level);
    } else {
        table.refuse("level", "nothing: " + codec + " has no levels");
        options.level = 0;
    }

    if (!reduce::pack::has_elements(options.codec))
        table.refuse("element_bytes", "nothing: " + codec + " does not ask how large an element is");
    if (const auto bytes = table.integer("element_bytes", {1, 8})) {
        if (!std::has_single_bit(*bytes))
            table.wrong("element_bytes", fmt::format("the integer {}", *bytes), "1, 2, 4 or 8");
        options.element_bytes = static_cast<std::uint32_t>(*bytes);
    }
    return options;
}

void print_pack(Printer& out, const ReduceOptions& all) {
    const auto& options = std::get<PackOptions>(all);
    out.line("codec", in_quotes(reduce::pack::name(options.codec)), options.codec == PackOptions{}.codec);
    if (const auto levels = reduce::pack::levels(options.codec))
        out.line("level", std::to_string(options.level), options.level == levels->usual);
    if (options.element_bytes != 0) out.line("element_bytes", std::to_string(options.element_bytes));
}

nlohmann::json pack_json(const ReduceOptions& all) {
    const auto& options = std::get<PackOptions>(all);
    nlohmann::json out{{"codec", reduce::pack::name(options.codec)}};
    if (reduce::pack::levels(options.codec)) out["level"] = options.level;
    if (options.element_bytes != 0) out["element_bytes"] = options.element_bytes;
    return out;
}

/// Bytes of a pixel as it is received; 0 where a format does not say.
std::uint32_t pixel_bytes(const StreamConfig& stream) {
    if (stream.format == "jungfrau" || stream.format == "moench" || stream.format == "hexitec") return 2;
    if (stream.format != "eiger") return 0;
    const std::uint32_t bits = stream.bit_depth.value_or(16);
    return bits == 8 || bits == 16 || bits == 32 ? bits / 8 : 1;  // of 4 and 12 bits some share a byte
}

/// That of all streams; 0 if they differ.
std::uint32_t pixel_bytes(const std::vector<StreamConfig>& streams) {
    if (streams.empty()) return 0;
    const std::uint32_t bytes = pixel_bytes(streams.front());
    const bool same = std::ranges::all_of(streams, [bytes](const auto& other) { return pixel_bytes(other) == bytes; });
    return same ? bytes : 0;
}

}  // namespace

const ReducerEntry pack_entry{"pack", any_data, ReduceData::packed, {}, keys, read_pack, print_pack, pack_json};

void resolve_packing(RunConfig& run) {
    const auto* jungfrau = find_reducer<JungfrauOptions>(run.reduce);
    for (ReduceConfig& reducer : run.reduce) {
        auto* pack = std::get_if<PackOptions>(&reducer.options);
        if (pack == nullptr || !reduce::pack::has_elements(pack->codec)) continue;
        const std::string codec = in_quotes(reduce::pack::name(pack->codec));
        if (jungfrau == nullptr) {
            if (pack->element_bytes == 0) pack->element_bytes = pixel_bytes(run.streams);
            if (pack->element_bytes == 0)
                fail(reducer.place, "reduce.element_bytes",
                     "nothing, and the formats of the streams do not say how large a number in their payload is",
                     "1, 2, 4 or 8, which " + codec + " has to know");
            continue;
        }
        const auto output = jungfrau->output;
        const std::string_view type = reduce::pixel_type_names[static_cast<std::size_t>(output)];
        const auto bytes = static_cast<std::uint32_t>(reduce::bytes_of(output));
        if (pack->element_bytes != 0 && pack->element_bytes != bytes)
            fail(reducer.place, "reduce.element_bytes", fmt::format("the integer {}", pack->element_bytes),
                 fmt::format("{}, as the output \"{}\" of \"jungfrau\" has it, or nothing", bytes, type));
        if (pack->codec == Codec::bits && (output == reduce::PixelType::f32 || output == reduce::PixelType::f16))
            fail(reducer.place, "reduce.codec", fmt::format("{} after \"jungfrau\" with output = \"{}\"", codec, type),
                 "another codec, or output = \"u16\" or \"i16\": \"bits\" packs whole numbers");
        pack->element_bytes = bytes;
        pack->is_signed = output == reduce::PixelType::i16;
    }
}

}  // namespace detail

std::optional<reduce::pack::PackOptions> packing(std::span<const ReduceConfig> chain) {
    if (const auto* zstd = find_reducer<ZstdOptions>(chain))
        return reduce::pack::PackOptions{Codec::zstd, zstd->level, 1, false};
    const auto* pack = find_reducer<PackOptions>(chain);
    if (pack == nullptr) return {};
    return reduce::pack::PackOptions{pack->codec, pack->level, std::max(pack->element_bytes, 1U), pack->is_signed};
}

}  // namespace weir::pipeline
