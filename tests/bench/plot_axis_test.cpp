#include "bench/plot_axis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using weir::bench::Axis;
using weir::bench::Tick;
using Values = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels_of(const Axis& axis) {
    std::vector<std::string> labels;
    for (const Tick& tick : axis.ticks()) labels.push_back(tick.label);
    return labels;
}

TEST(PlotAxis, FromZeroEndsAtARoundNumber) {
    const Axis axis = Axis::from_zero(Values{12, 98.7});
    EXPECT_EQ(labels_of(axis), (std::vector<std::string>{"0", "20", "40", "60", "80", "100"}));
    EXPECT_EQ(axis.place(0), 0);
    EXPECT_DOUBLE_EQ(axis.place(50), 0.5);
    EXPECT_EQ(axis.place(200), 1);
}

TEST(PlotAxis, DecadesAreWholeOnes) {
    const Axis axis = Axis::decades(Values{3e-4, 1});
    EXPECT_EQ(labels_of(axis), (std::vector<std::string>{"1", "1e-1", "1e-2", "1e-3", "1e-4"}));
    EXPECT_DOUBLE_EQ(axis.place(0.01), 0.5);
    EXPECT_LE(Axis::decades(Values{1e-19, 1}).ticks().size(), 9U);
    EXPECT_EQ(labels_of(Axis::decades(Values{1})), (std::vector<std::string>{"1", "1e-1"}));  // no ratio is above 1
}

TEST(PlotAxis, SizesAreTheirOwnTicks) {
    const Axis axis = Axis::of_sizes(Values{8240, 2048, 8240, 4096});
    EXPECT_EQ(labels_of(axis), (std::vector<std::string>{"2048", "4096", "8240"}));
    EXPECT_GT(axis.place(2048), 0);
    EXPECT_LT(axis.place(8240), 1);
}

TEST(PlotAxis, EveryPlaceIsOnTheAxisWhateverItIsMadeOf) {
    for (const Values& values : {Values{}, Values{0}, Values{-1}, Values{nan, infinity}, Values{5},
                                 Values{1e-300, 1e300}, Values{7, 7, 7}, Values{1e-9}})
        for (const Axis& axis : {Axis::from_zero(values), Axis::decades(values), Axis::of_sizes(values)}) {
            EXPECT_GE(axis.ticks().size(), 1U);
            EXPECT_LE(axis.ticks().size(), 12U);
            for (const double value : {0.0, -1.0, 1e-300, 1.0, 5.0, 1e300, infinity, -infinity, nan}) {
                const double place = axis.place(value);
                EXPECT_TRUE(place >= 0 && place <= 1) << value << " at " << place;
            }
        }
}

}  // namespace
