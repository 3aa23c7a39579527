#include "reduce/pixels/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/error.hpp"

namespace weir::reduce {

namespace {

using Files = CalibrationConfig::Files;
using core::UsageError;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float dead_pedestal = 16383;

std::vector<char> read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UsageError(fmt::format("{}: cannot be read", path.string()));
    return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
void append(const std::vector<char>& bytes, std::vector<double>& values) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
        T value{};
        std::memcpy(&value, bytes.data() + at, sizeof value);
        values.push_back(static_cast<double>(value));
    }
}

/// The values of all modules, one after the other.
std::vector<double> read_floats(const Files& files, std::uint32_t modules) {
    if (files.size() != 1 && files.size() != modules)
        throw UsageError(fmt::format("found {} files for {} modules; accepted: one for all, or one for each",
                                     files.size(), modules));
    const std::size_t pixels = jungfrau_pixels * (files.size() == 1 ? modules : 1);
    std::vector<double> values;
    values.reserve(jungfrau_pixels * modules);
    for (const std::filesystem::path& path : files) {
        const std::vector<char> bytes = read_file(path);
        if (bytes.size() == pixels * sizeof(float))
            append<float>(bytes, values);
        else if (bytes.size() == pixels * sizeof(double))
            append<double>(bytes, values);
        else
            throw UsageError(
                fmt::format("{}: found {} bytes; accepted: {} (32-bit floats) or {} (64-bit floats), 512 x 1024 for "
                            "each of {} modules",
                            path.string(), bytes.size(), pixels * sizeof(float), pixels * sizeof(double),
                            pixels / jungfrau_pixels));
    }
    return values;
}

std::vector<double> read_gain(const std::variant<double, Files>& gain, std::uint32_t modules) {
    if (const auto* files = std::get_if<Files>(&gain)) return read_floats(*files, modules);
    return std::vector<double>(jungfrau_pixels * modules, std::get<double>(gain));
}

/// What a gain is multiplied with to be in ADU per unit of the output.
double gain_scale(const CalibrationConfig& config) {
    const bool per_photon = config.gain_unit == CalibrationConfig::GainUnit::adu_per_photon;
    const bool photons = config.unit == CalibrationConfig::Unit::photon;
    if (per_photon == photons) return 1;
    if (!(config.photon_kev > 0))
        throw UsageError(
            fmt::format("photon_kev: found {}; accepted: the energy of a photon in keV, needed between photons and keV",
                        config.photon_kev));
    return photons ? config.photon_kev : 1 / config.photon_kev;
}

}  // namespace

Calibration::Calibration(const CalibrationConfig& config) : modules_(config.modules) {
    const double scale = gain_scale(config);
    std::vector<char> mask;
    for (const std::filesystem::path& path : config.mask) {
        const std::vector<char> bytes = read_file(path);
        mask.insert(mask.end(), bytes.begin(), bytes.end());
    }
    if (!mask.empty() && mask.size() != jungfrau_pixels * modules_)
        throw UsageError(fmt::format("{}: found {} bytes in all; accepted: {}, one for each pixel",
                                     config.mask.front().string(), mask.size(), jungfrau_pixels * modules_));
    for (std::size_t gain = 0; gain < 3; ++gain) {
        const std::vector<double> pedestals = read_floats(config.pedestal[gain], modules_);
        const std::vector<double> gains = read_gain(config.gain[gain], modules_);
        pedestal_[gain].resize(pedestals.size());
        factor_[gain].resize(pedestals.size());
        for (std::size_t i = 0; i < pedestals.size(); ++i) {
            const auto pedestal = static_cast<float>(pedestals[i]);
            const auto factor = static_cast<float>(1 / (gains[i] * scale));
            const bool bad = pedestal == 0 || pedestal == dead_pedestal || !std::isfinite(pedestal) ||
                             !std::isfinite(factor) || factor == 0 || (!mask.empty() && mask[i] != 0);
            pedestal_[gain][i] = bad ? nan : pedestal;
            factor_[gain][i] = bad ? nan : factor;
        }
    }
}

PixelCalibration Calibration::of(std::uint32_t module, std::size_t first_pixel) const noexcept {
    const std::size_t at = module * jungfrau_pixels + first_pixel;
    PixelCalibration calibration;
    for (std::size_t gain = 0; gain < 3; ++gain) {
        calibration.pedestal[gain] = pedestal_[gain].data() + at;
        calibration.factor[gain] = factor_[gain].data() + at;
    }
    return calibration;
}

std::size_t Calibration::bad(std::uint32_t module, std::size_t gain) const noexcept {
    const auto first = pedestal_[gain].begin() + static_cast<std::ptrdiff_t>(module * jungfrau_pixels);
    return static_cast<std::size_t>(
        std::count_if(first, first + jungfrau_pixels, [](float value) { return std::isnan(value); }));
}

}  // namespace weir::reduce
