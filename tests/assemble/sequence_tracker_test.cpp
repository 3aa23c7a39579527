// SequenceTracker against a set of all numbers that came, under loss, disorder, repetition, wrap and restart.
#include "assemble/sequence_tracker.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "effort.hpp"

namespace weir::assemble {
namespace {

using Seen = SequenceTracker::Seen;

std::uint64_t on_the_wire(std::uint64_t number, unsigned bits) {
    return bits == 64 ? number : number & ((std::uint64_t{1} << bits) - 1);
}

/// What is missing of the numbers between the lowest and the highest of a set.
std::uint64_t missing_of(const std::set<std::uint64_t>& came) {
    return came.empty() ? 0 : *came.rbegin() - *came.begin() + 1 - came.size();
}

struct Faults {
    unsigned bits = 32;
    double loss = 0.05;
    double burst = 0;  ///< probability that a long loss begins, after every 100 packets
    std::uint64_t burst_max = 1;
    double repeat = 0.05;
    double reorder = 0;  ///< places
};

/// Numbers from `first` on as they arrive after all of that.
std::vector<std::uint64_t> arrivals(std::mt19937_64& random, const Faults& faults, std::uint64_t first, int count) {
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<std::pair<double, std::uint64_t>> placed;
    std::uint64_t number = first;
    for (int i = 0; i < count; ++i, ++number) {
        // Not close to the end or to each other: a gap that too few packets follow is not believed.
        if (i % 100 == 0 && i < count - 200 && chance(random) < faults.burst) number += 1 + random() % faults.burst_max;
        if (chance(random) < faults.loss) continue;
        const int copies = chance(random) < faults.repeat ? 2 : 1;
        for (int k = 0; k < copies; ++k) placed.emplace_back(i + chance(random) * faults.reorder, number);
    }
    std::ranges::stable_sort(placed, {}, &std::pair<double, std::uint64_t>::first);
    std::vector<std::uint64_t> out;
    for (const auto& [place, at] : placed) out.push_back(at);
    return out;
}

/// Whether nothing came too late for the window; then all is exact, and otherwise only what came too late is not.
bool expect_exact(std::uint64_t seed, const Faults& faults) {
    std::mt19937_64 random(seed);
    std::uint64_t first = random();
    if (seed % 2 == 0) first = (random() << (faults.bits - 1)) - random() % 1000;  // wraps soon
    SequenceTracker tracker(faults.bits);
    std::set<std::uint64_t> came;
    const std::uint64_t window = std::min<std::uint64_t>(SequenceTracker::window_max, 1ULL << (faults.bits - 1));
    std::uint64_t too_late = 0;
    for (const std::uint64_t number : arrivals(random, faults, first, 3000)) {
        const Seen seen = tracker.add(on_the_wire(number, faults.bits));
        const std::uint64_t at = number - first + (1ULL << 40U);
        too_late += came.empty() || at + window > *came.rbegin() ? 0 : 1;
        const bool is_new = came.insert(at).second;
        if (seen != Seen::unknown) {
            EXPECT_EQ(seen == Seen::fresh, is_new) << "seed " << seed;
        }
        if (faults.burst == 0) {
            EXPECT_EQ(tracker.missing(), missing_of(came)) << "seed " << seed;
        }
    }
    EXPECT_GE(tracker.missing(), missing_of(came)) << "seed " << seed << ", " << faults.bits << " bits";
    EXPECT_LE(tracker.missing(), missing_of(came) + too_late) << "seed " << seed << ", " << faults.bits << " bits";
    return too_late == 0;
}

TEST(SequenceTracker, EveryPacketOnceAndInOrderMissesNothing) {
    for (const unsigned bits : {4U, 8U, 12U, 16U, 32U, 63U, 64U}) {
        SequenceTracker tracker(bits);
        for (std::uint64_t i = 0; i < 10000; ++i)
            ASSERT_EQ(tracker.add(on_the_wire(i + 3, bits)), Seen::fresh) << bits << " bits, packet " << i;
        EXPECT_EQ(tracker.missing(), 0U);
    }
}

TEST(SequenceTracker, IsExactUnderLossDisorderAndRepetition) {
    for (std::uint64_t seed = 0; seed < weir::test::repeated(std::uint64_t{400}, {.sanitized = 1}); ++seed) {
        const unsigned bits = std::array{12U, 13U, 16U, 24U, 32U, 48U, 64U}[seed % 7];
        EXPECT_TRUE(expect_exact(seed, {.bits = bits,
                                        .loss = static_cast<double>(seed % 10) * 0.05,
                                        .repeat = static_cast<double>(seed % 3) * 0.1,
                                        .reorder = static_cast<double>(seed % 13) * 100}));
    }
}

TEST(SequenceTracker, NarrowCountersAreExactWithinHalfTheirTurn) {
    for (std::uint64_t seed = 0; seed < weir::test::repeated(std::uint64_t{100}, {.sanitized = 1}); ++seed) {
        const unsigned bits = 6 + static_cast<unsigned>(seed % 5);
        EXPECT_TRUE(
            expect_exact(seed, {.bits = bits, .loss = 0.1, .reorder = static_cast<double>((1U << (bits - 1)) / 4)}));
    }
}

TEST(SequenceTracker, CountsLossesLongerThanItsWindow) {
    for (std::uint64_t seed = 0; seed < weir::test::repeated(std::uint64_t{200}, {.sanitized = 1}); ++seed) {
        const unsigned bits = std::array{26U, 32U, 48U, 64U}[seed % 4];
        const std::uint64_t longest = std::array{1000, 2100, 4200, 100'000}[seed / 4 % 4];
        EXPECT_TRUE(
            expect_exact(seed, {.bits = bits, .loss = 0.02, .burst = 0.3, .burst_max = longest, .repeat = 0.03}));
    }
}

TEST(SequenceTracker, DisorderAroundLongLossesIsExactAsFarAsTheWindowReaches) {
    int exact = 0;
    for (std::uint64_t seed = 0; seed < weir::test::repeated(std::uint64_t{300}, {.sanitized = 1}); ++seed)
        exact += expect_exact(seed, {.bits = 32,
                                     .loss = 0.1,
                                     .burst = 0.1,
                                     .burst_max = 2000 + 100 * (seed % 5),
                                     .repeat = 0.03,
                                     .reorder = static_cast<double>(seed % 5) * 20})
                     ? 1
                     : 0;
    EXPECT_GT(exact, weir::test::repeated(100, {.sanitized = 1}));
}

TEST(SequenceTracker, SmallLossesOfATwelveBitCounterAreExactUpToHalfATurn) {
    SequenceTracker tracker(12);
    tracker.add(4000);
    tracker.add((4000 + 2047) & 0xfff);
    EXPECT_EQ(tracker.missing(), 2046U);
}

TEST(SequenceTracker, OneWildNumberIsNoLoss) {
    SequenceTracker tracker(32);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        tracker.add(i);
        if (i % 100 != 50) continue;
        EXPECT_EQ(tracker.add(i ^ (0x0040'0000U << (i / 100))), Seen::unknown);
    }
    EXPECT_EQ(tracker.missing(), 0U);
}

TEST(SequenceTracker, AWildNumberAtTheBeginningIsNoLoss) {
    SequenceTracker tracker(32);
    tracker.add(0x8000'0000U);
    for (std::uint64_t i = 0; i < 1000; ++i)
        if (i != 500) tracker.add(i);
    EXPECT_EQ(tracker.missing(), 1U);
}

TEST(SequenceTracker, ARestartIsNoLossAndKeepsWhatWasLostBefore) {
    for (const std::uint64_t first : {3'000'000'000U, 100'000U, 5'000U}) {
        SequenceTracker tracker(32);
        for (std::uint64_t i = 0; i < 100; ++i)
            if (i % 10 != 5) tracker.add(first + i);
        EXPECT_EQ(tracker.missing(), 10U);
        for (std::uint64_t i = 0; i < 100; ++i)
            if (i % 50 != 25) tracker.add(i);
        EXPECT_EQ(tracker.missing(), 12U) << first;
    }
}

TEST(SequenceTracker, AGapIsBelievedWhenEightPacketsHaveRisenFromItsEnd) {
    SequenceTracker tracker(32);
    tracker.add(1);
    for (std::uint64_t i = 0; i < 8; ++i) {
        EXPECT_EQ(tracker.missing(), 0U);
        tracker.add(10'001 + i);
    }
    EXPECT_EQ(tracker.missing(), 9'999U);
}

TEST(SequenceTracker, TwoSendersOnOneSourceAreNotEndlessLoss) {
    SequenceTracker tracker(32);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        tracker.add(1'000'000 + i);
        tracker.add(2'000'000 + i);
    }
    EXPECT_EQ(tracker.missing(), 0U);
}

TEST(SequenceTracker, WhatComesLaterThanTheWindowStaysMissing) {
    SequenceTracker tracker(32);
    for (std::uint64_t i = 0; i < 5000; ++i)
        if (i != 10 && i != 4000) tracker.add(i);
    EXPECT_EQ(tracker.add(4000), Seen::fresh);
    EXPECT_EQ(tracker.add(4000), Seen::repeated);
    EXPECT_EQ(tracker.add(10), Seen::unknown);
    EXPECT_EQ(tracker.missing(), 1U);
}

}  // namespace
}  // namespace weir::assemble
