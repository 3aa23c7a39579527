// The `nexus` table of the hdf5 sink: read, printed and as JSON; also from a command line.
#include "config/nexus.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/reader.hpp"
#include "core/error.hpp"

namespace weir::pipeline {

using store::hdf5::Nexus;

namespace detail {

namespace {

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

template <class Numbers>
std::string list_text(const Numbers& numbers) {
    std::vector<std::string> parts;
    for (const double number : numbers) parts.push_back(fmt::format("{}", number));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace

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

std::string nexus_text(const Nexus& nexus) {
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
    return parts.empty() ? "" : fmt::format("{{ {} }}", fmt::join(parts, ", "));
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

}  // namespace detail

namespace {

constexpr std::string_view option = "--nexus";

[[noreturn]] void refuse(std::string_view found) {
    throw core::UsageError(fmt::format(
        "{}: found \"{}\"; accepted: KEY=VALUE, like sample=lysozyme or beam_center=[512.5, 256.5]", option, found));
}

bool is_text(std::string_view key) {
    return std::ranges::find(detail::text_fields, key, &detail::TextField::key) != detail::text_fields.end();
}

/// A line of TOML. Texts need no quotes, which a shell would take away.
std::string line_of(std::string_view assignment, std::string& key) {
    const std::size_t equals = assignment.find('=');
    key = assignment.substr(0, equals);
    const bool is_word = !key.empty() && key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
    if (equals == std::string_view::npos || !is_word || assignment.find('\n') != std::string_view::npos)
        refuse(assignment);
    const std::string_view value = assignment.substr(equals + 1);
    return fmt::format("{} = {}\n", key, is_text(key) ? detail::in_quotes(value) : value);
}

}  // namespace

Nexus nexus_of(const nlohmann::json& recorded, const std::vector<std::string>& given) {
    std::string text;  // a line for each of `given`, so that an error's line says which
    std::vector<std::string> keys;
    for (const std::string& assignment : given) {
        text += line_of(assignment, keys.emplace_back());
        if (std::count(keys.begin(), keys.end(), keys.back()) > 1)
            throw core::UsageError(fmt::format("{}: {} is given twice", option, keys.back()));
    }
    if (recorded.is_object())
        for (const auto& [key, value] : recorded.items())
            if (std::ranges::find(keys, key) == keys.end())
                text += fmt::format("{} = {}\n", key,
                                    value.is_string() ? detail::in_quotes(value.get<std::string>()) : value.dump());
    toml::table table;
    try {
        table = toml::parse(text, option);
    } catch (const toml::parse_error& error) {
        const std::size_t line = error.source().begin.line;
        refuse(line >= 1 && line <= given.size() ? given[line - 1] : error.description());
    }
    detail::TableReader reader(table, "nexus", option);
    return detail::read_nexus(reader);
}

}  // namespace weir::pipeline
