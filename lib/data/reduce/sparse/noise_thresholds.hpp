// A threshold for each pixel from its noise: sigma times the RMS of the dark signal, in the unit of the energies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "reduce/pixels/calibration.hpp"

namespace weir::reduce {

/// sigma * rms * |factor| for each pixel of `out`, but at least `lowest`: `rms` is that of G0 in ADU, `factor` energy
/// per ADU in G0. Where one of them is no number, or null, or the RMS is negative, the noise is not known, and the
/// threshold is `lowest`: what is not known to be noise is kept.
void noise_thresholds(const float* rms, const float* factor, float sigma, float lowest, std::span<float> out) noexcept;

class NoiseThresholds {
public:
    struct Config {
        std::vector<std::filesystem::path> rms;  ///< 512 x 1024 floats for each module and, if it has so many, cell
        float sigma = 0;
        std::optional<float> lowest;  ///< default 0
    };

    /// Reads the files. Throws core::UsageError naming the file, its size, and what was expected.
    NoiseThresholds(const Config& config, const Calibration& calibration);

    /// Of the pixels from `first_pixel` of a module on, in a storage cell.
    [[nodiscard]] std::span<const float> of(std::uint32_t module, std::uint32_t cell, std::size_t first_pixel,
                                            std::size_t pixels) const noexcept {
        return std::span(thresholds_)
            .subspan((std::size_t{module} * cells_ + cell) * jungfrau_pixels + first_pixel, pixels);
    }

private:
    std::uint32_t cells_;
    std::vector<float> thresholds_;
};

}  // namespace weir::reduce
