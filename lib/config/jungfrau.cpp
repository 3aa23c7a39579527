// [[reduce]] kind = "jungfrau": from raw pixels to energies. What the files must contain is checked when they are read,
// at the start of a run (reduce/pixels/calibration.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr auto keys = std::to_array<std::string_view>(
    {"pedestal", "gain", "gain_unit", "unit", "photon_kev", "mask", "output", "at", "storage_cells", "storage_cell"});

using Calibration = reduce::CalibrationConfig;
using reduce::PixelType;

constexpr std::uint32_t header_bytes = 48;
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
    if (node == nullptr) table.missing("pedestal", pedestal_accepted);
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
    if (node == nullptr) table.missing("gain", gain_accepted);
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

void read_units(TableReader& table, Calibration& out) {
    out.gain_unit = table.choice("gain_unit", gain_unit_names).value_or(out.gain_unit);
    out.unit = table.choice("unit", unit_names).value_or(out.unit);
    out.photon_kev = table.number("photon_kev", 1e-3, 1e4).value_or(0);
    const bool per_photon = out.gain_unit == Calibration::GainUnit::adu_per_photon;
    const bool photons = out.unit == Calibration::Unit::photon;
    if (per_photon != photons && out.photon_kev == 0)
        table.missing("photon_kev", fmt::format("the energy of a photon in keV, because gain_unit is {} and unit is {}",
                                                in_quotes(name_of(gain_unit_names, out.gain_unit)),
                                                in_quotes(name_of(unit_names, out.unit))));
}

ReduceOptions read(TableReader& table) {
    JungfrauOptions options;
    Calibration& calibration = options.calibration;
    read_pedestal(table, calibration);
    read_gain(table, calibration);
    read_units(table, calibration);
    if (const toml::node* mask = table.get("mask")) calibration.mask = read_files(table, "mask", *mask);
    options.output = table.choice("output", output_names).value_or(options.output);
    options.at = table.choice("at", at_names).value_or(options.at);
    if (options.at == JungfrauOptions::At::fragment && options.output == PixelType::f32)
        table.wrong("at", "\"fragment\" with output = \"f32\"",
                    "\"fragment\" with \"f16\", \"i16\" or \"u16\", which fit where the raw pixels were");
    calibration.storage_cells =
        static_cast<std::uint32_t>(table.integer("storage_cells", {1, Calibration::storage_cells_max}).value_or(1));
    if (auto field = table.table("storage_cell")) {
        options.storage_cell = read_field(*field, header_bytes);
        field->finish();
        if (calibration.storage_cells == 1)
            table.wrong("storage_cell", "a field, without storage_cells", "a field where storage_cells is more than 1");
    }
    return options;
}

}  // namespace

void check_place_of_conversion(const RunConfig& run) {
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

namespace {

std::string gain_text(const Calibration& calibration) {
    // One entry is a list of lists, so that it reads back as what it is.
    if (!calibration.gain_maps.empty()) return fmt::format("[{}]", files_text(calibration.gain_maps));
    std::vector<std::string> parts;
    for (const auto& gain : calibration.gain) {
        if (const auto* number = std::get_if<double>(&gain))
            parts.push_back(fmt::format("{}", *number));
        else
            parts.push_back(files_text(std::get<Calibration::Files>(gain)));
    }
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

void print(Printer& out, const ReduceOptions& from) {
    const auto& options = std::get<JungfrauOptions>(from);
    const Calibration& calibration = options.calibration;
    const JungfrauOptions defaults;
    out.line("pedestal", fmt::format("[{}, {}, {}]", files_text(calibration.pedestal[0]),
                                     files_text(calibration.pedestal[1]), files_text(calibration.pedestal[2])));
    out.line("gain", gain_text(calibration));
    out.choice("gain_unit", gain_unit_names, calibration.gain_unit, defaults.calibration.gain_unit);
    if (calibration.photon_kev != 0)
        out.line("photon_kev", fmt::format("{}", calibration.photon_kev));
    else
        out.comment("photon_kev: not needed (default)");
    out.choice("unit", unit_names, calibration.unit, defaults.calibration.unit);
    out.choice("output", output_names, options.output, defaults.output);
    out.choice("at", at_names, options.at, defaults.at);
    if (!calibration.mask.empty()) out.line("mask", files_text(calibration.mask));
    out.number("storage_cells", calibration.storage_cells, defaults.calibration.storage_cells);
    if (calibration.storage_cells > 1)
        out.line("storage_cell", field_text(options.storage_cell), options.storage_cell == defaults.storage_cell);
}

nlohmann::json json(const ReduceOptions& from) {
    const auto& options = std::get<JungfrauOptions>(from);
    const Calibration& calibration = options.calibration;
    nlohmann::json out{
        {"pedestal", nlohmann::json::array()},           {"gain_unit", name_of(gain_unit_names, calibration.gain_unit)},
        {"unit", name_of(unit_names, calibration.unit)}, {"output", name_of(output_names, options.output)},
        {"at", name_of(at_names, options.at)},           {"storage_cells", calibration.storage_cells}};
    for (const Calibration::Files& files : calibration.pedestal) out["pedestal"].push_back(files_json(files));
    if (!calibration.gain_maps.empty()) {
        out["gain"] = files_json(calibration.gain_maps);
    } else {
        for (const auto& gain : calibration.gain) {
            const auto* number = std::get_if<double>(&gain);
            out["gain"].push_back(number != nullptr ? nlohmann::json(*number)
                                                    : files_json(std::get<Calibration::Files>(gain)));
        }
    }
    if (calibration.photon_kev != 0) out["photon_kev"] = calibration.photon_kev;
    if (!calibration.mask.empty()) out["mask"] = files_json(calibration.mask);
    if (calibration.storage_cells > 1) out["storage_cell"] = field_json(options.storage_cell);
    return out;
}

}  // namespace

const ReducerEntry jungfrau_entry{
    "jungfrau", set_of(ReduceData::raw_pixels), ReduceData::energies, {}, keys, read, print, json};

std::filesystem::path config_path(const TableReader& table, std::string_view text) {
    std::filesystem::path path(text);
    if (path.is_relative()) path = std::filesystem::path(table.file()).parent_path() / path;
    std::error_code error;
    return std::filesystem::absolute(path, error).lexically_normal();
}

std::vector<std::filesystem::path> read_files(const TableReader& table, std::string_view key, const toml::node& node) {
    constexpr std::size_t files_max = 4096;
    constexpr std::size_t text_max = 4096;
    std::vector<std::filesystem::path> files;
    const auto append = [&](const toml::node& element) {
        const auto* text = element.as_string();
        const bool good = text != nullptr && !text->get().empty() && text->get().size() <= text_max &&
                          std::ranges::all_of(text->get(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
        if (!good)
            fail(table.place(element), table.full_key(key), describe(element), "the name of a file, as a string");
        files.push_back(config_path(table, text->get()));
        // As long as it may be written: what is printed has to read back.
        if (files.back().string().size() > text_max)
            fail(table.place(element), table.full_key(key), "a path that is too long",
                 fmt::format("a path of at most {} bytes", text_max));
    };
    const toml::array* array = node.as_array();
    if (array == nullptr) {
        append(node);
        return files;
    }
    if (array->empty() || array->size() > files_max)
        fail(table.place(node), table.full_key(key), fmt::format("a list of {}", array->size()),
             "a file for each module");
    for (const toml::node& element : *array) append(element);
    return files;
}

std::string files_text(const std::vector<std::filesystem::path>& files) {
    std::vector<std::string> parts;
    parts.reserve(files.size());
    for (const std::filesystem::path& file : files) parts.push_back(in_quotes(file.string()));
    return parts.size() == 1 ? parts.front() : fmt::format("[{}]", fmt::join(parts, ", "));
}

nlohmann::json files_json(const std::vector<std::filesystem::path>& files) {
    nlohmann::json out = nlohmann::json::array();
    for (const std::filesystem::path& file : files) out.push_back(file.string());
    return out;
}

}  // namespace weir::pipeline::detail
