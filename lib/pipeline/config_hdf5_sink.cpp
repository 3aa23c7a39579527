// [[sink]] of kind "hdf5": read, printed and as JSON.
#include "pipeline/config_hdf5_sink.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "pipeline/config_parts.hpp"
#include "pipeline/config_printer.hpp"
#include "pipeline/config_sink_kinds.hpp"

namespace weir::pipeline::detail {

namespace {

using store::hdf5::Nexus;

/// HDF5 has no filter for `bits`.
std::vector<std::string_view> codec_words() {
    std::vector<std::string_view> words(reduce::pack::codec_names.begin(), reduce::pack::codec_names.end());
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(reduce::pack::Codec::bits));
    return words;
}

struct TextField {
    const char* key;
    std::string Nexus::*value;
};
constexpr auto text_fields = std::to_array<TextField>({{"title", &Nexus::title},
                                                       {"instrument", &Nexus::instrument},
                                                       {"source", &Nexus::source},
                                                       {"sample", &Nexus::sample},
                                                       {"detector", &Nexus::detector},
                                                       {"sensor_material", &Nexus::sensor_material}});
struct NumberField {
    const char* key;
    std::optional<double> Nexus::*value;
    double min;
    double max;
};
constexpr auto number_fields =
    std::to_array<NumberField>({{"sensor_thickness_um", &Nexus::sensor_thickness_um, 1e-3, 1e6},
                                {"pixel_size_um", &Nexus::pixel_size_um, 1e-3, 1e6},
                                {"wavelength_angstrom", &Nexus::wavelength_angstrom, 1e-6, 1e6},
                                {"total_flux", &Nexus::total_flux, 0, 1e30},
                                {"distance_mm", &Nexus::distance_mm, 0, 1e9}});

template <std::size_t N>
std::optional<std::array<double, N>> read_numbers(TableReader& table, const char* key, std::string_view accepted) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return {};
    const toml::array* const array = node->as_array();
    if (array == nullptr || array->size() != N) table.wrong(key, describe(*node), accepted);
    std::array<double, N> numbers{};
    for (std::size_t i = 0; i < N; ++i) {
        const auto value = (*array)[i].template value<double>();
        constexpr double most = 1e9;
        if (!value || !((*array)[i].is_number()) || !(std::abs(*value) <= most))
            table.wrong(key, describe((*array)[i]), accepted);
        numbers[i] = *value;
    }
    return numbers;
}

std::optional<std::array<double, 3>> read_direction(TableReader& table, const char* key) {
    constexpr std::string_view accepted = "three numbers, a vector of length 1, as [-1, 0, 0]";
    const auto vector = read_numbers<3>(table, key, accepted);
    if (!vector) return {};
    const double length = std::hypot((*vector)[0], (*vector)[1], (*vector)[2]);
    constexpr double tolerance = 1e-3;
    if (std::abs(length - 1) > tolerance) table.wrong(key, fmt::format("a vector of length {:.4g}", length), accepted);
    return vector;
}

Nexus read_nexus(TableReader& table) {
    Nexus nexus;
    for (const TextField& field : text_fields) nexus.*field.value = table.text(field.key).value_or("");
    for (const NumberField& field : number_fields) nexus.*field.value = table.number(field.key, field.min, field.max);
    nexus.beam_center = read_numbers<2>(table, "beam_center", "two numbers, x and y in pixels");
    nexus.fast_direction = read_direction(table, "fast_direction");
    nexus.slow_direction = read_direction(table, "slow_direction");
    table.finish();
    return nexus;
}

template <class Numbers>
std::string list_text(const Numbers& numbers) {
    std::vector<std::string> parts;
    for (const double number : numbers) parts.push_back(fmt::format("{}", number));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

void print_nexus(Printer& out, const Nexus& nexus) {
    std::vector<std::string> parts;
    const auto add = [&](const char* key, const std::string& value) {
        parts.push_back(fmt::format("{} = {}", key, value));
    };
    for (const TextField& field : text_fields)
        if (!(nexus.*field.value).empty()) add(field.key, in_quotes(nexus.*field.value));
    for (const NumberField& field : number_fields)
        if (nexus.*field.value) add(field.key, fmt::format("{}", *(nexus.*field.value)));
    if (nexus.beam_center) add("beam_center", list_text(*nexus.beam_center));
    if (nexus.fast_direction) add("fast_direction", list_text(*nexus.fast_direction));
    if (nexus.slow_direction) add("slow_direction", list_text(*nexus.slow_direction));
    if (!parts.empty()) out.line("nexus", fmt::format("{{ {} }}", fmt::join(parts, ", ")));
}

nlohmann::json nexus_json(const Nexus& nexus) {
    nlohmann::json out = nlohmann::json::object();
    for (const TextField& field : text_fields)
        if (!(nexus.*field.value).empty()) out[field.key] = nexus.*field.value;
    for (const NumberField& field : number_fields)
        if (nexus.*field.value) out[field.key] = *(nexus.*field.value);
    if (nexus.beam_center) out["beam_center"] = *nexus.beam_center;
    if (nexus.fast_direction) out["fast_direction"] = *nexus.fast_direction;
    if (nexus.slow_direction) out["slow_direction"] = *nexus.slow_direction;
    return out;
}

}  // namespace

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
    print_nexus(out, hdf5.nexus);
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
