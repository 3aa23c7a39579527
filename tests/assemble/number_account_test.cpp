#include "assemble/number_account.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "assemble/number_log.hpp"

namespace weir::assemble {
namespace {

using Counting = NumberAccount::Counting;
using Range = NumberAccount::Range;

NumberAccount of(const std::vector<std::uint64_t>& numbers) {
    NumberAccount account;
    for (const std::uint64_t number : numbers) account.add(number, 0, 1);
    return account;
}

TEST(NumberAccount, NothingAndOneNumber) {
    EXPECT_EQ(NumberAccount().result().counting, Counting::none);
    const auto one = of({7}).result();
    EXPECT_EQ(one.counting, Counting::single);
    EXPECT_EQ(one.first, 7U);
    EXPECT_EQ(one.last, 7U);
    EXPECT_EQ(one.missing, 0U);
}

/// The numbers of a counter that begins again at `to` after `from`, a field of `turn` numbers on its way.
NumberAccount::Result wrapping(std::uint64_t from, std::uint64_t to, std::uint64_t turn, unsigned times,
                               const std::set<std::uint64_t>& lost = {}) {
    NumberAccount account;
    std::uint64_t number = from - 10;
    for (unsigned i = 0; i <= times; ++i) {
        const std::uint64_t last = i < times ? i * turn + from : i * turn + to + 10;
        for (; number <= last; ++number)
            if (!lost.contains(number)) account.add(number, 0, 1);
        number = (i + 1) * turn + to;
    }
    NumberAccount::Result found = account.result();
    NumberAccount::judge_wraps(found, turn);
    return found;
}

TEST(NumberAccount, ACounterThatLeavesOutZeroMissesNothing) {
    const auto found = wrapping(65535, 1, 65536, 1);
    EXPECT_EQ(found.missing, 0U);
    EXPECT_TRUE(found.ranges.empty());
    EXPECT_TRUE(found.wrap.sure);
    EXPECT_EQ(found.wrap.from, 65535U);
    EXPECT_EQ(found.wrap.to, 1U);
    const auto lost = wrapping(65535, 1, 65536, 3, {2 * 65536 + 40000, 2 * 65536 + 40001});
    EXPECT_EQ(lost.missing, 2U);
    EXPECT_EQ(lost.wrap.times, 3U);
}

TEST(NumberAccount, ACounterThatHasZeroCanLoseIt) {
    // It is there at another wrap, or at the beginning.
    NumberAccount twice;
    for (std::uint64_t number = 65000; number < 3 * 65536; ++number)
        if (number != 65536) twice.add(number, 0, 1);
    NumberAccount::Result found = twice.result();
    NumberAccount::judge_wraps(found, 65536);
    EXPECT_EQ(found.missing, 1U);
    EXPECT_EQ(found.wrap.times, 0U);
    // More than that is missing, up to the wrap.
    EXPECT_EQ(wrapping(65535, 1, 65536, 1, {65534, 65535}).missing, 3U);
}

TEST(NumberAccount, ACounterThatBeginsAgainEarly) {
    const auto twice = wrapping(59999, 0, 65536, 2);
    EXPECT_EQ(twice.missing, 0U);
    EXPECT_TRUE(twice.wrap.sure);
    const auto once = wrapping(59999, 0, 65536, 1);
    EXPECT_EQ(once.missing, 5536U);
    EXPECT_EQ(once.wrap.times, 1U);
    EXPECT_FALSE(once.wrap.sure) << "a loss can look like that";
}

TEST(NumberAccount, TwoCapturesOfOneRun) {
    const auto found = of({1, 2, 3, 4, 5, 100, 101, 102, 103, 104}).result();
    EXPECT_EQ(found.counting, Counting::counted);
    EXPECT_EQ(found.stride, 1U);
    EXPECT_EQ(found.missing, 94U);
    EXPECT_EQ(found.ranges, (std::vector<Range>{{6, 99}}));
    EXPECT_EQ(found.first, 1U);
    EXPECT_EQ(found.last, 104U);
}

TEST(NumberAccount, AStrideIsLearnt) {
    const auto found = of({2048, 4096, 6144, 10240, 12288, 16384, 18432, 20480}).result();
    EXPECT_EQ(found.counting, Counting::counted);
    EXPECT_EQ(found.stride, 2048U);
    EXPECT_EQ(found.missing, 2U);
    EXPECT_EQ(found.ranges, (std::vector<Range>{{8192, 8192}, {14336, 14336}}));
}

TEST(NumberAccount, TwoNumbersShowAStrideOnlyIfNothingFitsBetween) {
    EXPECT_EQ(of({5, 6}).result().counting, Counting::counted);
    EXPECT_EQ(of({5, 15}).result().counting, Counting::sparse);
    const auto told = of({5, 15}).result(1);
    EXPECT_EQ(told.missing, 9U);
    EXPECT_EQ(told.ranges, (std::vector<Range>{{6, 14}}));
}

TEST(NumberAccount, ThinnedOutAtRandomIsSparse) {
    std::mt19937_64 random(1);
    std::bernoulli_distribution keep(0.3);
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t n = 0; n < 10000; ++n)
        if (keep(random)) numbers.push_back(n);
    EXPECT_EQ(of(numbers).result().counting, Counting::sparse);
}

TEST(NumberAccount, RandomNumbersAreSparseAndStayBounded) {
    std::mt19937_64 random(2);
    NumberAccount account;
    for (std::uint64_t i = 0; i < 3 * NumberAccount::runs_max; ++i) account.add(random(), 0, 1);
    const auto found = account.result();
    EXPECT_EQ(found.counting, Counting::sparse);
    EXPECT_EQ(found.seen, 3 * NumberAccount::runs_max);
    EXPECT_EQ(found.missing, 0U);
}

TEST(NumberAccount, ADeclaredStrideCountsWhateverIsLeft) {
    const auto found = of({10, 30, 60, 100}).result(10);
    EXPECT_EQ(found.missing, 6U);
    EXPECT_EQ(found.odd, 0U);
    EXPECT_EQ(of({10, 30, 65}).result(10).odd, 1U);
}

TEST(NumberAccount, AJumpIsNoLoss) {
    const auto found = of({1, 2, 3, 4, 1ULL << 40, (1ULL << 40) + 1, (1ULL << 40) + 2}).result();
    EXPECT_EQ(found.counting, Counting::counted);
    EXPECT_EQ(found.missing, 0U);
    EXPECT_EQ(found.jumps, 1U);
}

TEST(NumberAccount, CountsAcrossTheEndOf64Bits) {
    const std::uint64_t last = ~std::uint64_t{0};
    const auto found = of({last - 2, last - 1, 0, 1, 2}).result();
    EXPECT_EQ(found.missing, 1U);
    EXPECT_EQ(found.ranges, (std::vector<Range>{{last, last}}));
}

TEST(NumberAccount, MoreGapsThanAreKeptApartAreStillCounted) {
    NumberAccount account;
    std::uint64_t missing = 0;
    std::uint64_t number = 0;
    for (std::uint64_t i = 0; i < 3 * NumberAccount::runs_max; ++i) {
        account.add(number, 1, 10);
        number += 10 + i % 3;
        missing += i % 3;
    }
    account.add(number, 1, 2);
    const auto found = account.result();
    EXPECT_EQ(found.counting, Counting::counted);
    EXPECT_EQ(found.missing, missing);
    EXPECT_EQ(found.ranges.size(), NumberAccount::ranges_max);
    EXPECT_EQ(found.ranges.size() + found.ranges_left_out, 2 * NumberAccount::runs_max);
}

/// Against a set: any order within a window, several writers, gaps, repeats.
TEST(NumberAccount, AgreesWithASet) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random(seed);
        const std::uint64_t stride = 1 + random() % 3 * 5;
        std::vector<std::uint64_t> numbers;
        std::uint64_t number = random();
        for (int i = 0; i < 300; ++i) {
            number += stride * (random() % 10 == 0 ? 1 + random() % 50 : 1);
            numbers.push_back(number);
        }
        const std::uint64_t first = numbers.front();
        const std::uint64_t window = 1 + random() % 40;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            std::swap(numbers[i], numbers[std::min<std::size_t>(numbers.size() - 1, i + random() % window)]);
        NumberAccount account;
        std::set<std::uint64_t> seen;
        NumberLog log(seed % 2 == 0 ? 4 : 1024);
        const auto take = [&](const NumberLog::Run& run) { account.add(run.first, run.step, run.count); };
        for (const std::uint64_t n : numbers) {
            seen.insert(n - first);
            log.add(0, n);
            if (random() % 4 == 0) log.publish();
            if (random() % 2 == 0) log.read(take);
            if (random() % 50 == 0) account.add(n, 0, seed % 2);  // none, or one once more
        }
        log.finish();
        log.read(take);
        if (log.dropped() > 0) continue;
        const auto found = account.result();
        ASSERT_EQ(found.counting, Counting::counted) << seed;
        ASSERT_EQ(found.stride, stride) << seed;
        ASSERT_EQ(found.seen, seen.size()) << seed;
        ASSERT_EQ(found.missing, (*seen.rbegin() - *seen.begin()) / stride + 1 - seen.size()) << seed;
        std::uint64_t listed = 0;
        for (const Range& range : found.ranges) {
            for (std::uint64_t n = range.first; n != range.last + stride; n += stride, ++listed)
                ASSERT_FALSE(seen.contains(n - first)) << seed;
        }
        ASSERT_EQ(listed, found.missing) << seed;
        const std::uint64_t last =
            first + *std::next(seen.begin(), static_cast<std::ptrdiff_t>(random() % seen.size()));
        NumberAccount low;
        for (const std::uint64_t n : seen)
            if (n <= last - first) low.add(first + n, 0, 1);
        const auto up_to = account.result_up_to(last, stride);
        const auto wanted = low.result(stride);
        ASSERT_EQ(up_to.seen, wanted.seen) << seed;
        ASSERT_EQ(up_to.missing, wanted.missing) << seed;
        ASSERT_EQ(up_to.first, wanted.first) << seed;
        ASSERT_EQ(up_to.last, wanted.last) << seed;
        ASSERT_EQ(up_to.ranges, wanted.ranges) << seed;
        ASSERT_EQ(account.result().seen, seen.size()) << "it forgot for good, " << seed;
    }
}

TEST(NumberLog, ALateReaderIsToldWhatItMissed) {
    NumberLog log(2);
    for (std::uint64_t n = 0; n < 100; ++n) log.add(0, n);  // one entry
    log.add(0, 1000);
    log.add(0, 5000);
    log.add(0, 90000);
    log.finish();
    std::uint64_t numbers = 0;
    log.read([&](const NumberLog::Run& run) { numbers += run.count; });
    EXPECT_EQ(numbers + log.dropped(), 103U);
    EXPECT_EQ(log.dropped(), 2U);
}

TEST(NumberLog, TwoThreads) {
    NumberLog log(64);
    constexpr std::uint64_t count = 100000;
    std::thread writer([&] {
        for (std::uint64_t n = 0; n < count; ++n) {
            log.add(0, n * n);
            log.publish();
        }
        log.finish();
    });
    std::uint64_t seen = 0;
    std::uint64_t next = 0;
    const auto take = [&](const NumberLog::Run& run) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
            const std::uint64_t number = run.first + run.step * i;
            EXPECT_GE(number, next);
            next = number;
            ++seen;
        }
    };
    while (seen + log.dropped() < count) log.read(take);
    writer.join();
    log.read(take);
    EXPECT_EQ(seen + log.dropped(), count);
}

}  // namespace
}  // namespace weir::assemble
