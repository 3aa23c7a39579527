#include "core/pointer_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace {

using weir::core::NumberKey;

struct Named {
    NumberKey name;
};
struct NameOf {
    NumberKey operator()(const Named& object) const noexcept { return object.name; }
};
using NamedTable = weir::core::PointerTable<Named, NameOf>;

TEST(PointerTable, BehavesLikeAMap) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        std::mt19937_64 random(seed);
        NamedTable table(32);
        std::array<Named, 72> objects;
        for (std::size_t i = 0; i < objects.size(); ++i) objects[i].name = {i / 3, i % 3};
        std::map<const Named*, bool> there;
        for (int step = 0; step < 4000; ++step) {
            Named& object = objects[random() % objects.size()];
            ASSERT_EQ(table.find(object.name), there[&object] ? &object : nullptr)
                << "seed " << seed << " step " << step;
            if (there[&object]) {
                table.erase(object);
                there[&object] = false;
            } else if (table.size() < 32) {
                table.insert(object);
                there[&object] = true;
            }
        }
        for (const Named& object : objects) EXPECT_EQ(table.find(object.name), there[&object] ? &object : nullptr);
    }
}

TEST(PointerTable, ClosesTheHoleWhenARunOfCollidingKeysWrapsAroundTheEnd) {
    // Keys that all want one of the last two of eight slots.
    std::vector<Named> objects;
    for (std::uint64_t number = 0; objects.size() < 3; ++number)
        if ((hash_of(NumberKey{number, 0}) & 7U) >= 6) objects.push_back({{number, 0}});
    std::vector<std::size_t> order{0, 1, 2};
    do {
        for (const Named& erased : objects) {
            NamedTable table(3);
            for (const std::size_t at : order) table.insert(objects[at]);
            table.erase(erased);
            for (Named& object : objects) EXPECT_EQ(table.find(object.name), &object == &erased ? nullptr : &object);
        }
    } while (std::ranges::next_permutation(order).found);
}

TEST(PointerTable, GuessesWhatNothingIsInTheWayOf) {
    NamedTable table(1000);
    std::vector<Named> objects(100);
    EXPECT_EQ(table.guess({7, 0}), nullptr);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        objects[i].name = {i, 1};
        table.insert(objects[i]);
    }
    const auto right = std::ranges::count_if(objects, [&](const Named& one) { return table.guess(one.name) == &one; });
    EXPECT_GE(right, 80);
}

}  // namespace
