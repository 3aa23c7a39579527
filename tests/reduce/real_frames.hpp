// The real JUNGFRAU frames beside the checkout, where they are.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reduce/pixels/calibration.hpp"

namespace weir::reduce {

template <class T>
std::vector<T> read_values(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

class RealFrames : public testing::Test {
protected:
    void SetUp() override {
        const char* shared = std::getenv("WEIR_SHARED");
        if (shared == nullptr) GTEST_SKIP() << "WEIR_SHARED does not say where the real frames are";
        folder = std::filesystem::path(shared) / "data/jungfrau";
        if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
        for (std::size_t gain = 0; gain < 3; ++gain)
            config.pedestal[gain] = {folder / ("mod5_pedeG" + std::to_string(gain) + ".bin")};
        config.gain = {CalibrationConfig::Files{folder / "derived_gainG0_ADU_per_photon.f32"}, -1.439 * 12.4,
                       -0.1145 * 12.4};
        config.gain_unit = CalibrationConfig::GainUnit::adu_per_photon;
        config.photon_kev = 12.4;
        config.unit = CalibrationConfig::Unit::photon;
    }
    [[nodiscard]] std::vector<std::uint16_t> raw(int frame) const {
        return read_values<std::uint16_t>(folder / ("mod5_raw" + std::to_string(frame) + ".bin"));
    }
    std::filesystem::path folder;
    CalibrationConfig config;
};

}  // namespace weir::reduce
