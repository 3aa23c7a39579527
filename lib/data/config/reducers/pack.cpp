// [[reduce]] kind = "pack": which codec, and what is known of the numbers that it packs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "config/reducers/entry.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/pack.hpp"

namespace weir::config::detail {

namespace {

using reduce::pack::Codec;

constexpr std::array codecs{Codec::bitshuffle_lz4, Codec::bitshuffle_zstd, Codec::lz4, Codec::zstd, Codec::bits};

std::vector<std::string_view> codec_names() {
    std::vector<std::string_view> names;
    for (const Codec codec : codecs) names.push_back(reduce::pack::name(codec));
    return names;
}

std::string quoted(Codec codec) {
    return in_quotes(reduce::pack::name(codec));
}

void read_level(TableReader& table, PackOptions& options) {
    const auto levels = reduce::pack::levels(options.codec);
    const std::int64_t level = *table.signed_integer("level");
    const bool is_zstd = options.codec == Codec::zstd || options.codec == Codec::bitshuffle_zstd;
    if (level < levels->lowest || level > levels->highest || (level == 0 && is_zstd))
        table.wrong("level", fmt::format("the integer {}", level),
                    is_zstd ? "1..19, or -7..-1 (faster, compresses less)"
                            : "1..9 (from 3 on slow and thorough), or -99..0 (faster, compresses less)");
    options.level = static_cast<std::int32_t>(level);
}

/// Bytes of a number in the payload of all streams; 0 if they differ, or if a format does not say.
std::uint32_t received_element_bytes(const RunConfig& run) {
    std::optional<std::uint32_t> common;
    for (const StreamConfig& stream : run.streams) {
        const auto says = format_entry(stream).element_bytes;
        const std::uint32_t bytes = says != nullptr ? says(format_options(run, stream)) : 0;
        if (common && *common != bytes) return 0;
        common = bytes;
    }
    return common.value_or(0);
}

OptionTable<PackOptions> pack_options() {
    OptionTable<PackOptions> out;
    out.add("codec", quoted_words(codec_names()),
            "the first two sort bits before they compress; `\"bits\"` stores whole numbers in as few bits as they need")
        .reads([](TableReader& table, PackOptions& pack) {
            pack.codec = codecs[*table.word("codec", codec_names())];
            if (!reduce::pack::levels(pack.codec)) pack.level = 0;
        })
        .shows([](const PackOptions& pack) { return nlohmann::json(reduce::pack::name(pack.codec)); });
    out.add("level", "LZ4: -99..9; zstd: 1..19, -7..-1",
            "higher ones compress more and are slower; LZ4's change the method at 3. `\"bits\"` has none")
        .refused_where([](const PackOptions& pack) -> std::string {
            return reduce::pack::levels(pack.codec) ? "" : "nothing: " + quoted(pack.codec) + " has no levels";
        })
        .reads(read_level)
        .otherwise([](PackOptions& pack) { pack.level = reduce::pack::levels(pack.codec)->usual; })
        .usually("1")
        .shows([](const PackOptions& pack) { return value_of(pack.level); });
    out.integer("element_bytes", {1, 8}, &PackOptions::element_bytes,
                "the size of a number in the payload, for `\"bitshuffle-…\"` and `\"bits\"`")
        .kind("1, 2, 4, 8")
        .refused_where([](const PackOptions& pack) -> std::string {
            return reduce::pack::has_elements(pack.codec)
                       ? ""
                       : "nothing: " + quoted(pack.codec) + " does not ask how large an element is";
        })
        .unset(0, "")
        .usually("what the format or the reducers before it say; where they do not, required")
        .check([](TableReader& table, const PackOptions& pack) {
            if (!std::has_single_bit(pack.element_bytes))
                table.wrong("element_bytes", fmt::format("the integer {}", pack.element_bytes), "1, 2, 4 or 8");
        });
    return out;
}

/// What "pack" packs follows from what stands before it.
void resolve_packing(RunConfig& run) {
    const auto* jungfrau = find_reducer<JungfrauOptions>(run.reduce);
    for (ReduceConfig& reducer : run.reduce) {
        auto* pack = reducer.options.get_if<PackOptions>();
        if (pack == nullptr || !reduce::pack::has_elements(pack->codec)) continue;
        const std::string codec = quoted(pack->codec);
        if (jungfrau == nullptr) {
            if (pack->element_bytes == 0) pack->element_bytes = received_element_bytes(run);
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

}  // namespace

ReducerEntry pack_reducer() {
    return {.kind = kind_of("pack", pack_options()),
            .takes = any_data,
            .gives = ReduceData::packed,
            .packing =
                [](const options::Held& options) {
                    const PackOptions& pack = *options.get_if<PackOptions>();
                    return reduce::pack::PackOptions{pack.codec, pack.level, std::max(pack.element_bytes, 1U),
                                                     pack.is_signed};
                },
            .check = resolve_packing};
}

}  // namespace weir::config::detail
