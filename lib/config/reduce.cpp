// [[reduce]]: the table of kinds, and which may stand after which.
#include "config/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline {

using namespace detail;

namespace detail {

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
        .shows([](const ZstdOptions& zstd) { return value_of(zstd.level); });
    return out;
}

/// In the order of ReduceOptions.
const std::vector<ReducerEntry>& reducers() {
    using enum ReduceData;
    static const std::vector<ReducerEntry> all{
        {kind_of<ReduceOptions>("zstd", zstd_options()), any_data, packed},
        {kind_of<ReduceOptions>("pack", pack_options()), any_data, packed},
        {kind_of<ReduceOptions>("jungfrau", jungfrau_options()), set_of(raw_pixels), energies},
        {kind_of<ReduceOptions>("veto", veto_options()), set_of(energies), {}},
        {kind_of<ReduceOptions>("sparse", sparse_options()), set_of(energies), sparse},
        {kind_of<ReduceOptions>("mfp", mfp_options()), set_of(bytes), mep},
        {kind_of<ReduceOptions>("pedestal", pedestal_options()), set_of(raw_pixels), {}},
    };
    return all;
}

const ReducerEntry& entry_of(const ReduceConfig& reducer) {
    return reducers()[reducer.options.index()];
}

std::vector<std::string_view> kind_names() {
    std::vector<std::string_view> names;
    for (const ReducerEntry& entry : reducers()) names.push_back(entry.options.name);
    return names;
}

bool has(DataSet set, ReduceData data) {
    return (set >> static_cast<unsigned>(data) & 1U) != 0;
}

std::string_view words(ReduceData data) {
    return reduce_data_names[static_cast<std::size_t>(data)];
}

/// What would have been right where `entry` stands and gets something that it cannot take.
std::string accepted_for(const ReducerEntry& entry, ReduceData found) {
    const std::string name = in_quotes(entry.options.name);
    if (found == ReduceData::packed)
        return fmt::format("{} before the reducer that compresses, which is the last", name);
    std::vector<std::string_view> givers;
    for (const ReducerEntry& other : reducers())
        if (other.gives && has(entry.takes, *other.gives)) givers.push_back(other.options.name);
    if (!givers.empty()) return fmt::format("{} after {}", name, any_of(givers));
    if (has(entry.takes, ReduceData::raw_pixels) && found == ReduceData::bytes)
        return fmt::format("{} where all streams are of JUNGFRAU modules (format = \"jungfrau\")", name);
    return fmt::format("{} as the first that changes the data", name);
}

/// Those of one kind, or of all where the kind is not said.
std::vector<std::string_view> keys_of(std::optional<std::size_t> kind) {
    std::vector<std::string_view> keys{"kind"};
    for (std::size_t i = 0; i < reducers().size(); ++i)
        if (!kind || *kind == i) {
            const auto& own = reducers()[i].options.keys;
            keys.insert(keys.end(), own.begin(), own.end());
        }
    return keys;
}

}  // namespace

std::vector<ReduceConfig> read_reducers(TableReader& root) {
    std::vector<ReduceConfig> out;
    for (TableReader& table : root.tables("reduce")) {
        const auto kind = table.word("kind", kind_names());
        table.allow(keys_of(kind));
        if (!kind) table.missing("kind", "the reducer, " + any_of(kind_names()));
        out.push_back({reducers()[*kind].options.read(table), table.place()});
    }
    return out;
}

void check_reducers(RunConfig& run) {
    const bool pixels =
        std::ranges::all_of(run.streams, [](const StreamConfig& stream) { return stream.format == "jungfrau"; });
    const auto error = check_chain(run.reduce, pixels ? ReduceData::raw_pixels : ReduceData::bytes);
    if (error) fail(run.reduce[error->table].place, "reduce.kind", error->found, error->accepted);
    check_sparse(run);
    resolve_packing(run);
    check_place_of_conversion(run);
    warn_of_gains(run);
}

std::string print_reducer(const ReduceConfig& reducer) {
    return fmt::format("\n[[reduce]]\nkind = {}\n", in_quotes(reducer.kind())) +
           entry_of(reducer).options.print(reducer.options);
}

nlohmann::json reducer_json(const ReduceConfig& reducer) {
    nlohmann::json out = entry_of(reducer).options.report(reducer.options);
    out["kind"] = reducer.kind();
    return out;
}

void explain_reducers(Reference& out) {
    for (const ReducerEntry& entry : reducers())
        out.push_back({fmt::format("reduce.{}", entry.options.name), fmt::format("key of `{}`", entry.options.name),
                       entry.options.explained});
}

}  // namespace detail

std::string_view ReduceConfig::kind() const noexcept {
    return entry_of(*this).options.name;
}

std::optional<ChainError> check_chain(std::span<const ReduceConfig> chain, ReduceData input) {
    ReduceData data = input;
    std::string from = "from the streams";
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const ReducerEntry& entry = entry_of(chain[i]);
        for (std::size_t before = 0; before < i; ++before)
            if (chain[before].options.index() == chain[i].options.index())
                return ChainError{i,
                                  fmt::format("a second {} (the first is in line {})", in_quotes(entry.options.name),
                                              chain[before].place.line),
                                  "each kind once"};
        if (!has(entry.takes, data))
            return ChainError{i,
                              fmt::format("{} where there are {} {}", in_quotes(entry.options.name), words(data), from),
                              accepted_for(entry, data)};
        if (!entry.gives) continue;
        data = *entry.gives;
        from = fmt::format("from {} in line {}", in_quotes(entry.options.name), chain[i].place.line);
    }
    return std::nullopt;
}

}  // namespace weir::pipeline
