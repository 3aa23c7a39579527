// Pixel kernels: SIMD against plain C++, bit by bit and for every instruction set that this machine has; plain C++
// against what is defined; both against real frames and their reference results.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "every_target.hpp"
#include "floats.hpp"
#include "pixels_reference.hpp"
#include "real_frames.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixels.hpp"
#include "temporary_directory.hpp"

namespace weir::reduce {
namespace {

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
    std::vector<std::uint32_t> out;
    for (const float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
    return out;
}

/// As divisions by zero leave it.
const float other_nan = std::bit_cast<float>(0xffc00001U);

SpecialPixels special_of(const std::vector<float>& energy) {
    SpecialPixels special;
    for (const float value : energy) {
        special.bad += std::isnan(value) ? 1 : 0;
        special.saturated += value == infinity ? 1 : 0;
    }
    return special;
}

struct Maps {
    explicit Maps(std::size_t pixels, unsigned seed) {
        std::mt19937 random(seed);
        for (std::size_t gain = 0; gain < 3; ++gain) {
            for (std::size_t i = 0; i < pixels; ++i) {
                pedestal[gain].push_back(random() % 50 == 0 ? (random() % 2 == 0 ? nan : other_nan)
                                                            : std::uniform_real_distribution<float>(0, 16000)(random));
                factor[gain].push_back(random() % 50 == 0   ? nan
                                       : random() % 50 == 0 ? (random() % 2 == 0 ? 1e38F : -1e38F)
                                                            : std::uniform_real_distribution<float>(-1, 1)(random));
            }
            view.pedestal[gain] = pedestal[gain].data();
            view.factor[gain] = factor[gain].data();
        }
    }
    std::array<std::vector<float>, 3> pedestal;
    std::array<std::vector<float>, 3> factor;
    PixelCalibration view;
};

/// Everything that a float can be, and the edges between what it is rounded to.
std::vector<float> difficult_energies(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values{0.F,           -0.F,          0.5F,          1.5F,       2.5F,     -0.5F,
                              -1.5F,         nan,           infinity,      -infinity,  32766.5F, 32767.F,
                              32767.5F,      -32767.5F,     -32768.F,      65532.5F,   65533.5F, 65535.F,
                              1e30F,         -1e30F,        65504.F,       65519.996F, 65520.F,  6.1035156e-5F,
                              5.9604645e-8F, 2.9802322e-8F, 2.9802326e-8F, 1e-40F};
    while (values.size() < count) {
        const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        values.push_back(random() % 2 == 0
                             ? (std::isnan(any) ? nan : any)
                             : static_cast<float>(static_cast<std::int32_t>(random() % 140000) - 70000) / 2);
    }
    values.resize(count);
    return values;
}

TEST(Pixels, EveryRawValueConvertsAlike) {
    std::vector<std::uint16_t> raw(65536);
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::uint16_t>(i * 40503);
    const Maps maps(raw.size(), 1);
    std::vector<float> expected(raw.size());
    reference::convert(raw, maps.view, expected);
    with_every_target([&] {
        std::vector<float> found(raw.size());
        const SpecialPixels special = convert(raw, maps.view, found);
        EXPECT_EQ(bits(found), bits(expected));
        EXPECT_EQ(special.bad, special_of(expected).bad);
        EXPECT_EQ(special.saturated, special_of(expected).saturated);
    });
}

TEST(Pixels, LengthsThatFillNoVector) {
    const Maps maps(100, 2);
    std::mt19937 random(3);
    for (std::size_t count = 0; count < 100; ++count) {
        std::vector<std::uint16_t> raw(count);
        for (auto& word : raw) word = static_cast<std::uint16_t>(random());
        std::vector<float> expected(count);
        reference::convert(raw, maps.view, expected);
        const std::vector<float> energy = difficult_energies(count, 4);
        std::vector<std::uint16_t> half_expected(count);
        reference::to_f16(energy, half_expected);
        with_every_target([&] {
            std::vector<float> found(count);  // on the heap and exact, for AddressSanitizer
            const SpecialPixels special = convert(raw, maps.view, found);
            EXPECT_EQ(bits(found), bits(expected));
            EXPECT_EQ(special.bad, special_of(expected).bad);
            EXPECT_EQ(special.saturated, special_of(expected).saturated);
            std::vector<std::uint16_t> half(count);
            to_f16(energy, half);
            EXPECT_EQ(half, half_expected);
            EXPECT_EQ(count_above(energy, 1), reference::count_above(energy, 1));
        });
    }
}

TEST(Pixels, SpecialValues) {
    const std::vector<float> pedestal{100, 100, 100, 100, 100, 100, nan};
    const std::vector<float> factor(7, 0.5F);
    const PixelCalibration maps{{pedestal.data(), pedestal.data(), pedestal.data()},
                                {factor.data(), factor.data(), factor.data()}};
    const std::vector<std::uint16_t> raw{104, 0x4000 | 104, 0xc000 | 104, 0x8000 | 104, raw_error, raw_saturated, 104};
    std::vector<float> energy(raw.size());
    convert(raw, maps, energy);
    EXPECT_EQ(bits(energy), bits({2, 2, 2, nan, nan, infinity, nan}));
    std::vector<std::int16_t> i16(energy.size());
    to_i16(energy, i16);
    EXPECT_EQ(i16, (std::vector<std::int16_t>{2, 2, 2, i16_bad, i16_bad, i16_saturated, i16_bad}));
    std::vector<std::uint16_t> u16(energy.size());
    to_u16(energy, u16);
    EXPECT_EQ(u16, (std::vector<std::uint16_t>{2, 2, 2, u16_bad, u16_bad, u16_saturated, u16_bad}));
    const std::vector<std::uint16_t> gain1_error{raw_gain1_error};
    std::vector<float> one(1);
    convert(gain1_error, maps, one);
    EXPECT_TRUE(std::isnan(one[0]));
}

TEST(Pixels, RoundsToNearestEvenAndStaysBelowTheMarkers) {
    const std::vector<float> energy{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 1e9F, -1e9F};
    std::vector<std::int16_t> i16(energy.size());
    to_i16(energy, i16);
    EXPECT_EQ(i16, (std::vector<std::int16_t>{0, 2, 2, 0, -2, 32766, -32767}));
    std::vector<std::uint16_t> u16(energy.size());
    to_u16(energy, u16);
    EXPECT_EQ(u16, (std::vector<std::uint16_t>{0, 2, 2, 0, 0, 65533, 0}));
}

/// The value that a half stands for.
double value_of_half(std::uint16_t half) {
    const int exponent = half >> 10 & 0x1f;
    const double mantissa = half & 0x3ff;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Pixels, HalfPrecisionIsTheNearest) {
    for (std::uint32_t half = 0; half < 0x7c00; ++half) {
        const double here = value_of_half(static_cast<std::uint16_t>(half));
        const double next = half == 0x7bff ? 65536 : value_of_half(static_cast<std::uint16_t>(half + 1));
        const auto middle = static_cast<float>((here + next) / 2);  // exact: a half has 11 bits
        const std::vector<float> energy{static_cast<float>(here), std::nextafterf(middle, 0), middle,
                                        std::nextafterf(middle, infinity)};
        std::vector<std::uint16_t> found(energy.size());
        reference::to_f16(energy, found);
        const auto even = static_cast<std::uint16_t>((half & 1) == 0 ? half : half + 1);
        const auto low = static_cast<std::uint16_t>(half);
        const auto high = static_cast<std::uint16_t>(half + 1);
        ASSERT_EQ(found, (std::vector<std::uint16_t>{low, low, even, high})) << half;
    }
}

TEST(Pixels, OutputsAreAlike) {
    const std::vector<float> energy = difficult_energies(100'003, 5);
    std::vector<std::uint16_t> half(energy.size());
    std::vector<std::int16_t> i16(energy.size());
    std::vector<std::uint16_t> u16(energy.size());
    reference::to_f16(energy, half);
    reference::to_i16(energy, i16);
    reference::to_u16(energy, u16);
    with_every_target([&] {
        std::vector<std::uint16_t> found(energy.size());
        to_f16(energy, found);
        EXPECT_EQ(found, half);
        to_u16(energy, found);
        EXPECT_EQ(found, u16);
        std::vector<std::int16_t> found_i16(energy.size());
        to_i16(energy, found_i16);
        EXPECT_EQ(found_i16, i16);
        for (const float threshold : {-infinity, -3.F, 0.F, 7.5F, infinity})
            EXPECT_EQ(count_above(energy, threshold), reference::count_above(energy, threshold));
    });
}

TEST(Pixels, MarksAreAlike) {
    using Marks = std::vector<std::uint64_t>;
    for (const std::size_t count : {0U, 1U, 15U, 63U, 64U, 65U, 1024U, 10'007U}) {
        std::vector<float> energy = difficult_energies(count + 28, 6);
        energy.erase(energy.begin(), energy.begin() + 28 * (count % 2));
        energy.resize(count);
        std::vector<float> thresholds = difficult_energies(count, 7);
        std::ranges::reverse(thresholds);
        const auto marked = [&](auto function, const auto& threshold) {
            Marks marks((count + 63) / 64, 0x5555);
            const std::uint32_t found = function(std::span<const float>(energy), threshold, std::span(marks));
            std::uint32_t bits_set = 0;
            for (const std::uint64_t word : marks) bits_set += static_cast<std::uint32_t>(std::popcount(word));
            EXPECT_EQ(found, bits_set);
            return marks;
        };
        const auto plain = [](std::span<const float> e, auto t, std::span<std::uint64_t> m) {
            return reference::mark_above(e, t, m);
        };
        const auto simd = [](std::span<const float> e, auto t, std::span<std::uint64_t> m) {
            return mark_above(e, t, m);
        };
        const std::span<const float> each(thresholds);
        const Marks by_pixel = marked(plain, each);
        with_every_target([&] {
            for (const float threshold : {-infinity, 0.F, 20000.F, infinity})
                EXPECT_EQ(marked(simd, threshold), marked(plain, threshold));
            EXPECT_EQ(marked(simd, each), by_pixel);
        });
    }
}

TEST(Pixels, MarksPixelsAboveAndBadOnes) {
    const std::vector<float> energy{1, 2, 2.0001F, nan, infinity, -5};
    std::vector<std::uint64_t> marks(1);
    EXPECT_EQ(mark_above(energy, 2.F, marks), 3U);
    EXPECT_EQ(marks[0], 0b011100U);
}

TEST_F(RealFrames, GiveTheReferenceResults) {
    const Calibration calibration(config);
    for (int frame = 0; frame < 3; ++frame) {
        const auto raw = read_values<std::uint16_t>(folder / ("mod5_raw" + std::to_string(frame) + ".bin"));
        const auto expected = read_values<float>(folder / ("mod5_conv" + std::to_string(frame) + ".bin"));
        std::vector<float> found(raw.size());
        convert(raw, calibration.of(0, 0), found);
        std::size_t compared = 0;
        for (std::size_t i = 0; i < raw.size(); ++i) {
            if (raw[i] >> 14 != 0 || std::isnan(found[i])) continue;  // of G1 and G2 only typical gains are known
            ASSERT_NEAR(found[i], expected[i], 1e-5) << "frame " << frame << ", pixel " << i;
            ++compared;
        }
        EXPECT_GT(compared, 523'000U);
    }
}

TEST_F(RealFrames, UnitsAndPiecesFitTogether) {
    const Calibration photons(config);
    config.unit = CalibrationConfig::Unit::kev;
    const Calibration kev(config);
    const auto raw = read_values<std::uint16_t>(folder / "mod5_raw1.bin");
    std::vector<float> in_photons(raw.size());
    std::vector<float> in_kev(raw.size());
    convert(raw, photons.of(0, 0), in_photons);
    for (std::size_t at = 0; at < raw.size(); at += 4096)  // packet by packet
        convert(std::span(raw).subspan(at, 4096), kev.of(0, at), std::span(in_kev).subspan(at, 4096));
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (!std::isfinite(in_kev[i])) {
            EXPECT_FALSE(std::isfinite(in_photons[i]));
        } else {
            ASSERT_NEAR(in_kev[i], in_photons[i] * 12.4, 1e-3 + std::abs(in_kev[i]) * 1e-5);
        }
    }
    EXPECT_EQ(photons.bad(0, 1), 5U);  // pedestals of 0 or 16383
}

TEST(Calibration, MistakesAreNamed) {
    const auto fails_with = [](const CalibrationConfig& config, const char* words) {
        try {
            const Calibration calibration(config);
            ADD_FAILURE() << "accepted; expected: " << words;
        } catch (const std::exception& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    };
    const test::TemporaryDirectory folder;
    const auto small = folder / "small-pedestal.f32";
    std::ofstream(small) << "12345678";
    CalibrationConfig config;
    config.pedestal = {CalibrationConfig::Files{small}, {small}, {small}};
    config.gain = {41.0, -1.439, -0.1145};
    fails_with(config, "found 8 bytes; accepted: 2097152 (32-bit floats) or 4194304 (64-bit floats)");
    config.unit = CalibrationConfig::Unit::photon;
    fails_with(config, "photon_kev: found 0");
    config.photon_kev = 12.4;
    config.pedestal[0] = {"/nosuch/file"};
    fails_with(config, "/nosuch/file: cannot be read");
    config.pedestal[0] = {small, small};
    fails_with(config, "found 2 files for 1 modules");
}

}  // namespace
}  // namespace weir::reduce
