// [[reduce]]: which kinds may stand after which.
#include "config/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducers/entry.hpp"
#include "reduce/pack/pack_codec.hpp"

namespace weir::config {

using namespace detail;

namespace detail {

namespace {

std::vector<std::string_view> reducer_names() {
    std::vector<std::string_view> names;
    for (const ReducerEntry& entry : reducer_entries()) names.push_back(entry.kind.name);
    return names;
}

bool has(DataSet set, ReduceData data) {
    return (set >> static_cast<unsigned>(data) & 1U) != 0;
}

std::string_view words(ReduceData data) {
    return reduce_data_names[static_cast<std::size_t>(data)];
}

std::vector<std::string_view> formats_with_gain_bits() {
    std::vector<std::string_view> names;
    for (const wire::FormatEntry& format : wire::formats())
        if (format.image.gain_bits) names.push_back(format.name);
    return names;
}

/// What would have been right where `entry` stands and gets something that it cannot take.
std::string accepted_for(const ReducerEntry& entry, ReduceData found) {
    const std::string name = in_quotes(entry.kind.name);
    if (found == ReduceData::packed)
        return fmt::format("{} before the reducer that compresses, which is the last", name);
    std::vector<std::string_view> givers;
    for (const ReducerEntry& other : reducer_entries())
        if (other.gives && has(entry.takes, *other.gives)) givers.push_back(other.kind.name);
    if (!givers.empty()) return fmt::format("{} after {}", name, any_of(givers));
    if (has(entry.takes, ReduceData::raw_pixels) && found == ReduceData::bytes)
        return fmt::format("{} where all streams are of JUNGFRAU modules (format = {})", name,
                           any_of(formats_with_gain_bits()));
    return fmt::format("{} as the first that changes the data", name);
}

/// Those of one kind, or of all where the kind is not said.
std::vector<std::string_view> keys_of(std::optional<std::size_t> kind) {
    std::vector<std::string_view> keys{"kind"};
    for (std::size_t i = 0; i < reducer_entries().size(); ++i)
        if (!kind || *kind == i) {
            const auto& own = reducer_entries()[i].kind.keys;
            keys.insert(keys.end(), own.begin(), own.end());
        }
    return keys;
}

}  // namespace

std::vector<ReduceConfig> read_reducers(TableReader& root) {
    std::vector<ReduceConfig> out;
    for (TableReader& table : root.tables("reduce")) {
        const auto kind = table.word("kind", reducer_names());
        table.allow(keys_of(kind));
        if (!kind) table.missing("kind", "the reducer, " + any_of(reducer_names()));
        out.push_back({reducer_entries()[*kind].kind.read(table), table.place()});
    }
    return out;
}

void check_reducers(RunConfig& run) {
    const bool pixels = std::ranges::all_of(
        run.streams, [](const StreamConfig& stream) { return format_entry(stream).image.gain_bits; });
    const auto error = check_chain(run.reduce, pixels ? ReduceData::raw_pixels : ReduceData::bytes);
    if (error) fail(run.reduce[error->table].place, "reduce.kind", error->found, error->accepted);
    for (const ReducerEntry& entry : reducer_entries())
        if (entry.check != nullptr) entry.check(run);
    for (const ReducerEntry& entry : reducer_entries())
        if (entry.warn != nullptr) entry.warn(run);
}

std::string print_reducer(const ReduceConfig& reducer) {
    return fmt::format("\n[[reduce]]\nkind = {}\n", in_quotes(reducer.kind())) +
           entry_of(reducer).kind.print(reducer.options);
}

nlohmann::json reducer_json(const ReduceConfig& reducer) {
    nlohmann::json out = entry_of(reducer).kind.report(reducer.options);
    out["kind"] = reducer.kind();
    return out;
}

void explain_reducers(Reference& out) {
    for (const ReducerEntry& entry : reducer_entries())
        out.push_back({fmt::format("reduce.{}", entry.kind.name), fmt::format("key of `{}`", entry.kind.name),
                       entry.kind.explained});
}

}  // namespace detail

std::string_view ReduceConfig::kind() const {
    return entry_of(*this).kind.name;
}

std::optional<ChainError> check_chain(std::span<const ReduceConfig> chain, ReduceData input) {
    ReduceData data = input;
    std::string from = "from the streams";
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const ReducerEntry& entry = entry_of(chain[i]);
        for (std::size_t before = 0; before < i; ++before)
            if (&entry_of(chain[before]) == &entry)
                return ChainError{i,
                                  fmt::format("a second {} (the first is in line {})", in_quotes(entry.kind.name),
                                              chain[before].place.line),
                                  "each kind once"};
        if (!has(entry.takes, data))
            return ChainError{i, fmt::format("{} where there are {} {}", in_quotes(entry.kind.name), words(data), from),
                              accepted_for(entry, data)};
        if (!entry.gives) continue;
        data = *entry.gives;
        from = fmt::format("from {} in line {}", in_quotes(entry.kind.name), chain[i].place.line);
    }
    return std::nullopt;
}

std::optional<reduce::pack::PackOptions> packing(std::span<const ReduceConfig> chain) {
    for (const ReduceConfig& reducer : chain)
        if (const ReducerEntry& entry = entry_of(reducer); entry.packing != nullptr)
            return entry.packing(reducer.options);
    return {};
}

std::unique_ptr<reduce::PieceCodec> make_piece_codec(std::span<const ReduceConfig> chain) {
    for (const ReduceConfig& reducer : chain)
        if (const ReducerEntry& entry = entry_of(reducer); entry.codec != nullptr) return entry.codec(reducer.options);
    const auto packed = packing(chain);
    return packed ? reduce::make_pack_codec(*packed) : nullptr;
}

}  // namespace weir::config
