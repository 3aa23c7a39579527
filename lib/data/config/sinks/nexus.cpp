#include "config/sinks/nexus.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace weir::config {

using store::hdf5::Nexus;

namespace detail {

using namespace options;

namespace {

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

std::vector<double> read_gaps(TableReader& table, const char* key) {
    constexpr std::string_view accepted = "a number of pixels from 0 on, or a list of them";
    constexpr double most = 1e6;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return {};
    const auto gap_of = [&](const toml::node& one) {
        const auto value = one.is_number() ? one.value<double>() : std::nullopt;
        if (!value || !(*value >= 0 && *value <= most)) table.wrong(key, describe(one), accepted);
        return *value;
    };
    const toml::array* const list = node->as_array();
    if (list == nullptr) return {gap_of(*node)};
    std::vector<double> gaps;
    for (const toml::node& one : *list) gaps.push_back(gap_of(one));
    if (gaps.empty()) table.wrong(key, "an empty list", accepted);
    return gaps;
}

}  // namespace

OptionTable<Nexus> nexus_options() {
    OptionTable<Nexus> out;
    out.text("title", &Nexus::title, "of the run");
    out.text("instrument", &Nexus::instrument, "name of the beamline");
    out.text("source", &Nexus::source, "name of the facility");
    out.text("sample", &Nexus::sample, "name of the sample");
    out.text("detector", &Nexus::detector, "what it is called");
    out.text("sensor_material", &Nexus::sensor_material, "as `Si`");
    out.number("sensor_thickness_um", 1e-3, 1e6, &Nexus::sensor_thickness_um, "micrometres");
    out.number("pixel_size_um", 1e-3, 1e6, &Nexus::pixel_size_um, "micrometres");
    out.number("wavelength_angstrom", 1e-6, 1e6, &Nexus::wavelength_angstrom, "of the beam");
    out.number("total_flux", 0, 1e30, &Nexus::total_flux, "photons per second");
    out.number("distance_mm", 0, 1e9, &Nexus::distance_mm, "from the sample to the detector");
    out.add("beam_center", "two numbers", "x and y in pixels")
        .reads([](TableReader& table, Nexus& nexus) {
            nexus.beam_center = read_numbers<2>(table, "beam_center", "two numbers, x and y in pixels");
        })
        .shows([](const Nexus& nexus) { return value_of(nexus.beam_center); });
    const auto direction = [&out](const char* key, std::optional<std::array<double, 3>> Nexus::*member) {
        out.add(key, "three numbers", "a vector of length 1, in the coordinates of NeXus")
            .reads([key, member](TableReader& table, Nexus& nexus) { nexus.*member = read_direction(table, key); })
            .shows([member](const Nexus& nexus) { return value_of(nexus.*member); });
    };
    direction("fast_direction", &Nexus::fast_direction);
    direction("slow_direction", &Nexus::slow_direction);
    out.add("module_gap", "number or list of numbers",
            "pixels between two neighbouring modules of the image: one for all, or one for each two")
        .reads([](TableReader& table, Nexus& nexus) { nexus.module_gap = read_gaps(table, "module_gap"); })
        .shows([](const Nexus& nexus) { return value_of(nexus.module_gap); });
    return out;
}

}  // namespace detail

namespace {

constexpr std::string_view option = "--nexus";

[[noreturn]] void refuse(std::string_view found) {
    throw core::UsageError(fmt::format(
        "{}: found \"{}\"; accepted: KEY=VALUE, like sample=lysozyme or beam_center=[512.5, 256.5]", option, found));
}

/// Whether the key is for a text.
bool is_text(std::string_view key) {
    const std::vector<options::Explained> all = detail::nexus_options().explained();
    const auto found = std::ranges::find(all, key, &options::Explained::key);
    return found != all.end() && found->kind == "text";
}

/// A line of TOML. Texts need no quotes, which a shell would take away.
std::string line_of(std::string_view assignment, std::string& key) {
    const std::size_t equals = assignment.find('=');
    key = assignment.substr(0, equals);
    const bool is_word = !key.empty() && key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
    if (equals == std::string_view::npos || !is_word || assignment.find('\n') != std::string_view::npos)
        refuse(assignment);
    const std::string_view value = assignment.substr(equals + 1);
    return fmt::format("{} = {}\n", key, is_text(key) ? options::in_quotes(value) : value);
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
                                    value.is_string() ? options::in_quotes(value.get<std::string>()) : value.dump());
    toml::table table;
    try {
        table = toml::parse(text, option);
    } catch (const toml::parse_error& error) {
        const std::size_t line = error.source().begin.line;
        refuse(line >= 1 && line <= given.size() ? given[line - 1] : error.description());
    }
    options::TableReader reader(table, "nexus", option);
    return detail::nexus_options().read(reader);
}

}  // namespace weir::config
