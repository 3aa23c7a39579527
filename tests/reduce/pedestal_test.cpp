// Pedestals from dark frames: SIMD against plain C++, sums against doubles, drift, and what must not pull them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "collect_reference.hpp"
#include "every_target.hpp"
#include "floats.hpp"
#include "reduce/pedestal/tracker.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {
namespace {

struct Sums {
    explicit Sums(std::size_t pixels) : sum(pixels), squares(pixels), count(pixels) {}
    PedestalSums view() { return {sum, squares, count}; }
    bool operator==(const Sums&) const = default;
    std::vector<std::uint32_t> sum;
    std::vector<std::uint64_t> squares;
    std::vector<std::uint16_t> count;
};

/// Frames, and pedestals that follow them.
struct Follower {
    Follower(const PedestalTracker::Config& config, PedestalState start, float outlier, std::uint16_t gain_bits = 0)
        : pixels(start.mean.size()),
          tracker(config, std::move(start)),
          sums(pixels),
          mean(pixels),
          rms(pixels),
          outlier(outlier),
          gain_bits(gain_bits) {
        tracker.publish(0, mean, rms, {});
    }
    void take(const std::vector<std::uint16_t>& raw) {
        counts += collect(raw, {mean, rms, outlier, gain_bits}, sums.all());
    }
    void fold() {
        tracker.fold(0, sums.all());
        tracker.publish(0, mean, rms, {});
    }
    std::size_t pixels;
    PedestalTracker tracker;
    SumArrays sums;
    std::vector<float> mean;
    std::vector<float> rms;
    float outlier;
    std::uint16_t gain_bits;
    PedestalCounts counts;
};

std::uint16_t word_of(double adc, std::uint16_t gain_bits = 0) {
    return static_cast<std::uint16_t>(gain_bits | static_cast<std::uint16_t>(std::lround(adc)));
}

PedestalState start_at(std::size_t pixels, double mean, float rms, float weight) {
    PedestalState state(pixels);
    for (std::size_t i = 0; i < pixels; ++i) {
        state.mean[i] = mean;
        state.variance[i] = rms * rms;
        state.weight[i] = weight;
    }
    return state;
}

TEST(Pedestal, SimdCollectsWhatPlainCodeCollects) {
    std::mt19937 random(1);
    for (const std::size_t pixels : {0, 1, 3, 7, 16, 31, 33, 1000, 4096}) {
        std::vector<std::uint16_t> raw(pixels);
        std::vector<float> mean(pixels);
        std::vector<float> rms(pixels);
        for (std::size_t i = 0; i < pixels; ++i) {
            // Every kind of word, often near the mean and near the limit.
            constexpr std::uint16_t kinds[] = {0, 0x4000, 0x8000, 0xc000};
            raw[i] = random() % 10 == 0 ? 0xffff
                                        : static_cast<std::uint16_t>(kinds[random() % 8 < 6 ? 0 : random() % 4] |
                                                                     (random() % 20 == 0 ? 0 : 2000 + random() % 40));
            mean[i] = random() % 16 == 0 ? nan : 2020 + static_cast<float>(random() % 64) / 16;
            rms[i] = random() % 16 == 0 ? nan : static_cast<float>(random() % 64) / 16;
        }
        for (const std::uint16_t gain_bits : {0, 0x4000, 0xc000}) {
            const PedestalJudge judge{mean, rms, 4, gain_bits};
            Sums expected(pixels);
            const PedestalCounts counts = reference::collect(raw, judge, expected.view());
            EXPECT_EQ(reference::collect(raw, judge, expected.view()), counts);
            with_every_target([&] {
                Sums found(pixels);
                EXPECT_EQ(collect(raw, judge, found.view()), counts);
                EXPECT_EQ(collect(raw, judge, found.view()), counts);
                EXPECT_TRUE(found == expected) << pixels << " pixels";
            });
        }
        // Several frames at once are the same as one by one.
        std::vector<std::uint16_t> other = raw;
        std::ranges::reverse(other);
        const std::array<const std::uint16_t*, 3> frames{raw.data(), other.data(), raw.data()};
        const PedestalJudge judge{mean, rms, 4, 0};
        Sums expected(pixels);
        PedestalCounts counts = reference::collect(raw, judge, expected.view());
        counts += reference::collect(other, judge, expected.view());
        counts += reference::collect(raw, judge, expected.view());
        with_every_target([&] {
            Sums found(pixels);
            EXPECT_EQ(collect(std::span<const std::uint16_t* const>(frames), judge, found.view()), counts);
            EXPECT_TRUE(found == expected) << pixels << " pixels";
        });
    }
}

TEST(Pedestal, SumsHoldAsManyFramesAsTheyPromise) {
    const std::vector<std::uint16_t> raw(16, 0x3ffe);
    const std::vector<float> mean(16, 0);
    const std::vector<float> rms(16, nan);
    Sums sums(16);
    for (std::uint32_t i = 0; i < PedestalSums::frames_max; ++i) collect(raw, {mean, rms, 5, 0}, sums.view());
    double m = 0;
    float v = 1;
    float w = 0;
    fold_pixel(1000, sums.sum[3], sums.squares[3], sums.count[3], m, v, w);
    EXPECT_EQ(sums.count[3], 65535);
    EXPECT_EQ(m, 0x3ffe);
    EXPECT_EQ(v, 0);
    EXPECT_EQ(w, 1000);
}

/// Days of dark frames on one pixel, against the same formula in long doubles frame by frame.
TEST(Pedestal, AMillionUpdatesLoseNothing) {
    std::mt19937 random(2);
    std::normal_distribution<double> noise(0, 12);
    double mean = 0;
    float variance = 0;
    float weight = 0;
    long double mean_exact = 0;
    long double variance_exact = 0;
    long double weight_exact = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        const auto adc = static_cast<std::uint32_t>(std::lround(2700 + 0.00001 * i + noise(random)));
        fold_pixel(100'000, adc, std::uint64_t{adc} * adc, 1, mean, variance, weight);
        const long double old = std::min<long double>(weight_exact, 99'999);
        const long double step = adc - mean_exact;
        const long double all = old + 1;
        variance_exact = old * variance_exact / all + step * step * old / (all * all);
        mean_exact += step / all;
        weight_exact = std::min<long double>(all, 100'000);
    }
    EXPECT_NEAR(mean, static_cast<double>(mean_exact), 1e-9);
    EXPECT_NEAR(std::sqrt(variance), static_cast<double>(std::sqrt(variance_exact)), 0.01);
    EXPECT_EQ(weight, 100'000);
    EXPECT_NEAR(mean, 2709, 0.3);  // 1 ADU after a drift of 1 ADU in the window, and the noise of 12 / sqrt(2 * 1e5)
}

TEST(Pedestal, FramesOfAnIntervalMayComeInAnyOrder) {
    constexpr std::size_t pixels = 100;
    std::mt19937 random(3);
    std::vector<std::vector<std::uint16_t>> frames(40, std::vector<std::uint16_t>(pixels));
    for (auto& frame : frames)
        for (auto& word : frame) word = static_cast<std::uint16_t>(2700 + random() % 60);
    Follower one({}, start_at(pixels, 2730, 18, 1000), 5);
    Follower other({}, start_at(pixels, 2730, 18, 1000), 5);
    for (const auto& frame : frames) one.take(frame);
    std::shuffle(frames.begin(), frames.end(), random);
    for (const auto& frame : frames) other.take(frame);
    one.fold();
    other.fold();
    EXPECT_TRUE(one.tracker.state() == other.tracker.state());
}

TEST(Pedestal, FollowsADriftWithinStatistics) {
    constexpr std::size_t pixels = 1024;
    constexpr int frames = 4000;
    constexpr double sigma = 8;
    std::mt19937 random(4);
    std::normal_distribution<double> noise(0, sigma);
    Follower follower({.frames = 500, .outlier_after = 50}, start_at(pixels, 2700, 0, 0), 5);
    std::vector<std::uint16_t> raw(pixels);
    // 20 ADU in all, and the window is an eighth of the run: the mean lags by 2.5 ADU.
    for (int frame = 1; frame <= frames; ++frame) {
        for (auto& word : raw) word = word_of(2700 + 20.0 * frame / frames + noise(random));
        follower.take(raw);
        if (frame % 10 == 0) follower.fold();
    }
    double bias = 0;
    double spread = 0;
    double rms = 0;
    for (std::size_t i = 0; i < pixels; ++i) {
        const double off = follower.mean[i] - (2720 - 2.5);
        bias += off / pixels;
        spread += off * off / pixels;
        rms += follower.rms[i] / pixels;
    }
    EXPECT_NEAR(bias, 0, 0.1);
    EXPECT_NEAR(std::sqrt(spread), sigma / std::sqrt(2 * 500), 0.05);  // of an exponential window
    // The noise, the rounding of the converter, and the drift inside the window.
    EXPECT_NEAR(rms, std::sqrt(sigma * sigma + 1 / 12.0 + 2.5 * 2.5), 0.1);
    EXPECT_LT(follower.counts.outliers, follower.counts.taken / 100'000);
}

TEST(Pedestal, PhotonsOtherGainsAndMissingPixelsDoNotPull) {
    constexpr std::size_t pixels = 2000;
    std::mt19937 random(5);
    std::normal_distribution<double> noise(2700, 6);
    Follower follower({.frames = 1000, .outlier_after = 50}, start_at(pixels, 2700, 6, 1000), 5);
    std::uint64_t photons = 0;
    std::uint64_t other = 0;
    std::uint64_t missing = 0;
    for (int frame = 0; frame < 1000; ++frame) {
        std::vector<std::uint16_t> raw(pixels);
        for (auto& word : raw) {
            word = word_of(noise(random));
            switch (random() % 20) {
                case 0:
                    word = word_of(2700 + 508);  // 12.4 keV
                    ++photons;
                    break;
                case 1:
                    word = word_of(13000, random() % 2 == 0 ? 0x4000 : 0xc000);
                    ++other;
                    break;
                case 2:
                    word = 0xffff;
                    ++missing;
                    break;
                default:
                    break;
            }
        }
        follower.take(raw);
        if (frame % 10 == 9) follower.fold();
    }
    EXPECT_EQ(follower.counts.other_gain, other);
    EXPECT_EQ(follower.counts.missing, missing);
    EXPECT_GE(follower.counts.outliers, photons);
    EXPECT_LT(follower.counts.outliers,
              photons + 20);  // beyond 5 RMS: 6e-7 of 1.7e6, and RMS goes a little up and down
    for (std::size_t i = 0; i < pixels; ++i) {
        EXPECT_NEAR(follower.mean[i], 2700, 6 / std::sqrt(1000) * 5);
        EXPECT_NEAR(follower.rms[i], 6, 1);
    }
}

TEST(Pedestal, BadPixelsStayBad) {
    PedestalState start = start_at(8, 2700, 6, 1000);
    start.mean[3] = nan;
    Follower follower({}, std::move(start), 5);
    for (int frame = 0; frame < 100; ++frame) follower.take(std::vector<std::uint16_t>(8, 2700));
    follower.fold();
    EXPECT_TRUE(std::isnan(follower.mean[3]));
    EXPECT_EQ(follower.mean[4], 2700);
    EXPECT_EQ(follower.counts.taken, 700U);
}

TEST(Pedestal, APixelWithTooMuchNoiseOrNoneBecomesBad) {
    std::mt19937 random(6);
    std::normal_distribution<double> noise(0, 1);
    const std::vector<double> rms{5, 60, 0, 5};
    Follower follower({.frames = 1000, .outlier_after = 50, .rms_max = 30}, PedestalState(4), 0);
    follower.outlier = std::numeric_limits<float>::infinity();
    std::vector<std::uint16_t> raw(4);
    for (int frame = 0; frame < 200; ++frame) {
        for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = word_of(3000 + rms[i] * noise(random));
        follower.take(raw);
        if (frame == 20) {
            follower.fold();
            EXPECT_EQ(follower.tracker.masked(), 0U);  // too early to tell
        }
    }
    follower.fold();
    EXPECT_EQ(follower.tracker.masked(), 2U);
    EXPECT_NEAR(follower.mean[0], 3000, 2);
    EXPECT_TRUE(std::isnan(follower.mean[1]));
    EXPECT_TRUE(std::isnan(follower.mean[2]));
    EXPECT_NEAR(follower.rms[3], 5, 1);
}

TEST(Pedestal, AStartWithoutRmsIsKeptUntilThereIsOne) {
    PedestalTracker tracker({.frames = 1000, .outlier_after = 20}, start_at(1, 2700, 0, 0));
    SumArrays sums(1);
    std::vector<float> mean(1);
    std::vector<float> rms(1);
    tracker.publish(0, mean, rms, {});
    EXPECT_EQ(mean[0], 2700);
    for (int frame = 1; frame <= 20; ++frame) {
        const std::vector<float> before = mean;
        collect(std::vector<std::uint16_t>{2710}, {mean, rms, 5, 0}, sums.all());
        tracker.fold(0, sums.all());
        tracker.publish(0, mean, rms, before);
        EXPECT_EQ(mean[0], frame < 20 ? 2700 : 2710);
        EXPECT_EQ(std::isnan(rms[0]), frame < 20);
    }
}

TEST(Pedestal, ForcedGainHasItsOwnPedestal) {
    Follower follower({}, PedestalState(4), 5, 0x4000);
    const std::vector<std::uint16_t> raw{word_of(13600, 0x4000), word_of(2700), 0x4000, word_of(13600, 0x4000)};
    for (int frame = 0; frame < 60; ++frame) follower.take(raw);
    follower.fold();
    EXPECT_EQ(follower.mean[0], 13600);
    EXPECT_EQ(follower.mean[1], 0);
    EXPECT_EQ(follower.counts.taken, 120U);
    EXPECT_EQ(follower.counts.other_gain, 120U);
}

/// Real frames full of photons, called dark: rejection keeps the pedestals where they are.
TEST(Pedestal, RealFramesWithPhotonsDoNotMoveRealPedestals) {
    const char* shared = std::getenv("WEIR_SHARED");
    const std::filesystem::path folder = std::filesystem::path(shared != nullptr ? shared : "") / "data/jungfrau";
    if (!std::filesystem::exists(folder / "mod5_raw0.bin"))
        GTEST_SKIP() << "WEIR_SHARED has no data/jungfrau with real frames";
    const auto read = [&]<class T>(const char* name, std::vector<T>& out) {
        out.resize(jungfrau_pixels);
        std::ifstream file(folder / name, std::ios::binary);
        file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(jungfrau_pixels * sizeof(T)));
        ASSERT_TRUE(file.good()) << name;
    };
    std::vector<float> mean;
    std::vector<float> rms;
    read("mod5_pedeG0.bin", mean);
    read("mod5_pedeG0_RMS.bin", rms);
    PedestalState start(jungfrau_pixels);
    for (std::size_t i = 0; i < jungfrau_pixels; ++i) {
        start.mean[i] = mean[i] == 0 || mean[i] == 16383 ? std::numeric_limits<double>::quiet_NaN() : mean[i];
        start.variance[i] = rms[i] * rms[i];
        start.weight[i] = 1000;
    }
    Follower follower({}, start, 5);
    for (const char* name : {"mod5_raw0.bin", "mod5_raw1.bin", "mod5_raw2.bin"}) {
        std::vector<std::uint16_t> raw;
        read(name, raw);
        follower.take(raw);
    }
    follower.fold();
    EXPECT_GT(follower.counts.outliers, 1'000'000U);  // of 1.57 million pixels: light on most of the module
    EXPECT_GT(follower.counts.other_gain, 1000U);
    for (std::size_t i = 0; i < jungfrau_pixels; ++i) {
        if (std::isnan(start.mean[i])) {
            EXPECT_TRUE(std::isnan(follower.mean[i]));
            continue;
        }
        // Three frames of a thousand, none further away than 5 RMS.
        ASSERT_LE(std::fabs(follower.mean[i] - mean[i]), 3 * 5 * rms[i] / 1000 + 1e-3) << i;
    }
}

}  // namespace
}  // namespace weir::reduce
