// [[reduce]] kind = "zstd".
#include "config/reducers/zstd.hpp"

#include <fmt/format.h>

#include "config/reducers/entry.hpp"

namespace weir::config::detail {

namespace {

OptionTable<ZstdOptions> zstd_options() {
    OptionTable<ZstdOptions> out;
    out.add("level", "1..19, -7..-1", "zstd's level; negative ones are faster and compress less")
        .reads([](TableReader& table, ZstdOptions& zstd) {
            const std::int64_t level = *table.signed_integer("level");
            if (level < -7 || level > 19 || level == 0)
                table.wrong("level", fmt::format("the integer {}", level),
                            "1..19, or -7..-1 (faster, compresses less)");
            zstd.level = static_cast<std::int32_t>(level);
        })
        .schema({{"type", "integer"}, {"minimum", -7}, {"maximum", 19}})
        .shows([](const ZstdOptions& zstd) { return value_of(zstd.level); });
    return out;
}

}  // namespace

ReducerEntry zstd_reducer() {
    return {
        .kind = kind_of("zstd", zstd_options()),
        .takes = any_data,
        .gives = ReduceData::packed,
        .packing =
            [](const options::Held& options) {
                return reduce::pack::PackOptions{reduce::pack::Codec::zstd, options.get_if<ZstdOptions>()->level, 1,
                                                 false};
            },
        .codec =
            [](const options::Held& options) { return reduce::make_zstd_codec(options.get_if<ZstdOptions>()->level); }};
}

}  // namespace weir::config::detail
