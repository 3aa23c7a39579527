// The peak finder: known peaks in made-up frames, and row by row the same as the reference, which looks at whole
// modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/hot_thread.hpp"
#include "every_target.hpp"
#include "floats.hpp"
#include "peak_reference.hpp"
#include "real_frames.hpp"
#include "reduce/veto/median.hpp"
#include "reduce/veto/peak_finder.hpp"

namespace weir::reduce {
namespace {

struct Frame {
    Frame(std::uint32_t row_count, std::uint32_t column_count, unsigned seed)
        : rows(row_count), columns(column_count), energy(std::size_t{row_count} * column_count) {
        std::mt19937 random(seed);
        std::normal_distribution<float> noise(2, 0.5F);
        for (float& value : energy) value = noise(random);
    }
    float& at(std::size_t row, std::size_t column) { return energy[row * columns + column]; }
    /// A spot of 3 x 3 pixels.
    void spot(std::size_t row, std::size_t column, float height) {
        for (int dr = -1; dr <= 1; ++dr) {
            for (int dc = -1; dc <= 1; ++dc) {
                const auto r = static_cast<std::ptrdiff_t>(row) + dr;
                const auto c = static_cast<std::ptrdiff_t>(column) + dc;
                if (r < 0 || c < 0 || r >= rows || c >= columns) continue;
                at(static_cast<std::size_t>(r), static_cast<std::size_t>(c)) +=
                    dr == 0 && dc == 0 ? height : height / 2;
            }
        }
    }
    std::uint32_t rows;
    std::uint32_t columns;
    std::vector<float> energy;
};

std::vector<Peak> find(PeakFinder& finder, const Frame& frame, std::size_t step = 4096) {
    finder.begin_module();
    for (std::size_t at = 0; at < frame.energy.size(); at += step)
        finder.add(std::span(frame.energy).subspan(at, std::min(step, frame.energy.size() - at)));
    finder.end_module();
    return {finder.peaks().begin(), finder.peaks().end()};
}

using Places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Places places_of(const std::vector<Peak>& peaks) {
    Places out;
    for (const Peak& peak : peaks) out.emplace_back(peak.row, peak.column);
    return out;
}

TEST(PeakFinder, FindsSpotsOnNoiseAndNothingElse) {
    Frame frame(512, 1024, 1);
    const PeakOptions options{.threshold = 6};
    PeakFinder finder(options, 1024);
    finder.begin_event();
    EXPECT_TRUE(find(finder, frame).empty());
    const Places spots{{0, 0}, {0, 600}, {17, 300}, {17, 310}, {255, 1023}, {400, 500}, {511, 0}, {511, 1023}};
    for (const auto& [row, column] : spots) frame.spot(row, column, 20);
    const auto peaks = find(finder, frame);
    EXPECT_EQ(places_of(peaks), spots);
    EXPECT_EQ(finder.found(), spots.size());
    EXPECT_EQ(peaks[2].pixels, 9U);
    EXPECT_EQ(peaks[0].pixels, 4U);  // in the corner
    EXPECT_NEAR(peaks[5].background, 2, 0.3);
    finder.begin_event();
    EXPECT_EQ(finder.found(), 0U);
}

TEST(PeakFinder, CountsModulesOfAnEventTogetherAndKeepsThemApart) {
    Frame upper(64, 128, 2);
    Frame lower(64, 128, 3);
    upper.spot(63, 40, 30);  // the halves of one spot on either side of an edge are two peaks
    lower.spot(0, 40, 30);
    PeakFinder finder({.threshold = 8}, 128);
    finder.begin_event();
    EXPECT_EQ(places_of(find(finder, upper)), (Places{{63, 40}}));
    EXPECT_EQ(places_of(find(finder, lower)), (Places{{0, 40}}));
    EXPECT_EQ(finder.found(), 2U);
}

TEST(PeakFinder, BadPixelsAreNoPeaksAndDoNotSpoilTheBackground) {
    Frame frame(64, 128, 4);
    frame.spot(20, 20, 30);
    for (std::size_t column = 15; column < 19; ++column)
        for (std::size_t row = 16; row < 24; ++row) frame.at(row, column) = nan;
    frame.at(22, 24) = infinity;  // saturated, in the background
    frame.at(40, 60) = nan;
    frame.at(50, 100) = infinity;  // a saturated pixel alone
    frame.at(50, 101) = 40;
    PeakFinder finder({.threshold = 8}, 128);
    finder.begin_event();
    const auto peaks = find(finder, frame);
    EXPECT_EQ(places_of(peaks), (Places{{20, 20}, {50, 100}}));
    EXPECT_NEAR(peaks[0].background, 2, 0.3);
    // Without enough of a background there is no peak: the spot's own pixels alone are left.
    Frame lonely(64, 128, 5);
    lonely.spot(30, 30, 30);
    for (std::size_t row = 0; row < 64; ++row)
        for (std::size_t column = 0; column < 128; ++column)
            if (row < 28 || row > 32 || column < 28 || column > 32) lonely.at(row, column) = nan;
    EXPECT_TRUE(find(finder, lonely).empty());
}

TEST(PeakFinder, OneOfTwoThatAreTooCloseIsFound) {
    Frame frame(64, 128, 6);
    frame.spot(20, 20, 30);
    frame.spot(20, 23, 40);
    frame.at(40, 40) = frame.at(40, 41) = frame.at(41, 40) = 25;  // equal: the first
    PeakFinder three({.threshold = 8, .separation = 3}, 128);
    three.begin_event();
    EXPECT_EQ(places_of(find(three, frame)), (Places{{20, 23}, {40, 40}}));
    PeakFinder two({.threshold = 8, .separation = 2}, 128);
    two.begin_event();
    EXPECT_EQ(places_of(find(two, frame)), (Places{{20, 20}, {20, 23}, {40, 40}}));
}

TEST(PeakFinder, WantsHeightNoiseAndPixels) {
    Frame frame(64, 128, 7);
    frame.spot(20, 20, 30);
    frame.at(40, 40) = 30;  // one pixel: a cosmic ray, or a hot pixel
    frame.spot(50, 100, 4);
    const auto found = [&](const PeakOptions& options) {
        PeakFinder finder(options, 128);
        finder.begin_event();
        return places_of(find(finder, frame));
    };
    EXPECT_EQ(found({.threshold = 20}), (Places{{20, 20}}));
    EXPECT_EQ(found({.threshold = 20, .pixels_min = 1}), (Places{{20, 20}, {40, 40}}));
    EXPECT_EQ(found({.threshold = 20, .pixels_min = 10}), (Places{}));
    EXPECT_EQ(found({.threshold = 5, .snr = 4}), (Places{{20, 20}, {50, 100}}));
    EXPECT_EQ(found({.threshold = 5, .snr = 12}), (Places{{20, 20}}));
    EXPECT_EQ(found({.threshold = 40}), (Places{}));
}

TEST(PeakFinder, LooksAtAFloodedFrameForALimitedTime) {
    Frame frame(512, 1024, 8);
    for (float& value : frame.energy) value = std::abs(value - 2);
    PeakFinder finder({.threshold = 0.01, .separation = 1}, 1024);
    finder.begin_event();
    static_cast<void>(find(finder, frame));
    EXPECT_TRUE(finder.crowded());
    finder.begin_event();
    EXPECT_FALSE(finder.crowded());
    frame.spot(100, 100, 50);
    EXPECT_TRUE(
        std::ranges::any_of(find(finder, frame), [](const Peak& p) { return p.row == 100 && p.column == 100; }));
}

TEST(PeakFinder, RowByRowIsTheSameAsAllAtOnce) {
    std::mt19937 random(9);
    for (int round = 0; round < 12; ++round) {
        Frame frame(1 + random() % 70, 1 + random() % 150, static_cast<unsigned>(random()));
        for (float& value : frame.energy) {
            const auto kind = random() % 60;
            if (round % 2 == 0) value = std::round(value * 2);  // many equal ones
            if (kind == 0) value = nan;
            if (kind == 1) value = infinity;
            if (kind == 2) value += 15;
        }
        for (int spot = 0; spot < 20; ++spot)
            frame.spot(random() % frame.rows, random() % frame.columns, static_cast<float>(random() % 30));
        PeakOptions options;
        options.threshold = static_cast<float>(random() % 8);
        options.snr = static_cast<float>(1 + random() % 6);
        options.radius = 1 + random() % 3;
        options.background_radius = options.radius + 1 + random() % (15 - options.radius);
        options.separation = 1 + random() % 15;
        options.pixels_min = 1 + random() % 4;
        const auto expected = reference::find_peaks(frame.energy, frame.columns, options);
        with_every_target([&] {
            PeakFinder finder(options, frame.columns);
            finder.begin_event();
            EXPECT_EQ(find(finder, frame), expected);
            EXPECT_EQ(find(finder, frame, 1 + random() % 300), expected);  // and not what was left of the last module
            EXPECT_EQ(finder.found(), 2 * expected.size());
        });
    }
}

TEST(PeakFinder, DoesNotAllocate) {
    Frame frame(512, 1024, 10);
    for (std::size_t i = 5; i < 500; i += 20) frame.spot(i, 2 * i, 30);
    PeakFinder finder({.threshold = 6}, 1024);
    core::hot_thread(true);
    finder.begin_event();
    finder.begin_module();
    finder.add(frame.energy);
    finder.end_module();
    core::hot_thread(false);
    EXPECT_EQ(finder.found(), 25U);
}

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
    std::mt19937 random(11);
    with_every_target([&] {
        EXPECT_EQ(median(std::vector<float>{5, 1, 9}), 5);
        EXPECT_EQ(median(std::vector<float>{5, 1, 9, 7}), 6);
        EXPECT_EQ(median(std::vector<float>{3}), 3);
        EXPECT_EQ(median(std::vector<float>{3, 3, 3, 3}), 3);
        EXPECT_EQ(median(std::vector<float>{-3, 1, -1, 3}), 0);
        EXPECT_EQ(median(std::vector<float>{-5, -1e30F, 1e-40F}), -5);
        for (int round = 0; round < 200; ++round) {
            std::vector<float> values(1 + random() % (round % 10 == 0 ? median_values_max : 130));
            const auto spread = 1 + random() % 1000;
            for (float& value : values)
                value = (static_cast<float>(random() % spread) - static_cast<float>(spread / 3)) / 8;
            const float found = median(values);
            std::ranges::sort(values);
            const std::size_t half = values.size() / 2;
            EXPECT_EQ(found, values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) * 0.5F);
        }
    });
}

TEST_F(RealFrames, HavePeaksAsTheReferenceFindsThem) {
    const Calibration calibration(config);
    const PeakOptions options{.threshold = 20, .snr = 6};
    for (int number = 0; number < 3; ++number) {
        Frame frame(jungfrau_rows, jungfrau_columns, 0);
        convert(raw(number), calibration.of(0, 0), frame.energy);
        PeakFinder finder(options, jungfrau_columns);
        finder.begin_event();
        const auto found = find(finder, frame);
        EXPECT_EQ(found, reference::find_peaks(frame.energy, jungfrau_columns, options));
        RecordProperty("peaks_" + std::to_string(number), static_cast<int>(found.size()));
        EXPECT_GT(found.size(), 10U);
    }
}

}  // namespace
}  // namespace weir::reduce
