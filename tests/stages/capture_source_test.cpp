// Which records of which captures come, in which order, at which times.
#include "stages/capture_source.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "store/capture/writer.hpp"
#include "temporary_directory.hpp"

namespace weir::stages {
namespace {

using Seen = std::vector<std::pair<core::TimeNs, int>>;  // time after the first, first byte

class CaptureSources : public testing::Test {
protected:
    static constexpr core::TimeNs start_ns = 1'700'000'000 * core::ns_per_s;

    std::string capture(const std::string& name, const std::vector<std::pair<core::TimeNs, int>>& records) {
        const std::string path = (directory_ / name).string();
        store::CaptureWriter writer(path);
        for (const auto& [after_ns, value] : records)
            writer.write(std::vector<std::byte>(60, static_cast<std::byte>(value)), start_ns + after_ns);
        writer.close();
        return path;
    }
    /// Of so many passes.
    static Seen all_of(CaptureSource& source, std::uint32_t passes = 1) {
        Seen seen;
        do {
            for (CaptureSource::Item item; source.next(item);)
                if (item.record != nullptr)
                    seen.emplace_back(item.time_ns - start_ns, std::to_integer<int>(item.record->bytes[0]));
        } while (source.passes() < passes && source.next_pass());
        return seen;
    }

    weir::test::TemporaryDirectory directory_;
};

TEST_F(CaptureSources, CapturesAreMergedByTimeAndTimeStandsStillWhereItRanBack) {
    CaptureSource source({{capture("a", {{0, 1}, {20, 2}, {10, 3}}), capture("b", {{5, 4}, {30, 5}})}, {}, {}});
    EXPECT_EQ(all_of(source), (Seen{{0, 1}, {5, 4}, {20, 2}, {20, 3}, {30, 5}}));
}

TEST_F(CaptureSources, APassFollowsAfterTheMeanDistance) {
    CaptureSource source({{capture("a", {{0, 1}, {10, 2}, {30, 3}})}, {}, {}});
    EXPECT_EQ(all_of(source, 3),
              (Seen{{0, 1}, {10, 2}, {30, 3}, {40, 1}, {50, 2}, {70, 3}, {80, 1}, {90, 2}, {110, 3}}));
    EXPECT_EQ(source.passes(), 3U);
}

TEST_F(CaptureSources, TheRangeIsKeptInEveryPass) {
    const TimeBound from{true, 10};
    const TimeBound to{true, 30};
    CaptureSource source({{capture("a", {{0, 1}, {10, 2}, {20, 3}, {30, 4}})}, from, to});
    EXPECT_EQ(all_of(source, 2), (Seen{{10, 2}, {20, 3}, {25, 2}, {35, 3}}));
    EXPECT_EQ(source.skipped(), 4U);
}

TEST_F(CaptureSources, NothingInTheRangeEndsAtOnce) {
    const TimeBound from{true, 100};
    CaptureSource source({{capture("a", {{0, 1}})}, from, {}});
    EXPECT_TRUE(all_of(source, 1000).empty());
    EXPECT_EQ(source.passes(), 1U);
}

}  // namespace
}  // namespace weir::stages
