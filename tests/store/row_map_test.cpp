// Rows of many files as the rows of one table: each is in one mapping, in an order that HDF5 keeps, and there are few.
#include "store/hdf5/row_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weir::store::hdf5::test {
namespace {

/// What HDF5 makes of the mappings; fails if they are none that it takes.
std::vector<RowPlace> unfolded(const std::vector<RowMapping>& mappings, std::size_t rows, std::size_t stretches_max) {
    std::vector<RowPlace> places(rows, {~0U, 0});
    for (const RowMapping& mapping : mappings) {
        EXPECT_LE(mapping.stretches.size(), stretches_max);
        std::uint64_t here = 0;
        std::uint64_t there = 0;
        for (const RowStretch& stretch : mapping.stretches) {
            EXPECT_GE(stretch.here, here);
            EXPECT_GE(stretch.there, there);
            here = stretch.here + stretch.rows;
            there = stretch.there + stretch.rows;
            for (std::uint64_t i = 0; i < stretch.rows; ++i) {
                RowPlace& place = places.at(stretch.here + i);
                EXPECT_EQ(place.file, ~0U) << "row " << stretch.here + i << " is there twice";
                place = {mapping.file, stretch.there + i};
            }
        }
    }
    return places;
}

void expect_same(const std::vector<RowPlace>& places, const std::vector<RowMapping>& mappings,
                 std::size_t stretches_max) {
    const std::vector<RowPlace> found = unfolded(mappings, places.size(), stretches_max);
    for (std::size_t i = 0; i < places.size(); ++i) {
        EXPECT_EQ(found[i].file, places[i].file) << i;
        EXPECT_EQ(found[i].row, places[i].row) << i;
    }
}

/// Blocks of 16 events that go to builders by chance. `order` sorts the events of each file.
template <class Order>
std::vector<RowPlace> blocks_of(std::size_t events, std::uint32_t files, Order order) {
    std::mt19937 random(7);
    std::vector<std::vector<std::size_t>> written(files);
    std::vector<std::uint32_t> file_of(events);
    for (std::size_t i = 0; i < events; ++i) {
        file_of[i] = i % 16 == 0 ? random() % files : file_of[i - 1];
        written[file_of[i]].push_back(i);
    }
    std::vector<RowPlace> places(events);
    for (std::uint32_t file = 0; file < files; ++file) {
        order(written[file], random);
        for (std::size_t row = 0; row < written[file].size(); ++row) places[written[file][row]] = {file, row};
    }
    return places;
}

TEST(RowMapTest, NoRowsNeedNoMapping) {
    EXPECT_TRUE(map_rows({}).empty());
}

TEST(RowMapTest, BlocksOfAFileAreOneMapping) {
    const auto places = blocks_of(3200, 3, [](auto&, auto&) {});
    const std::vector<RowMapping> mappings = map_rows(places);
    EXPECT_EQ(mappings.size(), 3U);
    std::size_t stretches = 0;
    for (const RowMapping& mapping : mappings) stretches += mapping.stretches.size();
    EXPECT_LE(stretches, 200U);
    expect_same(places, mappings, stretches_max_default);
}

TEST(RowMapTest, AMappingIsNoLongerThanAllowed) {
    const auto places = blocks_of(3200, 3, [](auto&, auto&) {});
    const std::vector<RowMapping> mappings = map_rows(places, 10);
    EXPECT_LE(mappings.size(), 23U);
    expect_same(places, mappings, 10);
}

TEST(RowMapTest, SeveralWorkersWriteInDisorder) {
    const auto shuffled = [](std::vector<std::size_t>& events, std::mt19937& random) {
        for (std::size_t i = 0; i + 8 <= events.size(); i += 8)
            std::shuffle(events.begin() + static_cast<std::ptrdiff_t>(i),
                         events.begin() + static_cast<std::ptrdiff_t>(i + 8), random);
    };
    const auto places = blocks_of(3200, 3, shuffled);
    const std::vector<RowMapping> mappings = map_rows(places);
    EXPECT_LE(mappings.size(), 3U * 8 + 3200 / stretches_max_default);
    expect_same(places, mappings, stretches_max_default);
}

TEST(RowMapTest, RowsBackwardsAreAMappingEach) {
    const auto places =
        blocks_of(320, 2, [](std::vector<std::size_t>& events, std::mt19937&) { std::ranges::reverse(events); });
    const std::vector<RowMapping> mappings = map_rows(places);
    EXPECT_EQ(mappings.size(), 320U);
    expect_same(places, mappings, stretches_max_default);
}

TEST(RowMapTest, AFullMappingGoesOnWithItsLastStretchOnly) {
    // Rows follow each other in the file, and not here: each is a stretch.
    std::vector<RowPlace> places;
    for (std::uint64_t i = 0; i < 20; ++i) {
        places.push_back({0, i});
        places.push_back({1, i});
    }
    for (std::uint64_t i = 20; i < 40; ++i) places.push_back({1, i});
    const std::vector<RowMapping> mappings = map_rows(places, 4);
    EXPECT_EQ(mappings.size(), 10U);
    expect_same(places, mappings, 4);
}

}  // namespace
}  // namespace weir::store::hdf5::test
