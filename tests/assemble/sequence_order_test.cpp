// Messages whose packets say neither their place nor their number: ESS, of which any number of packets are a pulse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "assemble/event_assembler.hpp"
#include "wire/encode.hpp"

namespace {

using namespace weir;
using assemble::AssembledEvent;
using assemble::EventAssembler;
using assemble::EventCause;
using wire::PacketCounter;

struct Readout {
    std::uint32_t source = 0;
    std::uint32_t pulse = 0;
    std::uint32_t sequence = 0;
    std::string data;  ///< none: a heartbeat
};

class Pulses : public testing::Test {
protected:
    struct Seen {
        std::uint32_t pulse = 0;
        EventCause cause = EventCause::complete;
        std::vector<std::string> data;  ///< by source
    };

    void make(std::uint32_t sources, std::uint32_t packets_per_pulse = 0, core::TimeNs timeout_ns = 1000) {
        EventAssembler::Config config;
        config.format = wire::find_format("ess");
        config.options.ess.packets_per_pulse = packets_per_pulse;
        config.sources = sources;
        config.timeout_ns = timeout_ns;
        config.events_max = 4096;
        assembler_ = std::make_unique<EventAssembler>(config, [this, sources](const AssembledEvent& event) {
            Seen seen{static_cast<std::uint32_t>(event.number() >> 32U), event.cause(), {}};
            for (std::uint32_t source = 0; source < sources; ++source) {
                std::string text;
                for (const std::byte one : event.payload(source, std::byte{'.'})) text += static_cast<char>(one);
                seen.data.push_back(text);
            }
            events_.push_back(seen);
        });
    }
    void add(const Readout& readout, core::TimeNs now) {
        std::vector<std::byte> payload;
        for (const char one : readout.data) payload.push_back(static_cast<std::byte>(one));
        std::vector<std::byte> packet(100);
        packet.resize(wire::write_ess({.pulse_seconds = readout.pulse, .sequence = readout.sequence}, payload, packet));
        assembler_->add(readout.source, packet, now);
        ++added_;
    }
    /// Every packet has ended in one counter.
    void finish() {
        assembler_->finish();
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i)
            sum += assembler_->packets(static_cast<PacketCounter>(i));
        EXPECT_EQ(sum, added_);
        EXPECT_EQ(count(PacketCounter::in_flight), 0U);
    }
    [[nodiscard]] std::uint64_t count(PacketCounter counter) const { return assembler_->packets(counter); }
    [[nodiscard]] std::vector<std::string> of_source(std::uint32_t source) const {
        std::vector<std::string> out;
        for (const Seen& seen : events_)
            out.push_back((seen.cause == EventCause::complete ? "" : "!") + seen.data[source]);
        return out;
    }

    std::unique_ptr<EventAssembler> assembler_;
    std::vector<Seen> events_;
    std::uint64_t added_ = 0;
};

using Texts = std::vector<std::string>;

TEST_F(Pulses, EndWithTheNextOne) {
    make(1);
    for (const Readout& one : {Readout{0, 1, 10, "a"}, {0, 1, 11, "bb"}, {0, 1, 12, "c"}, {0, 2, 13, "d"}}) add(one, 1);
    EXPECT_TRUE(events_.empty()) << "nothing has shown that number 9 was not of the first pulse";
    add({0, 2, 14, "e"}, 2);
    add({0, 3, 15, "f"}, 3);
    EXPECT_EQ(of_source(0), (Texts{"de"}));
    for (std::uint32_t i = 0; i < 256; ++i) add({0, 4, 16 + i, "-"}, 4);
    EXPECT_EQ(of_source(0), (Texts{"de", "f", "abbc"})) << "nothing comes from before it any more";
    finish();
    EXPECT_EQ(of_source(0).back(), std::string(256, '-'));
    EXPECT_EQ(count(PacketCounter::placed), 262U);
}

TEST_F(Pulses, LieInOrderOfTheirNumbersOverTheEndOfTheCounter) {
    make(1);
    const std::uint32_t last = 0xffffffff;
    for (const Readout& one : {Readout{0, 1, 1, "d"},
                               {0, 1, last, "b"},
                               {0, 1, 0, "cc"},
                               {0, 2, 2, "e"},
                               {0, 1, last - 1, "a"},
                               {0, 3, 3, "f"}})
        add(one, 1);
    finish();
    EXPECT_EQ(of_source(0), (Texts{"e", "abccd", "f"}));
}

TEST_F(Pulses, OfWhichAPacketIsMissingAreNotComplete) {
    make(1);
    // Number 3, within the second pulse; 6, of which nobody knows which pulse it was of.
    for (const Readout& one : {Readout{0, 1, 1, "a"},
                               {0, 2, 2, "b"},
                               {0, 2, 4, "c"},
                               {0, 3, 5, "d"},
                               {0, 4, 7, "e"},
                               {0, 5, 8, "f"},
                               {0, 6, 9, "g"}})
        add(one, 1);
    finish();
    EXPECT_EQ(of_source(0), (Texts{"f", "a", "g", "!bc", "!d", "!e"}));
    EXPECT_EQ(count(PacketCounter::placed), 7U);
}

TEST_F(Pulses, HeartbeatsShowWhereOneEnds) {
    make(1);
    add({0, 1, 9, ""}, 1);
    add({0, 2, 10, "a"}, 1);
    add({0, 2, 11, "b"}, 1);
    EXPECT_TRUE(events_.empty());
    add({0, 3, 12, ""}, 1);
    EXPECT_EQ(of_source(0), (Texts{"ab"}));
    finish();
    EXPECT_EQ(count(PacketCounter::control), 2U);
}

TEST_F(Pulses, GoOnAfterAHeartbeatOfTheirOwn) {
    make(1);
    for (const Readout& one : {Readout{0, 1, 1, "x"},
                               {0, 2, 2, ""},
                               {0, 2, 3, "a"},
                               {0, 2, 5, ""},
                               {0, 2, 6, "c"},
                               {0, 2, 4, "b"},
                               {0, 2, 7, ""},
                               {0, 2, 8, ""}})
        add(one, 1);
    EXPECT_TRUE(events_.empty());
    add({0, 3, 9, "y"}, 1);
    EXPECT_EQ(of_source(0), (Texts{"abc"}));
    finish();
    EXPECT_EQ(of_source(0), (Texts{"abc", "x", "y"}));
    EXPECT_EQ(count(PacketCounter::control), 4U);
}

TEST_F(Pulses, DoNotEndWithAHeartbeatThatIsAhead) {
    make(1);
    for (const Readout& one : {Readout{0, 1, 1, "x"}, {0, 2, 4, ""}, {0, 2, 2, "a"}, {0, 3, 5, "y"}, {0, 3, 6, "z"}})
        add(one, 1);
    EXPECT_TRUE(events_.empty()) << "number 3 has not come";
    add({0, 2, 3, "b"}, 1);
    EXPECT_EQ(of_source(0), (Texts{"ab"}));
    finish();
    EXPECT_EQ(of_source(0), (Texts{"ab", "x", "yz"}));
}

TEST_F(Pulses, EndInSilenceBeforeTheirEventDoes) {
    make(2);
    add({0, 1, 1, "a"}, 10);
    add({1, 1, 1, "b"}, 20);
    assembler_->advance(509);
    EXPECT_TRUE(events_.empty());
    // However late that is noticed.
    add({1, 5, 2, "c"}, 9000);
    ASSERT_EQ(events_.size(), 1U);
    EXPECT_EQ(events_[0].cause, EventCause::complete);
    assembler_->advance(9500);
    assembler_->advance(20'000);
    EXPECT_EQ(of_source(1), (Texts{"b", "!c"}));
    add({0, 1, 2, "late"}, 20'001);
    finish();
    EXPECT_EQ(count(PacketCounter::placed), 3U);
}

TEST_F(Pulses, WithoutTheirEndWaitForTheWholeTimeOut) {
    make(1);
    add({0, 1, 1, "a"}, 0);
    add({0, 2, 2, "b"}, 1);
    add({0, 2, 4, "c"}, 2);
    assembler_->advance(999);
    EXPECT_EQ(of_source(0), Texts{"a"});
    add({0, 2, 3, "-"}, 1000);
    assembler_->advance(2000);
    EXPECT_EQ(of_source(0), (Texts{"a", "b-c"}));
    finish();
}

TEST_F(Pulses, OfAKnownNumberOfPacketsDoNotWait) {
    make(1, 3);
    for (const Readout& one : {Readout{0, 1, 12, "c"}, {0, 1, 10, "a"}, {0, 1, 11, "b"}}) add(one, 1);
    EXPECT_EQ(of_source(0), (Texts{"abc"}));
    add({0, 1, 11, "b"}, 2);
    for (const Readout& one :
         {Readout{0, 2, 13, "d"}, {0, 2, 14, "e"}, {0, 3, 16, "f"}, {0, 3, 17, "g"}, {0, 3, 18, "h"}})
        add(one, 3);
    EXPECT_EQ(of_source(0), (Texts{"abc", "fgh"})) << "that 15 was lost is the second pulse's business alone";
    finish();
    EXPECT_EQ(of_source(0), (Texts{"abc", "fgh", "!de"}));
    EXPECT_EQ(count(PacketCounter::duplicate), 1U);
}

TEST_F(Pulses, TakeNothingFromFarAway) {
    make(1);
    add({0, 1, 1, "a"}, 1);
    add({0, 1, 1'000'000, "b"}, 1);
    add({0, 1, 1, "a"}, 1);
    finish();
    EXPECT_EQ(count(PacketCounter::conflict), 1U);
    EXPECT_EQ(count(PacketCounter::duplicate), 1U);
    EXPECT_EQ(of_source(0), (Texts{"a"}));
}

TEST_F(Pulses, SenderMayCountAnew) {
    make(1);
    for (std::uint32_t i = 0; i < 4; ++i) add({0, 1 + i / 2, 100'000 + i, "a"}, 1);
    for (std::uint32_t i = 0; i < 6; ++i) add({0, 10 + i / 2, i, "b"}, 2);
    finish();
    EXPECT_EQ(of_source(0), (Texts{"bb", "aa", "aa", "bb", "bb"}));
}

/// Losses, repetitions and disorder, against what is known of what came.
TEST_F(Pulses, AreWhatCame) {
    std::uint64_t whole = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](std::uint32_t to) { return static_cast<std::uint32_t>(random() % to); };
        events_.clear();
        added_ = 0;
        make(2, 0, 1'000'000'000);
        std::vector<Readout> sent;
        std::array<std::uint32_t, 2> next{0xffffff00U, draw(1000)};
        for (std::uint32_t pulse = 1; pulse <= 60; ++pulse)
            for (std::uint32_t source = 0; source < 2; ++source)
                for (std::uint32_t left = 1 + draw(seed % 3 == 0 ? 2 : 25); left > 0; --left)
                    sent.push_back({source, pulse, next[source]++,
                                    draw(20) == 0 ? "" : std::string(1 + draw(40), static_cast<char>('a' + draw(26)))});
        std::vector<std::pair<std::size_t, Readout>> came;
        for (std::size_t i = 0; i < sent.size(); ++i) {
            if (draw(100) < seed % 5) continue;
            for (std::uint32_t copy = draw(10) == 0 ? 2 : 1; copy > 0; --copy)
                came.emplace_back(i + draw(1 + seed % 7 * 4), sent[i]);
        }
        std::ranges::stable_sort(came, {}, [](const auto& one) { return one.first; });
        std::map<std::uint32_t, std::array<std::map<std::uint32_t, std::string>, 2>> data;
        std::map<std::uint32_t, std::array<std::set<std::uint32_t>, 2>> heartbeats;
        std::array<std::set<std::uint32_t>, 2> numbers;  // counted from the middle, so that none wraps
        constexpr std::uint32_t middle = 1U << 31U;
        std::uint64_t placed = 0;
        for (const auto& [at, one] : came) {
            const std::uint32_t number = one.sequence + middle;
            numbers[one.source].insert(number);
            if (one.data.empty())
                heartbeats[one.pulse][one.source].insert(number);
            else if (data[one.pulse][one.source].emplace(number, one.data).second)
                ++placed;
            add(one, static_cast<core::TimeNs>(at));
        }
        finish();
        EXPECT_EQ(count(PacketCounter::placed), placed);
        ASSERT_EQ(events_.size(), data.size());
        for (const Seen& seen : events_) {
            bool complete = true;
            for (std::uint32_t source = 0; source < 2; ++source) {
                const auto& packets = data.at(seen.pulse)[source];
                std::string text;
                for (const auto& [number, part] : packets) text += part;
                EXPECT_EQ(seen.data[source], text) << "seed " << seed << " pulse " << seen.pulse;
                const auto& all = numbers[source];
                complete = complete && !packets.empty();
                if (packets.empty()) continue;
                std::set<std::uint32_t> mine = heartbeats[seen.pulse][source];
                for (const auto& [number, part] : packets) mine.insert(number);
                const std::uint32_t first = *mine.begin();
                const std::uint32_t last = *mine.rbegin();
                complete = complete && last - first + 1 == mine.size() &&
                           (first == *all.begin() || all.contains(first - 1)) &&
                           (last == *all.rbegin() || all.contains(last + 1));
            }
            EXPECT_EQ(seen.cause == EventCause::complete, complete) << "seed " << seed << " pulse " << seen.pulse;
            whole += complete ? 1 : 0;
        }
    }
    EXPECT_GT(whole, 500U);
}

}  // namespace
