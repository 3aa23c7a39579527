// [[reduce]] kind = "jungfrau": from raw pixels to energies. What the files must contain is checked when they are read,
// at the start of a run (reduce/pixels/calibration.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/field.hpp"
#include "config/files.hpp"
#include "config/reducers/entry.hpp"
#include "config/reducers/jungfrau.hpp"
#include "wire/formats/sls/sls.hpp"

namespace weir::config::detail {

namespace {

using Calibration = reduce::CalibrationConfig;
using reduce::PixelType;

constexpr std::array gain_unit_names{Named{"adu_per_kev", Calibration::GainUnit::adu_per_kev},
                                     Named{"adu_per_photon", Calibration::GainUnit::adu_per_photon}};
constexpr std::array unit_names{Named{"kev", Calibration::Unit::kev}, Named{"photon", Calibration::Unit::photon}};
constexpr std::array output_names{Named{"f32", PixelType::f32}, Named{"f16", PixelType::f16},
                                  Named{"i16", PixelType::i16}, Named{"u16", PixelType::u16}};

constexpr std::array at_names{Named{"event", JungfrauOptions::At::event},
                              Named{"fragment", JungfrauOptions::At::fragment}};

constexpr std::string_view pedestal_accepted =
    "three entries, for G0, G1 and G2, each a file or a list of one file for each module: "
    "pedestal = [\"g0.f32\", \"g1.f32\", \"g2.f32\"]";
constexpr std::string_view gain_accepted =
    "three entries, for G0, G1 and G2, each a number, a file, or a list of one file for each module: "
    "gain = [41.0, -1.439, -0.1145]; or one file with all three gains, or [[...]] with one of them for each module";

void read_pedestal(TableReader& table, Calibration& out) {
    const toml::node* node = table.get("pedestal");
    const toml::array* array = node->as_array();
    if (array == nullptr || array->size() != out.pedestal.size())
        table.wrong("pedestal", describe(*node), pedestal_accepted);
    for (std::size_t gain = 0; gain < out.pedestal.size(); ++gain)
        out.pedestal[gain] = read_files(table, "pedestal", *array->get(gain));
}

double gain_number(const TableReader& table, const toml::node& node) {
    constexpr double smallest = 1e-6;
    constexpr double largest = 1e6;
    const double value = *node.value<double>();
    if (!(std::abs(value) >= smallest && std::abs(value) <= largest))
        fail(table.place(node), table.full_key("gain"), describe(node), "a number from 1e-6 to 1e6 or its negative");
    return value;
}

void read_gain(TableReader& table, Calibration& out) {
    const toml::node* node = table.get("gain");
    const toml::array* array = node->as_array();
    if (array == nullptr || array->size() == 1) {
        const toml::node& maps = array == nullptr ? *node : *array->get(0);
        if (!maps.is_string() && !maps.is_array()) table.wrong("gain", describe(*node), gain_accepted);
        out.gain_maps = read_files(table, "gain", maps);
        return;
    }
    if (array->size() != out.gain.size()) table.wrong("gain", describe(*node), gain_accepted);
    for (std::size_t gain = 0; gain < out.gain.size(); ++gain) {
        const toml::node& entry = *array->get(gain);
        if (entry.is_number())
            out.gain[gain] = gain_number(table, entry);
        else
            out.gain[gain] = read_files(table, "gain", entry);
    }
}

void check_units(TableReader& table, const JungfrauOptions& options) {
    const Calibration& out = options.calibration;
    const bool per_photon = out.gain_unit == Calibration::GainUnit::adu_per_photon;
    const bool photons = out.unit == Calibration::Unit::photon;
    if (per_photon != photons && out.photon_kev == 0)
        table.missing("photon_kev", fmt::format("the energy of a photon in keV, because gain_unit is {} and unit is {}",
                                                in_quotes(name_of(gain_unit_names, out.gain_unit)),
                                                in_quotes(name_of(unit_names, out.unit))));
}

nlohmann::json pedestal_json(const Calibration& calibration) {
    nlohmann::json out;
    for (const Calibration::Files& files : calibration.pedestal) out.push_back(files_json(files));
    return out;
}

/// The files of each gain.
std::string pedestal_text(const nlohmann::json& files) {
    std::string out;
    for (const nlohmann::json& gain : files) out += (out.empty() ? "[" : ", ") + files_text(gain);
    return out + "]";
}

nlohmann::json gain_json(const Calibration& calibration) {
    if (!calibration.gain_maps.empty()) return files_json(calibration.gain_maps);
    nlohmann::json out;
    for (const auto& gain : calibration.gain) {
        const auto* number = std::get_if<double>(&gain);
        out.push_back(number != nullptr ? nlohmann::json(*number) : files_json(std::get<Calibration::Files>(gain)));
    }
    return out;
}

std::string gain_text(const nlohmann::json& gain) {
    // Maps are a list in a list, so that they read back as what they are.
    if (gain.front().is_string()) return fmt::format("[{}]", files_text(gain));
    std::string out;
    for (const nlohmann::json& one : gain)
        out += (out.empty() ? "[" : ", ") + (one.is_number() ? toml_text(one) : files_text(one));
    return out + "]";
}

/// Throws where pixels are converted too early for another reducer.
void check_place_of_conversion(RunConfig& run) {
    for (const ReduceConfig& reducer : run.reduce) {
        const auto* options = reducer.as<JungfrauOptions>();
        if (options == nullptr || options->at == JungfrauOptions::At::event) continue;
        for (const ReduceConfig& other : run.reduce)
            if (other.kind() == "pedestal" || other.kind() == "veto" || other.kind() == "sparse")
                fail(reducer.place, "reduce.at",
                     fmt::format("\"fragment\" and a reducer {} in line {}", in_quotes(other.kind()), other.place.line),
                     "\"event\", because it needs the energies of whole events before they are rounded");
    }
}

/// Warns of gains that have another sign than a JUNGFRAU's.
void warn_of_gains(RunConfig& run) {
    for (const ReduceConfig& reducer : run.reduce) {
        const auto* options = reducer.as<JungfrauOptions>();
        if (options == nullptr || !options->calibration.gain_maps.empty()) continue;
        for (std::size_t gain = 0; gain < options->calibration.gain.size(); ++gain) {
            const auto* number = std::get_if<double>(&options->calibration.gain[gain]);
            if (number == nullptr || (*number < 0) == (gain > 0)) continue;
            run.warnings.push_back(
                fmt::format("{}:{}: reduce.gain: {} for G{}: a JUNGFRAU's is {}, so energies will have the wrong sign",
                            reducer.place.file, reducer.place.line, *number, gain,
                            gain > 0 ? "negative, because more charge gives a lower ADC value there" : "positive"));
        }
    }
}

OptionTable<JungfrauOptions> jungfrau_options() {
    using J = JungfrauOptions;
    const auto of = [](auto member) {
        return [member](auto& from) -> auto& {
            return from.calibration.*member;
        };
    };
    OptionTable<J> out;
    out.add("pedestal", "three files", "for G0, G1, G2, in ADU; each may be a list of one file for each module")
        .required(std::string(pedestal_accepted))
        .reads([](TableReader& table, J& into) { read_pedestal(table, into.calibration); })
        .shows([](const J& from) { return pedestal_json(from.calibration); })
        .written(pedestal_text);
    out.add("gain", "three numbers or files, or one file",
            "for G0, G1, G2; each may be a list of one file for each module; or PSI's gain map, which has all three")
        .required(std::string(gain_accepted))
        .reads([](TableReader& table, J& into) { read_gain(table, into.calibration); })
        .shows([](const J& from) { return gain_json(from.calibration); })
        .written(gain_text);
    out.choice("gain_unit", gain_unit_names, of(&Calibration::gain_unit), "of `gain`");
    out.choice("unit", unit_names, of(&Calibration::unit), "of the energies");
    out.number("photon_kev", 1e-3, 1e4, of(&Calibration::photon_kev),
               "energy of a photon, required between keV and photons")
        .unset(0.0, "not needed")
        .usually("none")
        .check_unset(check_units);
    out.choice("output", output_names, &J::output, "type in which an energy is written");
    out.choice("at", at_names, &J::at,
               "where pixels are converted: by work lcores, or as packets arrive (`f16`, `i16`, `u16` only)")
        .check([](TableReader& table, const J& into) {
            if (into.at == J::At::fragment && into.output == PixelType::f32)
                table.wrong("at", "\"fragment\" with output = \"f32\"",
                            "\"fragment\" with \"f16\", \"i16\" or \"u16\", which fit where the raw pixels were");
        });
    out.add("mask", "files", "a byte for each pixel, not 0 where it is bad")
        .reads(
            [](TableReader& table, J& into) { into.calibration.mask = read_files(table, "mask", *table.get("mask")); })
        .shows([](const J& from) { return files_json(from.calibration.mask); })
        .written(files_text);
    out.integer("storage_cells", {1, Calibration::storage_cells_max}, of(&Calibration::storage_cells),
                "storage cells that the files have");
    out.add("storage_cell", "field", "`{ offset, bytes, mask, shift }`: where the detector header has the storage cell")
        .refused_where([](const J& from) -> std::string {
            return from.calibration.storage_cells > 1 ? "" : "nothing, or a field where storage_cells is more than 1";
        })
        .usually("bits 11..8 of detSpec3")
        .reads([](TableReader& table, J& into) {
            into.storage_cell = read_field(*table.table("storage_cell"), wire::Sls::header_bytes).field;
        })
        .shows([](const J& from) {
            return field_json({from.storage_cell, {}, {}});
        })
        .written(field_text);
    return out;
}

}  // namespace

ReducerEntry jungfrau_reducer() {
    return {.kind = kind_of("jungfrau", jungfrau_options()),
            .takes = set_of(ReduceData::raw_pixels),
            .gives = ReduceData::energies,
            .check = check_place_of_conversion,
            .warn = warn_of_gains};
}

}  // namespace weir::config::detail
