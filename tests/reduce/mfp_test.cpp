#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "reduce/made_message.hpp"
#include "reduce/mfp/mep_view.hpp"
#include "reduce/mfp/multi_event.hpp"

namespace {

using weir::reduce::MepFragment;
using weir::reduce::MepOrder;
using weir::reduce::MepSource;
using weir::reduce::MepView;
using weir::reduce::MepWriter;
using weir::reduce::mfp_layout;
using weir::reduce::mfp_layout_problem;
using weir::reduce::mfp_missing_type;
using weir::reduce::MfpLayout;
using weir::reduce::MfpProblem;
using weir::test::MadeMessage;
using Bytes = std::vector<std::byte>;

struct Fragment {
    std::uint8_t type = 0;
    Bytes bytes;
};
using Packet = std::vector<Fragment>;  // of one source: a fragment for each event

/// Written down from the layout's description, and by nothing that the reader uses.
class Encoder {
public:
    explicit Encoder(const MfpLayout& layout) : layout_(layout) {}

    Bytes encode(std::uint64_t first_event, const Packet& packet) {
        out_.assign(layout_.header_bytes, std::byte{0xee});
        for (const Fragment& fragment : packet)
            if (layout_.type_bytes > 0) out_.push_back(std::byte{fragment.type});
        fill(layout_.header_bytes, layout_.table_align);
        const std::size_t sizes = out_.size();
        if (layout_.size_bytes > 0) {
            out_.resize(sizes + packet.size() * layout_.size_bytes);
            for (std::size_t i = 0; i < packet.size(); ++i)
                number(sizes + i * layout_.size_bytes, layout_.size_bytes, packet[i].bytes.size() - layout_.size_adds);
            fill(sizes, layout_.table_align);
        }
        const std::size_t data = out_.size();
        for (const Fragment& fragment : packet) {
            const std::size_t at = out_.size();
            out_.insert(out_.end(), fragment.bytes.begin(), fragment.bytes.end());
            if (layout_.size_in_fragment.bytes > 0)
                number(at + layout_.size_in_fragment.offset, layout_.size_in_fragment.bytes,
                       fragment.bytes.size() - layout_.size_adds);
            fill(at, layout_.fragment_align);
        }
        number(layout_.first_event.offset, layout_.first_event.bytes, first_event);
        number(layout_.fragments.offset, layout_.fragments.bytes, packet.size());
        number(layout_.length.offset, layout_.length.bytes,
               layout_.length_is_of_message ? out_.size() : out_.size() - data);
        number(layout_.magic.offset, layout_.magic.bytes, layout_.magic_value);
        return out_;
    }

private:
    void number(std::size_t at, std::size_t bytes, std::uint64_t value) {
        for (std::size_t i = 0; i < bytes; ++i)
            out_[at + (layout_.big_endian ? bytes - 1 - i : i)] = static_cast<std::byte>(value >> 8 * i);
    }
    void fill(std::size_t from, std::size_t align) {
        while ((out_.size() - from) % align != 0) out_.push_back(std::byte{0xdd});
    }
    const MfpLayout& layout_;
    Bytes out_;
};

/// The packets that a message is cut into, of sizes by chance.
std::vector<std::pair<std::uint32_t, Bytes>> cut(const Bytes& message, std::mt19937& random) {
    std::vector<std::pair<std::uint32_t, Bytes>> pieces;
    for (std::size_t at = 0; at < message.size();) {
        const std::size_t bytes = std::min<std::size_t>(message.size() - at, 1 + random() % 700);
        pieces.emplace_back(static_cast<std::uint32_t>(at),
                            Bytes(message.begin() + static_cast<std::ptrdiff_t>(at),
                                  message.begin() + static_cast<std::ptrdiff_t>(at + bytes)));
        at += bytes;
    }
    return pieces;
}

Packet make_packet(std::size_t events, std::mt19937& random, std::size_t least = 0) {
    Packet packet(events);
    for (Fragment& fragment : packet) {
        fragment.type = static_cast<std::uint8_t>(random() % 90);
        fragment.bytes.resize(least + (random() % 5 == 0 ? 0 : random() % 300));
        for (std::byte& byte : fragment.bytes) byte = static_cast<std::byte>(random());
    }
    return packet;
}

MepWriter::Config config_for(const MfpLayout& layout, MepOrder order, std::size_t sources) {
    MepWriter::Config config;
    config.layout = layout;
    config.order = order;
    for (std::size_t i = 0; i < sources; ++i)
        config.sources.push_back({static_cast<std::uint16_t>(0x800 + i), static_cast<std::uint16_t>(i % 3)});
    config.fragments_max = 1000;
    return config;
}

Bytes all_of(MepWriter& writer, std::mt19937& random) {
    Bytes out;
    for (;;) {
        Bytes piece(64 + random() % 2000);
        const std::size_t bytes = writer.fill(piece);
        if (bytes == 0) return out;
        out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bytes));
    }
}

struct Case {
    const char* name;
    MfpLayout layout;
};

MfpLayout big_endian_layout() {
    MfpLayout layout;
    layout.big_endian = true;
    layout.header_bytes = 20;
    layout.magic = {0, 2};
    layout.magic_value = 0x40ce;
    layout.fragments = {2, 2};
    layout.length = {4, 4};
    layout.length_is_of_message = true;
    layout.first_event = {8, 8};
    layout.fragment_align = 8;
    layout.size_bytes = 4;
    return layout;
}

/// As NA62's L0 packets: a 24-bit number would need a mask; sizes in front of each fragment, headers counted.
MfpLayout inline_layout() {
    MfpLayout layout;
    layout.header_bytes = 8;
    layout.first_event = {0, 4};
    layout.length = {};
    layout.fragments = {6, 1};
    layout.type_bytes = layout.size_bytes = 0;
    layout.size_in_fragment = {0, 2};
    return layout;
}

class Layouts : public testing::TestWithParam<Case> {};

TEST_P(Layouts, EveryFragmentIsFoundAgainInBothOrders) {
    const MfpLayout& layout = GetParam().layout;
    ASSERT_EQ(mfp_layout_problem(layout), "");
    std::mt19937 random(7);
    for (int round = 0; round < 30; ++round) {
        const std::size_t sources = 1 + random() % 5;
        const std::size_t events = 1 + random() % 200;
        std::vector<Packet> packets;
        std::vector<MadeMessage> made(sources);
        std::vector<const weir::assemble::Message*> messages;
        std::vector<std::uint32_t> listed;
        for (std::uint32_t i = 0; i < sources; ++i) {
            packets.push_back(make_packet(events, random, layout.size_in_fragment.bytes));
            const Bytes message = Encoder(layout).encode(0x12345678, packets[i]);
            auto pieces = cut(message, random);
            std::ranges::shuffle(pieces, random);
            for (const auto& [at, bytes] : pieces) made[i].add(at, bytes);
            made[i].declare(static_cast<std::uint32_t>(message.size()));
            messages.push_back(&made[i].message());
            listed.push_back(i);
        }
        for (const MepOrder order : {MepOrder::sources, MepOrder::events}) {
            MepWriter writer(config_for(layout, order, sources));
            const auto result = writer.begin(messages, listed);
            ASSERT_EQ(result.problem, MfpProblem::none);
            EXPECT_EQ(result.events, events);
            EXPECT_EQ(result.missing, 0U);
            const Bytes packet = all_of(writer, random);
            ASSERT_EQ(packet.size(), result.bytes);
            std::string problem;
            const auto view = MepView::parse(packet, problem);
            ASSERT_TRUE(view.has_value()) << problem;
            EXPECT_EQ(view->order(), order);
            EXPECT_EQ(view->first_event(), 0x12345678U);
            ASSERT_EQ(view->events(), events);
            ASSERT_EQ(view->sources().size(), sources);
            for (std::uint32_t event = 0; event < events; ++event)
                for (std::size_t source = 0; source < sources; ++source) {
                    const MepFragment fragment = view->fragment(event, source);
                    const Fragment& sent = packets[source][event];
                    EXPECT_EQ(fragment.source.id, 0x800 + source);
                    EXPECT_EQ(fragment.source.version, source % 3);
                    if (layout.type_bytes > 0) {
                        EXPECT_EQ(fragment.type, sent.type);
                    }
                    // Where fragments say their own size, the encoder wrote it into them.
                    const std::size_t skip = layout.size_in_fragment.bytes;
                    ASSERT_EQ(fragment.bytes.size(), sent.bytes.size());
                    EXPECT_TRUE(std::ranges::equal(fragment.bytes.subspan(skip), std::span(sent.bytes).subspan(skip)));
                }
        }
    }
}

TEST_P(Layouts, FragmentsWithAGapAreMissingAndAllOthersWhole) {
    const MfpLayout& layout = GetParam().layout;
    std::mt19937 random(11);
    std::size_t lost = 0;
    for (int round = 0; round < 60; ++round) {
        const std::size_t events = 20 + random() % 100;
        const Packet packet = make_packet(events, random, layout.size_in_fragment.bytes);
        const Bytes message = Encoder(layout).encode(5, packet);
        std::vector<MadeMessage> made(2);
        Bytes seen(message.size());
        for (const auto& [at, bytes] : cut(message, random)) {
            made[0].add(at, bytes);
            // Head and tables arrive: what lies where is known.
            if (at >= 700 && random() % 4 == 0) continue;
            made[1].add(at, bytes);
            std::fill_n(seen.begin() + at, bytes.size(), std::byte{1});
        }
        for (MadeMessage& one : made) one.declare(static_cast<std::uint32_t>(message.size()));
        const std::array messages{&made[0].message(), &made[1].message()};
        MepWriter writer(config_for(layout, MepOrder::sources, 2));
        const auto result = writer.begin(messages, std::array{0U, 1U});
        ASSERT_EQ(result.problem, MfpProblem::none);
        std::string problem;
        const Bytes bytes = all_of(writer, random);
        const auto view = MepView::parse(bytes, problem);
        ASSERT_TRUE(view.has_value()) << problem;
        std::uint64_t missing = 0;
        for (std::uint32_t event = 0; event < events; ++event) {
            const MepFragment whole = view->fragment(event, 0);
            const MepFragment found = view->fragment(event, 1);
            if (found.type == mfp_missing_type) {
                EXPECT_TRUE(found.bytes.empty());
                ++missing;
            } else {
                EXPECT_EQ(found.type, whole.type);
                EXPECT_TRUE(std::ranges::equal(found.bytes, whole.bytes));
            }
        }
        EXPECT_EQ(missing, result.missing);
        lost += missing;
        if (std::ranges::find(seen, std::byte{0}) == seen.end()) {
            EXPECT_EQ(missing, 0U);
        }
    }
    EXPECT_GT(lost, 100U);
}

INSTANTIATE_TEST_SUITE_P(Mfp, Layouts,
                         testing::Values(Case{"lhcb_2019", *mfp_layout("lhcb-2019")},
                                         Case{"big_endian_aligned", big_endian_layout()},
                                         Case{"sizes_in_fragments", inline_layout()}),
                         [](const auto& info) { return info.param.name; });

/// One source's packet, whole, with something done to its bytes.
MfpProblem problem_of(const MfpLayout& layout, Bytes message, std::uint32_t total) {
    MadeMessage made;
    made.add(0, message);
    if (total > 0) made.declare(total);
    MepWriter writer(config_for(layout, MepOrder::sources, 1));
    const std::array messages{&made.message()};
    return writer.begin(messages, std::array{0U}).problem;
}

TEST(Mfp, WhatIsWrongWithAPacketHasAName) {
    std::mt19937 random(3);
    const MfpLayout layout = big_endian_layout();
    const Bytes good = Encoder(layout).encode(1, make_packet(10, random));
    const auto size = static_cast<std::uint32_t>(good.size());
    EXPECT_EQ(problem_of(layout, good, size), MfpProblem::none);
    EXPECT_EQ(problem_of(layout, good, 0), MfpProblem::none) << "a message whose size nobody said";
    Bytes bad = good;
    bad[0] = std::byte{0};
    EXPECT_EQ(problem_of(layout, bad, size), MfpProblem::magic);
    bad = good;
    bad[2] = std::byte{0xff};
    EXPECT_EQ(problem_of(layout, bad, size), MfpProblem::too_many);
    bad[2] = bad[3] = std::byte{0};
    EXPECT_EQ(problem_of(layout, bad, size), MfpProblem::too_many);
    bad = good;
    bad[7] = bad[7] ^ std::byte{8};
    EXPECT_EQ(problem_of(layout, bad, size), MfpProblem::length);
    bad = good;
    bad.resize(bad.size() + 8);
    EXPECT_EQ(problem_of(layout, bad, size + 8), MfpProblem::length);
    bad = good;
    bad.resize(size - 8);
    EXPECT_EQ(problem_of(layout, bad, size - 8), MfpProblem::truncated);
    bad.resize(10);
    EXPECT_EQ(problem_of(layout, bad, 10), MfpProblem::truncated);
    EXPECT_EQ(problem_of(layout, bad, size), MfpProblem::head_missing);
    for (const std::size_t events : {std::size_t{1000}, std::size_t{1001}}) {  // there is memory for 1000
        const Bytes many = Encoder(layout).encode(1, make_packet(events, random));
        EXPECT_EQ(problem_of(layout, many, static_cast<std::uint32_t>(many.size())),
                  events > 1000 ? MfpProblem::too_many : MfpProblem::none);
    }
    Packet large = make_packet(2, random);
    large[1].bytes.resize(70000);
    const Bytes message = Encoder(layout).encode(1, large);
    EXPECT_EQ(problem_of(layout, message, static_cast<std::uint32_t>(message.size())), MfpProblem::too_long);
}

TEST(Mfp, PacketsOfOtherEventsAreNotPutTogether) {
    std::mt19937 random(3);
    const MfpLayout layout;
    for (const bool other_number : {true, false}) {
        std::array<MadeMessage, 2> made;
        for (std::size_t i = 0; i < 2; ++i) {
            const Bytes message =
                Encoder(layout).encode(other_number ? i : 0, make_packet(other_number ? 5 : 5 + i, random));
            made[i].add(0, message);
            made[i].declare(static_cast<std::uint32_t>(message.size()));
        }
        MepWriter writer(config_for(layout, MepOrder::sources, 2));
        const std::array messages{&made[0].message(), &made[1].message()};
        EXPECT_EQ(writer.begin(messages, std::array{0U, 1U}).problem, MfpProblem::mismatch);
        Bytes out(64);
        EXPECT_EQ(writer.fill(out), 0U);
    }
}

TEST(Mfp, ASourceOfWhichNothingOrNoHeadCameHasMissingFragmentsOnly) {
    std::mt19937 random(3);
    const MfpLayout layout;
    const Bytes message = Encoder(layout).encode(9, make_packet(50, random));
    MadeMessage whole;
    whole.add(0, message);
    whole.declare(static_cast<std::uint32_t>(message.size()));
    MadeMessage headless;
    headless.add(40, Bytes(message.begin() + 40, message.end()));
    headless.declare(static_cast<std::uint32_t>(message.size()));
    for (const MepOrder order : {MepOrder::sources, MepOrder::events}) {
        MepWriter writer(config_for(layout, order, 3));
        const std::array messages{&headless.message(), &whole.message(),
                                  static_cast<const weir::assemble::Message*>(nullptr)};
        const auto result = writer.begin(messages, std::array{0U, 1U, 2U});
        ASSERT_EQ(result.problem, MfpProblem::none);
        EXPECT_EQ(result.missing, 100U);
        const Bytes packet = all_of(writer, random);
        std::string problem;
        const auto view = MepView::parse(packet, problem);
        ASSERT_TRUE(view.has_value()) << problem;
        for (std::uint32_t event = 0; event < 50; ++event) {
            EXPECT_EQ(view->fragment(event, 0).type, mfp_missing_type);
            EXPECT_NE(view->fragment(event, 1).type, mfp_missing_type);
            EXPECT_EQ(view->fragment(event, 2).type, mfp_missing_type);
        }
    }
    MepWriter writer(config_for(layout, MepOrder::sources, 1));
    const std::array messages{&headless.message()};
    EXPECT_EQ(writer.begin(messages, std::array{0U}).problem, MfpProblem::head_missing);
}

TEST(Mfp, AViewRefusesPacketsThatAreCutAndSurvivesDamage) {
    std::mt19937 random(5);
    for (const MepOrder order : {MepOrder::sources, MepOrder::events}) {
        MadeMessage made;
        const Bytes message = Encoder(MfpLayout{}).encode(9, make_packet(8, random));
        made.add(0, message);
        made.declare(static_cast<std::uint32_t>(message.size()));
        MepWriter writer(config_for(MfpLayout{}, order, 1));
        const std::array messages{&made.message()};
        ASSERT_EQ(writer.begin(messages, std::array{0U}).problem, MfpProblem::none);
        const Bytes packet = all_of(writer, random);
        std::string problem;
        for (std::size_t size = 0; size < packet.size(); ++size) {
            const Bytes cut_off(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_FALSE(MepView::parse(cut_off, problem).has_value()) << size;
            EXPECT_FALSE(problem.empty());
        }
        // A size that does not agree with the others: of the first block; of all fragments.
        Bytes wrong = packet;
        wrong[order == MepOrder::sources ? 40 : 24] ^= std::byte{1};
        EXPECT_FALSE(MepView::parse(wrong, problem).has_value());
        if (order == MepOrder::events) {
            wrong = packet;
            wrong[56] ^= std::byte{1};  // where the second event begins
            EXPECT_FALSE(MepView::parse(wrong, problem).has_value());
        }
        for (std::size_t at = 0; at < packet.size(); ++at) {
            Bytes damaged = packet;
            damaged[at] ^= std::byte{0xff};
            const auto view = MepView::parse(damaged, problem);
            if (!view.has_value()) continue;
            for (std::uint32_t event = 0; event < view->events(); ++event)
                for (std::size_t source = 0; source < view->sources().size(); ++source)
                    EXPECT_LE(view->fragment(event, source).bytes.size(), packet.size());
        }
    }
}

/// The last bytes of one block are the first ones of the next: each by itself is whole.
TEST(Mfp, AViewRefusesBlocksThatLieInEachOther) {
    std::vector<std::byte> packet;
    const auto put = [&packet](const auto value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        packet.insert(packet.end(), bytes.begin(), bytes.end());
    };
    constexpr std::uint32_t shared = 0x04030201;
    constexpr std::uint32_t block_bytes = 16 + 4 + 4 + 4;
    const auto put_block = [&](std::uint32_t data) {
        for (const std::uint32_t word : {shared, 0U, 1U, 4U, 5U, 4U, data}) put(word);  // of one fragment, of 4 bytes
    };
    const auto packet_with = [&](bool overlapping) {
        const std::uint32_t second = overlapping ? block_bytes - 4 : block_bytes;
        packet.clear();
        put(std::uint16_t{2});
        put(std::uint16_t{1});
        put(std::uint32_t{0});
        put(std::uint64_t{second + block_bytes});
        for (const std::uint32_t word : {0U, 0U, 0U, second}) put(word);  // ids, versions, offsets
        put_block(shared);
        if (overlapping) packet.resize(packet.size() - 4);
        put_block(7);
        std::string problem;
        return MepView::parse(packet, problem).has_value();
    };
    EXPECT_TRUE(packet_with(false));
    EXPECT_FALSE(packet_with(true));
}

TEST(Mfp, ListsOfAllSourcesShareTheirRoom) {
    MepWriter::Config config;
    config.fragments_max = 16;
    config.refs_max = 1U << 20U;
    for (std::uint16_t id = 0; id < 500; ++id) config.sources.push_back({id, 0});
    // A sanitizer's malloc says 0.
    const auto taken = [] {
        const auto heap = mallinfo2();
        return heap.hblkhd + heap.uordblks;
    };
    const std::size_t before = taken();
    const MepWriter writer(config);
    EXPECT_LT(taken() - before, std::size_t{32} << 20U) << "8 MiB of references, once for all sources and not for each";
}

TEST(Mfp, LayoutsThatCannotBeAreRefused) {
    MfpLayout layout;
    layout.first_event.bytes = 3;
    EXPECT_NE(mfp_layout_problem(layout).find("first_event"), std::string::npos);
    layout = {};
    layout.length.offset = 13;
    EXPECT_NE(mfp_layout_problem(layout).find("beyond"), std::string::npos);
    layout = {};
    layout.fragment_align = 3;
    EXPECT_NE(mfp_layout_problem(layout).find("power of 2"), std::string::npos);
    layout = {};
    layout.size_in_fragment = {0, 2};
    EXPECT_NE(mfp_layout_problem(layout).find("one of them"), std::string::npos);
    EXPECT_FALSE(mfp_layout("lhcb-2031").has_value());
}

/// The banks of real events as fragments: what an event builder would have been sent, and what must come out again.
TEST(Mfp, BanksOfRealEventsComeThroughABlock) {
    const char* shared = std::getenv("WEIR_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "WEIR_SHARED does not say where the real events are";
    const auto path =
        std::filesystem::path(shared) / "data/lhcb/MiniBrunel_2018_MinBias_FTv4_DIGI_retinacluster_v1.mdf";
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    std::vector<char> text(std::istreambuf_iterator<char>(file), {});
    const auto u16 = [&](std::size_t at) {
        std::uint16_t value = 0;
        std::memcpy(&value, text.data() + at, 2);
        return value;
    };
    std::map<std::pair<int, int>, Packet> sources;  // by type and source id
    std::size_t events = 0;
    std::size_t banks = 0;
    for (std::size_t at = 0; at < text.size(); ++events) {
        std::uint32_t record = 0;
        std::memcpy(&record, text.data() + at, 4);
        for (std::size_t bank = at + 48; bank < at + record; ++banks) {
            ASSERT_EQ(u16(bank), 0xcbcb);
            const std::size_t length = u16(bank + 2);
            const auto type = static_cast<std::uint8_t>(text[bank + 4]);
            Packet& packet = sources[{type, u16(bank + 6)}];
            packet.resize(events + 1);
            const auto* first = reinterpret_cast<const std::byte*>(text.data() + bank + 8);
            packet[events] = {type, Bytes(first, first + length - 8)};
            bank += (length + 3) / 4 * 4;
        }
        at += record;
    }
    EXPECT_EQ(events, 10U);
    EXPECT_EQ(banks, 12364U);
    std::mt19937 random(1);
    std::vector<MadeMessage> made(sources.size());
    std::vector<const weir::assemble::Message*> messages;
    std::vector<std::uint32_t> listed;
    std::vector<const Packet*> sent;
    for (auto& [name, packet] : sources) {
        packet.resize(events);
        const Bytes message = Encoder(MfpLayout{}).encode(1, packet);
        for (const auto& [at, bytes] : cut(message, random)) made[listed.size()].add(at, bytes);
        made[listed.size()].declare(static_cast<std::uint32_t>(message.size()));
        messages.push_back(&made[listed.size()].message());
        listed.push_back(static_cast<std::uint32_t>(listed.size()));
        sent.push_back(&packet);
    }
    MepWriter writer(config_for(MfpLayout{}, MepOrder::events, sources.size()));
    ASSERT_EQ(writer.begin(messages, listed).problem, MfpProblem::none);
    const Bytes packet = all_of(writer, random);
    std::string problem;
    const auto view = MepView::parse(packet, problem);
    ASSERT_TRUE(view.has_value()) << problem;
    for (std::uint32_t event = 0; event < events; ++event)
        for (std::size_t source = 0; source < sent.size(); ++source) {
            const MepFragment fragment = view->fragment(event, source);
            EXPECT_EQ(fragment.type, (*sent[source])[event].type);
            EXPECT_TRUE(std::ranges::equal(fragment.bytes, (*sent[source])[event].bytes));
        }
}

}  // namespace
