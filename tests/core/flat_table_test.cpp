#include "core/flat_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace {

using weir::core::FlatTable;
using weir::core::hash_of;
using weir::core::NumberKey;

TEST(FlatTable, FindsWhatWasInsertedAndNothingElse) {
    FlatTable<int> table(4);
    EXPECT_EQ(table.find({1, 0}), nullptr);
    EXPECT_TRUE(table.insert({1, 0}, 10));
    EXPECT_TRUE(table.insert({1, 1}, 11));  // the scope is part of the key
    ASSERT_NE(table.find({1, 0}), nullptr);
    EXPECT_EQ(*table.find({1, 0}), 10);
    EXPECT_EQ(*table.find({1, 1}), 11);
    EXPECT_EQ(table.find({0, 1}), nullptr);
    EXPECT_EQ(table.size(), 2u);
    EXPECT_TRUE(table.erase({1, 0}));
    EXPECT_FALSE(table.erase({1, 0}));
    EXPECT_EQ(table.find({1, 0}), nullptr);
    EXPECT_EQ(*table.find({1, 1}), 11);
}

TEST(FlatTable, TakesAsManyAsPromisedAndSaysWhenItIsFull) {
    for (std::size_t entries_max = 1; entries_max <= 70; ++entries_max) {
        FlatTable<std::size_t> table(entries_max);
        for (std::size_t i = 0; i < entries_max; ++i) EXPECT_TRUE(table.insert({i, 0}, i));
        EXPECT_FALSE(table.insert({entries_max, 0}, 0)) << entries_max;
        for (std::size_t i = 0; i < entries_max; ++i) EXPECT_EQ(*table.find({i, 0}), i);
        EXPECT_EQ(table.find({entries_max, 0}), nullptr);  // and the search ends
        EXPECT_TRUE(table.erase({0, 0}));
        EXPECT_TRUE(table.insert({entries_max, 0}, 0));
    }
}

TEST(FlatTable, BehavesLikeAMap) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        std::mt19937_64 random(seed);
        FlatTable<std::uint64_t> table(32);
        std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> model;
        for (int step = 0; step < 4000; ++step) {
            const NumberKey key{random() % 24, random() % 3};
            const auto found = model.find({key.number, key.scope});
            ASSERT_EQ(table.find(key) != nullptr, found != model.end()) << "seed " << seed << " step " << step;
            if (found == model.end()) {
                const bool room = model.size() < 32;
                ASSERT_EQ(table.insert(key, random()), room);
                if (room) model[{key.number, key.scope}] = *table.find(key);
            } else if (random() % 2 == 0) {
                ASSERT_TRUE(table.erase(key));
                model.erase(found);
            }
            ASSERT_EQ(table.size(), model.size());
        }
        for (const auto& [key, value] : model) EXPECT_EQ(*table.find({key.first, key.second}), value);
    }
}

TEST(FlatTable, ClosesTheHoleWhenARunOfCollidingKeysWrapsAroundTheEnd) {
    // Keys that all want one of the last two of eight slots.
    std::vector<NumberKey> keys;
    for (std::uint64_t number = 0; keys.size() < 3; ++number)
        if ((hash_of({number, 0}) & 7U) >= 6) keys.push_back({number, 0});
    std::ranges::sort(keys, {}, &NumberKey::number);
    do {
        for (const NumberKey& erased : keys) {
            FlatTable<std::uint64_t> table(3);
            for (const NumberKey& key : keys) ASSERT_TRUE(table.insert(key, key.number));
            ASSERT_TRUE(table.erase(erased));
            for (const NumberKey& key : keys) EXPECT_EQ(table.find(key) != nullptr, !(key == erased));
        }
    } while (std::ranges::next_permutation(keys, {}, &NumberKey::number).found);
}

/// The longest run of used slots if the keys go into a table of twice as many.
template <class KeyOf>
std::size_t longest_probe(std::size_t count, KeyOf&& key_of) {
    const std::size_t slots = std::bit_ceil(2 * count);
    std::vector<bool> used(slots);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t at = hash_of(key_of(i)) & (slots - 1);
        std::size_t probes = 1;
        for (; used[at]; at = (at + 1) & (slots - 1)) ++probes;
        used[at] = true;
        longest = std::max(longest, probes);
    }
    return longest;
}

TEST(FlatTable, SpreadsTheNumbersThatDetectorsSend) {
    const auto scope = [](std::uint64_t source, std::uint64_t epoch) { return (source << 32U) | epoch; };
    for (const std::uint64_t stride : {1ULL, 2ULL, 3ULL, 64ULL, 1000ULL, 1ULL << 16U, 1ULL << 32U, 1ULL << 48U}) {
        EXPECT_LE(longest_probe(4096, [&](std::size_t i) { return NumberKey{i * stride, 0}; }), 64u) << stride;
        // The same numbers of many sources: as many distinct keys must not mean as many equal hashes.
        EXPECT_LE(longest_probe(4096,
                                [&](std::size_t i) {
                                    return NumberKey{i / 64 * stride, scope(i % 64, 1)};
                                }),
                  64u)
            << stride;
    }
}

}  // namespace
