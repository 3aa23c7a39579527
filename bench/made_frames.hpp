// Raw frames of JUNGFRAU pixels for the benchmarks, and what they are converted with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "reduce/pixels/pixels.hpp"

namespace weir::bench {

struct MadeFrames {
    MadeFrames(std::size_t pixels, std::size_t frames) : raw(frames) {
        std::mt19937 random(1);
        for (std::size_t gain = 0; gain < 3; ++gain) {
            pedestal[gain].resize(pixels);
            factor[gain].resize(pixels, gain == 0 ? 1 / 41.F : gain == 1 ? -1 / 1.439F : -1 / 0.1145F);
            for (float& value : pedestal[gain])
                value = (gain == 0 ? 2700.F : 14000.F) + static_cast<float>(random() % 100);
        }
        // As in the real frames: noise of 5 ADU, few photons, and one pixel in a thousand not in the first gain, mostly
        // beside another one, so that of 16 pixels in a row one time in a hundred some are.
        std::normal_distribution<float> noise(2750, 5);
        bool bright = false;
        for (std::vector<std::uint16_t>& frame : raw) {
            frame.resize(pixels);
            for (std::uint16_t& word : frame) {
                word = static_cast<std::uint16_t>(noise(random) + (random() % 100 == 0 ? 508.F : 0.F));
                bright = random() % (bright ? 2 : 2000) == 0;
                if (bright) word = static_cast<std::uint16_t>(0x4000 | (random() % 10 == 0 ? 10000 : 13950));
            }
        }
    }
    /// Of the pixels from `pixel` on.
    [[nodiscard]] reduce::PixelCalibration at(std::size_t pixel) const {
        reduce::PixelCalibration calibration;
        for (std::size_t gain = 0; gain < 3; ++gain) {
            calibration.pedestal[gain] = pedestal[gain].data() + pixel;
            calibration.factor[gain] = factor[gain].data() + pixel;
        }
        return calibration;
    }
    std::vector<std::vector<std::uint16_t>> raw;  ///< by frame
    std::array<std::vector<float>, 3> pedestal;   ///< by gain
    std::array<std::vector<float>, 3> factor;
};

}  // namespace weir::bench
