// What is said of missing packets, from the gaps of messages: always the same ones, cut off by the end of the run, and
// which setting would fit.
#include <gtest/gtest.h>

#include "observe/geometry_hint.hpp"
#include "stages/always_missing.hpp"
#include "stages/cut_off.hpp"
#include "stages/top_values.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::ByteRange;
using Ranges = std::vector<ByteRange>;

std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(const Ranges& ranges) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const ByteRange& range : ranges) out.emplace_back(range.begin, range.end);
    return out;
}

TEST(AlwaysMissing, KeepsWhatIsMissingInEveryMessage) {
    weir::stages::AlwaysMissing source;
    source.add(Ranges{{0, 100}, {200, 300}});
    source.add(Ranges{{50, 250}});
    source.add(Ranges{{0, 1000}});
    const weir::stages::AlwaysMissing::Summary all = source.summary();
    EXPECT_EQ(pairs(all.ranges), pairs({{50, 100}, {200, 250}}));
    EXPECT_EQ(all.messages, 3U);
    EXPECT_EQ(all.missing_bytes, 200U + 200U + 1000U);
    source.add({});  // a whole message
    source.add(Ranges{{50, 100}});
    EXPECT_TRUE(source.summary().ranges.empty());
}

TEST(AlwaysMissing, JoinsWhatSeveralWorkersSaw) {
    weir::stages::AlwaysMissing::Summary all;
    all.join({{{0, 100}}, 5, 500});
    all.join({{{50, 200}}, 2, 300});
    EXPECT_EQ(pairs(all.ranges), pairs({{50, 100}}));
    EXPECT_EQ(all.messages, 7U);
    all.join({{}, 0, 0});  // one that had no message of it
    EXPECT_EQ(all.ranges.size(), 1U);
    all.join({{}, 1, 0});
    EXPECT_TRUE(all.ranges.empty());
}

std::uint64_t cut_off(const weir::stages::CutOff& source) {
    const weir::stages::CutOff::Summary summary = source.summary();
    return weir::stages::cut_off_packets({&summary, 1});
}

TEST(CutOff, OnlyTheEventThatTheSourceWasBusyWith) {
    weir::stages::CutOff source;
    source.add_present(100, 3);  // the source went on to the next event: these are lost
    source.add_present(200, 5);
    EXPECT_EQ(cut_off(source), 5U);
    source.add_absent(300, 128);  // begun by others, not by this one
    EXPECT_EQ(cut_off(source), 133U);
    source.add_present(400, 0);  // whole, so nothing was cut off after all
    EXPECT_EQ(cut_off(source), 0U);
    source.add_absent(300, 128);  // the order of closing says nothing
    source.add_present(200, 5);
    EXPECT_EQ(cut_off(source), 0U);
}

TEST(CutOff, WhatOneWorkerSawIsLostByWhatAnotherSaw) {
    weir::stages::CutOff first;
    weir::stages::CutOff second;
    first.add_present(100, 3);
    first.add_absent(150, 128);
    second.add_present(200, 7);
    const std::array workers{first.summary(), second.summary()};
    EXPECT_EQ(cut_off_packets(workers), 7U);
}

TEST(TopValues, SaysWhoTookAPlace) {
    weir::stages::TopValuesIn<2> values;
    EXPECT_TRUE(values.add(7).taken);
    EXPECT_FALSE(values.add(7).taken);
    EXPECT_TRUE(values.add(8).taken);
    const auto place = values.add(9);  // in the place of the rarest
    EXPECT_TRUE(place.taken);
    EXPECT_EQ(values.entries()[place.index].value, 9U);
    EXPECT_EQ(values.entries()[place.index].count, 2U);
}

struct HintCase {
    const char* stream;
    Ranges missing;
    const char* hint;
};

TEST(GeometryHint, NamesTheSettingThatFitsExactly) {
    constexpr std::uint32_t jungfrau = 8192;
    const HintCase cases[] = {
        {"format = \"jungfrau\"", {{0, 32 * jungfrau}, {96 * jungfrau, 128 * jungfrau}}, "`rows = 256`"},
        {"format = \"jungfrau\"", {{64 * jungfrau, 128 * jungfrau}}, "`interfaces = 2`"},
        {"format = \"jungfrau\"", {{8 * jungfrau, 128 * jungfrau}}, "`interfaces = 2` with `rows = 64`"},
        {"format = \"jungfrau\"\ninterfaces = 2", {{0, 32 * jungfrau}}, "`rows = 256`"},
        {"format = \"jungfrau\"\ninterfaces = 2", {{32 * jungfrau, 64 * jungfrau}}, "`rows = 256`"},
        {"format = \"jungfrau\"", {{0, jungfrau}}, ""},  // no readout has 127 packets
        {"format = \"jungfrau\"", {{8192, 2 * 8192}}, ""},
        {"format = \"moench\"", {{25 * 6400, 50 * 6400}}, "`interfaces = 2`"},
        {"format = \"eiger\"", {{131072, 262144}}, "`bit_depth = 8` or `rows = 128`"},
        {"format = \"dune\"", {{0, 100}}, ""},
    };
    for (const HintCase& one : cases) {
        const weir::config::RunConfig run = weir::config::parse_config(
            "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n[[stream]]\nport = \"a\"\ntransport = \"udp\"\n"
            "udp_dst = [1, 2]\n" +
                std::string(one.stream) + "\n[events]\nsources = 2\n[[sink]]\nkind = \"null\"\n",
            "t");
        EXPECT_EQ(fitting_setting(run, run.streams[0], one.missing), one.hint) << one.stream;
    }
}

}  // namespace
