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

ReduceOptions read_zstd(TableReader& table) {
    ZstdOptions options;
    const std::int64_t level = table.signed_integer("level").value_or(options.level);
    if (level < -7 || level > 19 || level == 0)
        table.wrong("level", fmt::format("the integer {}", level), "1..19, or -7..-1 (faster, compresses less)");
    options.level = static_cast<std::int32_t>(level);
    return options;
}

void print_zstd(Printer& out, const ReduceOptions& options) {
    const std::int32_t level = std::get<ZstdOptions>(options).level;
    out.line("level", std::to_string(level), level == ZstdOptions{}.level);
}

nlohmann::json zstd_json(const ReduceOptions& options) {
    return {{"level", std::get<ZstdOptions>(options).level}};
}

}  // namespace

constexpr std::array<std::string_view, 1> zstd_keys{"level"};

const ReducerEntry zstd_entry{"zstd", any_data, ReduceData::packed, {}, zstd_keys, read_zstd, print_zstd, zstd_json};

namespace {

/// In the order of ReduceOptions.
constexpr std::array reducers{&zstd_entry,   &pack_entry, &jungfrau_entry, &veto_entry,
                              &sparse_entry, &mfp_entry,  &pedestal_entry};
static_assert(reducers.size() == std::variant_size_v<ReduceOptions>);

const ReducerEntry& entry_of(const ReduceConfig& reducer) {
    return *reducers[reducer.options.index()];
}

bool has(DataSet set, ReduceData data) {
    return (set >> static_cast<unsigned>(data) & 1U) != 0;
}

std::string_view words(ReduceData data) {
    return reduce_data_names[static_cast<std::size_t>(data)];
}

/// What would have been right where `entry` stands and gets something that it cannot take.
std::string accepted_for(const ReducerEntry& entry, ReduceData found) {
    const std::string name = in_quotes(entry.name);
    if (found == ReduceData::packed)
        return fmt::format("{} before the reducer that compresses, which is the last", name);
    std::vector<std::string_view> givers;
    for (const ReducerEntry* other : reducers)
        if (other->gives && has(entry.takes, *other->gives)) givers.push_back(other->name);
    if (!givers.empty()) return fmt::format("{} after {}", name, any_of(givers));
    if (has(entry.takes, ReduceData::raw_pixels) && found == ReduceData::bytes)
        return fmt::format("{} where all streams are of JUNGFRAU modules (format = \"jungfrau\")", name);
    return fmt::format("{} as the first that changes the data", name);
}

std::vector<std::string_view> keys_of(const ReducerEntry& entry) {
    std::vector<std::string_view> keys{"kind"};
    keys.insert(keys.end(), entry.keys.begin(), entry.keys.end());
    return keys;
}

/// What a table may have whose kind is not said.
std::vector<std::string_view> all_keys() {
    std::vector<std::string_view> keys{"kind"};
    for (const ReducerEntry* entry : reducers) keys.insert(keys.end(), entry->keys.begin(), entry->keys.end());
    return keys;
}

}  // namespace

std::vector<ReduceConfig> read_reducers(TableReader& root) {
    std::vector<ReduceConfig> out;
    std::vector<std::string_view> names;
    for (const ReducerEntry* entry : reducers) names.push_back(entry->name);
    for (TableReader& table : root.tables("reduce")) {
        const auto kind = table.word("kind", names);
        table.allow(kind ? keys_of(*reducers[*kind]) : all_keys());
        if (!kind) table.missing("kind", "the reducer, " + any_of(names));
        ReduceConfig reduce{reducers[*kind]->read(table), table.place()};
        table.finish();
        out.push_back(std::move(reduce));
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

void print_reducers(Printer& out, const std::vector<ReduceConfig>& chain) {
    for (const ReduceConfig& reduce : chain) {
        out.header("[[reduce]]");
        out.line("kind", in_quotes(reduce.kind()));
        entry_of(reduce).print(out, reduce.options);
    }
}

nlohmann::json reducers_json(const std::vector<ReduceConfig>& chain) {
    nlohmann::json out = nlohmann::json::array();
    for (const ReduceConfig& reduce : chain) {
        nlohmann::json one{{"kind", reduce.kind()}};
        one.update(entry_of(reduce).json(reduce.options));
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace detail

std::string_view ReduceConfig::kind() const noexcept {
    return entry_of(*this).name;
}

std::optional<ChainError> check_chain(std::span<const ReduceConfig> chain, ReduceData input) {
    ReduceData data = input;
    std::string from = "from the streams";
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const ReducerEntry& entry = entry_of(chain[i]);
        for (std::size_t before = 0; before < i; ++before)
            if (chain[before].options.index() == chain[i].options.index())
                return ChainError{i,
                                  fmt::format("a second {} (the first is in line {})", in_quotes(entry.name),
                                              chain[before].place.line),
                                  "each kind once"};
        if (!has(entry.takes, data))
            return ChainError{i, fmt::format("{} where there are {} {}", in_quotes(entry.name), words(data), from),
                              accepted_for(entry, data)};
        const auto behind = chain.subspan(i + 1);
        if (!entry.wants_behind.empty() &&
            std::ranges::find(behind, entry.wants_behind, &ReduceConfig::kind) == behind.end())
            return ChainError{
                i, fmt::format("{} without {} after it", in_quotes(entry.name), in_quotes(entry.wants_behind)),
                fmt::format("{} before a {} that uses it", in_quotes(entry.name), in_quotes(entry.wants_behind))};
        if (!entry.gives) continue;
        data = *entry.gives;
        from = fmt::format("from {} in line {}", in_quotes(entry.name), chain[i].place.line);
    }
    return std::nullopt;
}

}  // namespace weir::pipeline
