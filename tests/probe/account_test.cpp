#include <gtest/gtest.h>

#include "probe/message_account.hpp"

namespace weir::probe {
namespace {

wire::Fragment fragment(std::uint64_t number, std::uint32_t offset, std::uint32_t sequence = 0) {
    return {.number = number, .offset = offset, .bytes = 100, .total = 200, .total_known = true, .sequence = sequence};
}

FoundStream reported(MessageAccount& account, std::size_t sources) {
    account.finish();
    FoundStream out;
    out.sources.resize(sources);
    account.report(out);
    return out;
}

TEST(MessageAccount, AnEventIsCompleteWhenAllSourcesAreWhole) {
    MessageAccount account(2, 0);
    for (const std::uint64_t number : {7U, 8U, 9U})
        for (const std::uint32_t source : {0U, 1U})
            for (const std::uint32_t offset : {0U, 100U})
                if (number != 8 || source != 1 || offset != 100) account.add(source, fragment(number, offset), 0);
    EXPECT_EQ(account.duplicates(), 0U);
    const FoundStream found = reported(account, 2);
    EXPECT_EQ(found.events, 3U);
    EXPECT_EQ(found.complete, 2U);
    EXPECT_EQ(account.packets_complete(), 8U);
    EXPECT_EQ(found.sources[1].whole, 2U);
    EXPECT_EQ(found.message_packets, 2U);
    EXPECT_EQ(found.numbers.stride, 1U);
}

TEST(MessageAccount, CopiesCompleteNothing) {
    MessageAccount account(1, 0);
    account.add(0, fragment(1, 0), 0);
    account.add(0, fragment(1, 0), 0);
    const FoundStream found = reported(account, 1);
    EXPECT_EQ(found.sources[0].duplicates, 1U);
    EXPECT_EQ(found.complete, 0U);
}

TEST(MessageAccount, SequenceNumbersSayWhatIsMissingAlsoAcrossTheirEnd) {
    MessageAccount account(1, 12);
    for (const std::uint32_t sequence : {4094U, 4095U, 1U, 0U, 4U}) account.add(0, fragment(sequence, 0, sequence), 0);
    // 0 came late; 2 and 3 did not come.
    EXPECT_EQ(reported(account, 1).sources[0].missing_packets, 2U);
}

TEST(NumbersOf, TheUsualStepIsTheStride) {
    const std::vector<std::uint64_t> numbers{10, 14, 18, 26, 30};
    const FoundNumbers found = numbers_of(numbers);
    EXPECT_EQ(found.stride, 4U);
    EXPECT_EQ(found.missing, 1U);
    const std::vector<std::uint64_t> uneven{1, 3, 10, 100};
    EXPECT_EQ(numbers_of(uneven).stride, 0U);
    EXPECT_EQ(numbers_of({}).distinct, 0U);
}

}  // namespace
}  // namespace weir::probe
