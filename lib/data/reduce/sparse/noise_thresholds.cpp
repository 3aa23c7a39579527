#include "reduce/sparse/noise_thresholds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reduce/pixels/plane_files.hpp"

namespace weir::reduce {

void noise_thresholds(const float* rms, const float* factor, float sigma, float lowest, std::span<float> out) noexcept {
    if (rms == nullptr || factor == nullptr) {
        std::ranges::fill(out, lowest);
        return;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        const float noise = sigma * rms[i] * std::abs(factor[i]);
        // Comparisons with NaN are false, so this is `lowest` too where something is no number.
        const bool known = noise > lowest && noise <= std::numeric_limits<float>::max();
        out[i] = known ? noise : lowest;
    }
}

NoiseThresholds::NoiseThresholds(const Config& config, const Calibration& calibration)
    : cells_(calibration.storage_cells()),
      thresholds_(std::size_t{calibration.modules()} * calibration.storage_cells() * jungfrau_pixels) {
    const PlaneFiles files("rms", config.rms, calibration.modules(), {cells_, 1}, {4, 8});
    std::vector<float> rms(jungfrau_pixels);
    for (std::uint32_t module = 0; module < calibration.modules(); ++module) {
        for (std::uint32_t cell = 0; cell < cells_; ++cell) {
            const std::vector<double> values = files.read(module, files.planes() == 1 ? 0 : cell);
            std::ranges::transform(values, rms.begin(), [](double value) { return static_cast<float>(value); });
            float* const out = thresholds_.data() + (std::size_t{module} * cells_ + cell) * jungfrau_pixels;
            noise_thresholds(rms.data(), calibration.of(module, 0, cell).factor[0], config.sigma,
                             config.lowest.value_or(0), {out, jungfrau_pixels});
        }
    }
}

}  // namespace weir::reduce
