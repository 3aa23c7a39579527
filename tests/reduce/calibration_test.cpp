// Calibration files in all their layouts, and the errors that name them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "reduce/pixels/calibration.hpp"
#include "temporary_directory.hpp"

namespace weir::reduce {
namespace {

class CalibrationFileTest : public testing::Test {
protected:
    void SetUp() override {
        const auto pedestal = planes<float>("pedestal", {3000});
        config.pedestal = {CalibrationConfig::Files{pedestal}, {pedestal}, {pedestal}};
        config.gain = {40.0, -2.0, -0.5};
    }

    /// Arrays of one value each, one after the other; the first pixel of each has 1 more.
    template <class T>
    std::filesystem::path planes(const std::string& name, const std::vector<double>& values) {
        std::vector<T> all;
        for (const double value : values) {
            all.insert(all.end(), jungfrau_pixels, static_cast<T>(value));
            all[all.size() - jungfrau_pixels] = static_cast<T>(value + 1);
        }
        std::filesystem::path path = folder_ / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(T)));
        return path;
    }
    void refuses(const std::string& words) const {
        try {
            const Calibration calibration(config);
            ADD_FAILURE() << "accepted; expected: " << words;
        } catch (const core::UsageError& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    }

    CalibrationConfig config;
    const test::TemporaryDirectory folder_;
};

TEST_F(CalibrationFileTest, GainMapsHaveAllGainsOfAModuleInOneFile) {
    // As PSI writes them, with and without a block for HG0; of one module, and of two in one file.
    config.gain_maps = {planes<double>("three", {40, -2, -0.5})};
    const Calibration three(config);
    config.gain_maps = {planes<double>("four", {40, -2, -0.5, 200})};
    const Calibration four(config);
    for (const Calibration* calibration : {&three, &four})
        for (std::size_t gain = 0; gain < 3; ++gain) {
            const double value = std::array{40.0, -2.0, -0.5}[gain];
            EXPECT_EQ(calibration->of(0, 5).factor[gain][0], static_cast<float>(1 / value));
            EXPECT_EQ(calibration->of(0, 0).factor[gain][0], static_cast<float>(1 / (value + 1)));
        }
    const auto pedestals = planes<float>("pedestals", {3000, 3100});
    config.modules = 2;
    config.pedestal = {CalibrationConfig::Files{pedestals}, {pedestals}, {pedestals}};
    config.gain_maps = {planes<double>("two", {40, -2, -0.5, 50, -3, -0.25})};
    const Calibration two(config);
    EXPECT_EQ(two.of(1, 5).factor[1][0], static_cast<float>(1 / -3.0));
    EXPECT_EQ(two.of(1, 5).pedestal[1][0], 3100);
    config.gain_maps = {planes<float>("short", {40, -2})};
    refuses("gain: ");
}

TEST_F(CalibrationFileTest, StorageCellsHaveTheirOwnPedestalsAndShareGainsOrNot) {
    config.storage_cells = 2;
    refuses("pedestal[0]: ");  // one array where two are needed
    const auto pedestals = planes<float>("cells", {3000, 3500});
    config.pedestal = {CalibrationConfig::Files{pedestals}, {pedestals}, {pedestals}};
    config.gain[0] = CalibrationConfig::Files{planes<float>("shared", {40})};
    config.gain[1] = CalibrationConfig::Files{planes<float>("by cell", {-2, -3})};
    const Calibration calibration(config);
    for (std::uint32_t cell = 0; cell < 2; ++cell) {
        const PixelCalibration at = calibration.of(0, 9, cell);
        EXPECT_EQ(at.pedestal[2][0], cell == 0 ? 3000 : 3500);
        EXPECT_EQ(at.factor[0][0], 1 / 40.F);
        EXPECT_EQ(at.factor[1][0], static_cast<float>(cell == 0 ? 1 / -2.0 : 1 / -3.0));
        EXPECT_EQ(at.factor[2][0], 1 / -0.5F);
    }
}

TEST_F(CalibrationFileTest, AMaskMakesPixelsBadInAllGains) {
    config.mask = {planes<std::uint8_t>("mask", {0})};  // the first pixel has 1
    const Calibration calibration(config);
    for (std::size_t gain = 0; gain < 3; ++gain) {
        EXPECT_EQ(calibration.bad(0, gain), 1U);
        EXPECT_TRUE(std::isnan(calibration.of(0, 0).pedestal[gain][0]));
    }
    config.modules = 2;
    refuses("mask: ");
    config.mask.clear();
    refuses("pedestal[0]: ");
}

TEST_F(CalibrationFileTest, PedestalsThatMarkDeadPixelsMakeThemBad) {
    const auto dead = planes<float>("dead", {-1});  // the first is 0
    const auto full = planes<float>("full", {16382});
    config.pedestal[0] = {dead};
    config.pedestal[1] = {full};
    const Calibration calibration(config);
    EXPECT_EQ(calibration.bad(0, 0), 1U);
    EXPECT_EQ(calibration.bad(0, 1), 1U);
    EXPECT_EQ(calibration.bad(0, 2), 0U);
}

TEST_F(CalibrationFileTest, ADirectoryIsNoFile) {
    config.pedestal[1] = {folder_};
    refuses("pedestal[1]: " + folder_.path().string() + ": cannot be read");
}

}  // namespace
}  // namespace weir::reduce
