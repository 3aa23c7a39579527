// The reader against libpcap: whole files, cut at every byte, with every byte damaged, and at random.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "capture_bytes.hpp"
#include "capture_oracle.hpp"
#include "memory_sources.hpp"
#include "source_root.hpp"

namespace weir::store {
namespace {

using test::block;
using test::Bytes;
using test::disagreement;
using test::enhanced;
using test::frame_of;
using test::interface;
using test::join;
using test::MemoryStream;
using test::PcapOptions;

std::span<const std::byte> span_of(const Bytes& bytes) {
    return std::as_bytes(std::span(bytes));
}

Bytes pcap_file(const PcapOptions& options) {
    return join({test::pcap_header(options), test::pcap_record(options, 1700000000, 123456, frame_of(60, 1)),
                 test::pcap_record(options, 1700000001, 999999, {}),
                 test::pcap_record(options, 3000000000, 7, frame_of(33, 2), 90)});
}

/// Everything that a pcapng file may hold: three interfaces of different resolutions, all kinds of packet blocks,
/// blocks that are skipped, and a second section.
Bytes pcapng_file(bool big) {
    test::Builder section(big);
    section.u32(0x1a2b3c4d).u16(1).u16(0).number(~0ULL, 8);
    test::Builder offset(big);
    offset.number(static_cast<std::uint64_t>(-3600), 8);
    test::Builder simple(big);
    simple.u32(50).append(frame_of(50, 4));
    test::Builder old(big);
    old.u16(1).u16(3).u32(0x60000).u32(77).u32(21).u32(21).append(frame_of(21, 5));
    const std::uint64_t us = 1700000000ULL * 1000000 + 5;
    return join({block(big, 0x0a0d0d0a, section.bytes), block(big, 4, Bytes(20, 1)), interface(big, {}),
                 interface(big, {{9, {9}}, {14, offset.bytes}, {2, {'e', 't', 'h', '1', 'x'}}}),
                 interface(big, {{9, {0x80 + 20}}}), enhanced(big, 0, us, frame_of(61, 1), {}),
                 block(big, 5, Bytes(24, 7)), enhanced(big, 1, us * 1000 + 1, frame_of(40, 2), Bytes(12, 0)),
                 enhanced(big, 2, 1700000000ULL << 20U | 12345, frame_of(1, 3), {}), block(big, 3, simple.bytes),
                 block(big, 2, old.bytes), block(big, 0x80000bad, Bytes(3, 9)), block(big, 0x0a0d0d0a, section.bytes),
                 interface(big, {{9, {3}}}), enhanced(big, 0, 1700000000ULL * 1000 + 9, frame_of(17, 6), {})});
}

std::vector<Bytes> files() {
    std::vector<Bytes> all;
    for (const bool big : {false, true}) {
        all.push_back(pcap_file({.big_endian = big, .nanoseconds = false}));
        all.push_back(pcap_file({.big_endian = big, .nanoseconds = true, .snapshot_bytes = 40}));
        all.push_back(pcapng_file(big));
    }
    return all;
}

TEST(CaptureOracle, AllBlocksOfPcapngAreRead) {
    for (const bool big : {false, true}) {
        const Bytes file = pcapng_file(big);
        EXPECT_EQ(disagreement(span_of(file)), "");
        CaptureReader reader(std::make_unique<MemoryStream>(span_of(file)), "test");
        CaptureReader::Record record;
        std::vector<core::TimeNs> times;
        while (reader.next(record)) times.push_back(record.time_ns);
        EXPECT_EQ(reader.records(), 6U);
        EXPECT_FALSE(reader.cut_off()) << reader.cut_off_text();
        EXPECT_EQ(times[0], 1700000000000005000);
        EXPECT_EQ(times[1], 1700000000000005001 - 3600 * core::ns_per_s);
        EXPECT_EQ(times[3], 0) << "a Simple Packet Block has no time";
        EXPECT_EQ(times[5], 1700000000009000000);
    }
}

/// libpcap opens such a file, and does not look at the second section.
TEST(CaptureOracle, ASectionAheadOfTheInterfacesCountsForTheReaderAlone) {
    test::Builder section(false);
    section.u32(0x1a2b3c4d).u16(1).u16(0).number(~0ULL, 8);
    test::Builder damaged(false);
    damaged.u32(0x1ad1c44d).u16(1).u16(0).number(~0ULL, 8);
    const Bytes file = join({block(false, 0x0a0d0d0a, section.bytes), block(false, 0x0a0d0d0a, damaged.bytes),
                             interface(false, {}), enhanced(false, 0, 1, frame_of(40, 2), {})});
    EXPECT_EQ(disagreement(span_of(file)), "");
    EXPECT_THROW(CaptureReader(std::make_unique<MemoryStream>(span_of(file)), "test"), core::RunError);
}

/// Kinds that get an Ethernet header, and a length that makes zero with the captured one.
TEST(CaptureOracle, RecordsThatAreAlmostZeros) {
    constexpr std::uint32_t raw_ip = 101;
    for (const PcapOptions& options : {PcapOptions{.link = raw_ip}, PcapOptions{}}) {
        const Bytes frame = test::pcap_record(options, 0, 1, frame_of(60, 1));
        EXPECT_EQ(disagreement(span_of(join({test::pcap_header(options), Bytes(16, 0), frame}))), "");
        const Bytes odd = test::pcap_record(options, 0, 0, frame_of(60, 1), -60U);
        EXPECT_EQ(disagreement(span_of(join({test::pcap_header(options), odd}))), "");
    }
}

TEST(CaptureOracle, TheCapturesOfTheseTests) {
    unsigned compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(weir::test::source_root() / "tests/captures")) {
        if (entry.path().extension() != ".pcap") continue;
        std::ifstream in(entry.path(), std::ios::binary);
        const Bytes file{std::istreambuf_iterator<char>(in), {}};
        EXPECT_EQ(disagreement(span_of(file)), "") << entry.path();
        ++compared;
    }
    EXPECT_GE(compared, 8U);
}

TEST(CaptureOracle, FilesCutAtEveryByte) {
    for (const Bytes& whole : files())
        for (std::size_t cut = 1; cut <= whole.size(); ++cut) {
            const Bytes file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
            ASSERT_EQ(disagreement(span_of(file)), "") << "cut to " << cut;
        }
}

TEST(CaptureOracle, FilesWithEachByteDamaged) {
    for (const Bytes& whole : files())
        for (std::size_t at = 0; at < whole.size(); ++at)
            for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
                Bytes file = whole;
                file[at] = static_cast<std::uint8_t>(file[at] ^ flip);
                ASSERT_EQ(disagreement(span_of(file)), "") << "byte " << at << " flipped by " << flip;
            }
}

TEST(CaptureOracle, FilesWithRandomDamage) {
    const char* given = std::getenv("WEIR_TEST_SEED");
    const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<Bytes> all = files();
    for (unsigned round = 0; round < 3000; ++round) {
        Bytes file = all[random() % all.size()];
        for (unsigned n = random() % 6; n > 0; --n) file[random() % file.size()] = static_cast<std::uint8_t>(random());
        if (random() % 3 == 0) file.resize(1 + random() % file.size());
        if (random() % 5 == 0) file.insert(file.end(), 100, static_cast<std::uint8_t>(random()));
        ASSERT_EQ(disagreement(span_of(file)), "") << "round " << round;
    }
}

TEST(CaptureOracle, RareKindsOfPcapGoThroughTheLibrary) {
    for (const std::uint32_t magic : {0xa1b2cd34U, 0xa1b2c3d4U}) {
        // The patched kind has longer record headers; the version before 2.4 may have lengths the other way round.
        test::Builder file(false);
        file.u32(magic).u16(2).u16(magic == 0xa1b2c3d4U ? 3 : 4).u32(0).u32(0).u32(65535).u32(1);
        for (unsigned i = 0; i < 3; ++i) {
            file.u32(100 + i).u32(7).u32(60).u32(64);
            if (magic == 0xa1b2cd34U) file.u32(1).u16(8).number(0, 2);
            file.append(frame_of(60, static_cast<std::uint8_t>(i)));
        }
        EXPECT_EQ(disagreement(span_of(file.bytes)), "");
        CaptureReader reader(std::make_unique<MemoryStream>(span_of(file.bytes)), "test");
        CaptureReader moved = std::move(reader);
        CaptureReader::Record record;
        while (moved.next(record)) {
        }
        EXPECT_EQ(moved.records(), 3U);
    }
}

TEST(CaptureOracle, RecordsOverTheBordersOfBlocks) {
    std::mt19937 random(7);
    for (const bool pcapng : {false, true}) {
        const PcapOptions options;
        Bytes file = pcapng ? test::pcapng_header(false, 9) : test::pcap_header(options);
        while (file.size() < 5 * CaptureInput::read_bytes) {
            const std::size_t size = random() % 4 == 0 ? random() % 262000 : random() % 9000;
            const Bytes frame = frame_of(size, static_cast<std::uint8_t>(random()));
            const Bytes record =
                pcapng ? test::pcapng_record(false, file.size(), frame) : test::pcap_record(options, 1, 1, frame);
            file.insert(file.end(), record.begin(), record.end());
        }
        EXPECT_EQ(disagreement(span_of(file)), "");
    }
}

/// Lends few blocks, and overwrites what nothing refers to any more.
class Lender final : public BlockLender {
public:
    struct Lent : CaptureBlock {
        Bytes bytes;
        unsigned references = 0;
    };
    explicit Lender(unsigned blocks) : blocks_(blocks) {
        for (Lent& block : blocks_) {
            block.bytes.resize(CaptureInput::memory_bytes);
            block.memory = reinterpret_cast<std::byte*>(block.bytes.data());
        }
    }
    CaptureBlock* take() noexcept override {
        for (Lent& block : blocks_)
            if (block.references == 0) {
                block.references = 1;
                return &block;
            }
        ++refused;
        return nullptr;
    }
    void leave(CaptureBlock& block) noexcept override { let_go(block); }
    void hold(CaptureBlock& block) { ++static_cast<Lent&>(block).references; }
    void let_go(CaptureBlock& lent) noexcept {
        auto& block = static_cast<Lent&>(lent);
        if (--block.references == 0) std::ranges::fill(block.bytes, std::uint8_t{0xee});
    }
    [[nodiscard]] bool all_back() const {
        return std::ranges::all_of(blocks_, [](const Lent& block) { return block.references == 0; });
    }
    unsigned refused = 0;

private:
    std::vector<Lent> blocks_;
};

TEST(CaptureBlocks, RecordsInLentBlocksStayWhileTheyAreHeld) {
    const PcapOptions options;
    Bytes file = test::pcap_header(options);
    for (unsigned i = 0; i < 1200; ++i) {
        const Bytes record = test::pcap_record(options, i, 0, frame_of(8000, static_cast<std::uint8_t>(i)));
        file.insert(file.end(), record.begin(), record.end());
    }
    Lender lender(4);
    unsigned lent = 0;
    {
        CaptureReader reader(std::make_unique<MemoryStream>(span_of(file)), "test", &lender);
        std::vector<std::pair<unsigned, CaptureReader::Record>> held;
        const auto let_go = [&](std::size_t which) {
            const auto& [number, record] = held[which];
            const Bytes expected = frame_of(8000, static_cast<std::uint8_t>(number));
            ASSERT_TRUE(std::ranges::equal(record.bytes, std::as_bytes(std::span(expected)))) << number;
            lender.let_go(*record.block);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        };
        std::mt19937 random(3);
        CaptureReader::Record record;
        for (unsigned i = 0; reader.next(record); ++i) {
            const Bytes expected = frame_of(8000, static_cast<std::uint8_t>(i));
            ASSERT_TRUE(std::ranges::equal(record.bytes, std::as_bytes(std::span(expected)))) << i;
            if (record.block == nullptr) continue;
            ++lent;
            lender.hold(*record.block);
            held.emplace_back(i, record);
            // One of the first is kept to the end: it alone keeps a block.
            if (held.size() > 150) let_go(1 + random() % (held.size() - 1));
        }
        EXPECT_EQ(reader.records(), 1200U);
        while (!held.empty()) let_go(0);
    }
    EXPECT_GT(lent, 400U);
    EXPECT_GT(lender.refused, 0U) << "the case without a free block did not come up";
    EXPECT_TRUE(lender.all_back());
}

}  // namespace
}  // namespace weir::store
