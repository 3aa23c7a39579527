#include "reduce/pixels/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "reduce/pixels/plane_files.hpp"

namespace weir::reduce {

namespace {

using Files = CalibrationConfig::Files;
using core::UsageError;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float dead_pedestal = 16383;

/// Where the gains of a run come from: numbers, files for each gain, or files with all three.
class Gains {
public:
    explicit Gains(const CalibrationConfig& config) : config_(config) {
        const std::vector<std::size_t> floats{sizeof(float), sizeof(double)};
        // A fourth block is for HG0.
        if (!config.gain_maps.empty())
            maps_.emplace("gain", config.gain_maps, config.modules, std::vector{3U, 4U}, floats);
        for (std::size_t gain = 0; gain < 3 && config.gain_maps.empty(); ++gain)
            if (const auto* files = std::get_if<Files>(&config.gain[gain]))
                files_[gain].emplace(fmt::format("gain[{}]", gain), *files, config.modules,
                                     planes_or_one(config.storage_cells), floats);
    }
    /// Whether there are gains for each storage cell.
    [[nodiscard]] bool by_cell() const {
        return std::ranges::any_of(files_, [](const auto& files) { return files.has_value() && files->planes() > 1; });
    }
    [[nodiscard]] std::vector<double> read(std::size_t gain, std::uint32_t module, std::uint32_t cell) const {
        if (maps_.has_value()) return maps_->read(module, static_cast<std::uint32_t>(gain));
        if (files_[gain].has_value()) return files_[gain]->read(module, files_[gain]->planes() > 1 ? cell : 0);
        return std::vector<double>(jungfrau_pixels, std::get<double>(config_.gain[gain]));
    }
    /// One array for each storage cell, or one for all.
    static std::vector<std::uint32_t> planes_or_one(std::uint32_t cells) {
        if (cells == 1) return {1};
        return {cells, 1};
    }

private:
    const CalibrationConfig& config_;
    std::optional<PlaneFiles> maps_;
    std::array<std::optional<PlaneFiles>, 3> files_;
};

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

Calibration::Calibration(const CalibrationConfig& config) : modules_(config.modules), cells_(config.storage_cells) {
    const double scale = gain_scale(config);
    const Gains gains(config);
    const std::vector<std::size_t> floats{sizeof(float), sizeof(double)};
    factor_cells_ = gains.by_cell() ? cells_ : 1;
    for (std::size_t gain = 0; gain < 3; ++gain) {
        pedestal_[gain].resize(jungfrau_pixels * modules_ * cells_);
        factor_[gain].resize(jungfrau_pixels * modules_ * factor_cells_);
    }
    std::optional<PlaneFiles> mask;
    if (!config.mask.empty())
        mask.emplace("mask", config.mask, modules_, Gains::planes_or_one(cells_), std::vector<std::size_t>{1});
    for (std::size_t gain = 0; gain < 3; ++gain) {
        const PlaneFiles pedestals(fmt::format("pedestal[{}]", gain), config.pedestal[gain], modules_, {cells_},
                                   floats);
        for (std::uint32_t module = 0; module < modules_; ++module) {
            for (std::uint32_t cell = 0; cell < factor_cells_; ++cell) {
                const std::vector<double> values = gains.read(gain, module, cell);
                float* const factors = factor_[gain].data() + (module * factor_cells_ + cell) * jungfrau_pixels;
                for (std::size_t i = 0; i < jungfrau_pixels; ++i) {
                    const auto factor = static_cast<float>(1 / (values[i] * scale));
                    factors[i] = std::isfinite(factor) && factor != 0 ? factor : nan;
                }
            }
            for (std::uint32_t cell = 0; cell < cells_; ++cell) {
                const std::vector<double> values = pedestals.read(module, cell);
                std::vector<double> masked;
                if (mask.has_value()) masked = mask->read(module, mask->planes() > 1 ? cell : 0);
                const float* const factors = of(module, 0, cell).factor[gain];
                float* const out = pedestal_[gain].data() + (module * cells_ + cell) * jungfrau_pixels;
                for (std::size_t i = 0; i < jungfrau_pixels; ++i) {
                    const auto pedestal = static_cast<float>(values[i]);
                    const bool bad = pedestal == 0 || pedestal == dead_pedestal || !std::isfinite(pedestal) ||
                                     std::isnan(factors[i]) || (!masked.empty() && masked[i] != 0);
                    out[i] = bad ? nan : pedestal;
                }
            }
        }
    }
}

namespace {

/// Three gains, each with pedestals and factors.
std::uint64_t planes_bytes(std::uint64_t modules, std::uint64_t cells, std::uint64_t factor_cells) noexcept {
    return 3 * sizeof(float) * modules * (cells + factor_cells) * jungfrau_pixels;
}

}  // namespace

std::uint64_t Calibration::memory_bytes(const CalibrationConfig& config) noexcept {
    return planes_bytes(config.modules, config.storage_cells, 1);
}

std::uint64_t Calibration::memory_bytes() const noexcept {
    return planes_bytes(modules_, cells_, factor_cells_);
}

PixelCalibration Calibration::of(std::uint32_t module, std::size_t first_pixel, std::uint32_t cell) const noexcept {
    const std::size_t pedestal_at = (std::size_t{module} * cells_ + cell) * jungfrau_pixels + first_pixel;
    const std::size_t factor_at =
        (std::size_t{module} * factor_cells_ + (factor_cells_ > 1 ? cell : 0)) * jungfrau_pixels + first_pixel;
    PixelCalibration calibration;
    for (std::size_t gain = 0; gain < 3; ++gain) {
        calibration.pedestal[gain] = pedestal_[gain].data() + pedestal_at;
        calibration.factor[gain] = factor_[gain].data() + factor_at;
    }
    return calibration;
}

std::size_t Calibration::bad(std::uint32_t module, std::size_t gain, std::uint32_t cell) const noexcept {
    const float* const first = of(module, 0, cell).pedestal[gain];
    return static_cast<std::size_t>(
        std::count_if(first, first + jungfrau_pixels, [](float value) { return std::isnan(value); }));
}

}  // namespace weir::reduce
