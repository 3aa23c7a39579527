// gzip and zstd in front of a capture: whole, in several members, cut at every byte, damaged.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "capture_bytes.hpp"
#include "core/error.hpp"
#include "memory_sources.hpp"
#include "store/capture/reader.hpp"

namespace weir::store {
namespace {

using test::Bytes;
using test::frame_of;
using test::join;
using test::MemoryStream;
using test::PcapOptions;

constexpr unsigned records = 40;

Bytes plain() {
    const PcapOptions options;
    Bytes file = test::pcap_header(options);
    for (unsigned i = 0; i < records; ++i)
        file = join({file, test::pcap_record(options, i, i, frame_of(100 + i, static_cast<std::uint8_t>(i)))});
    return file;
}

Bytes gzip(const Bytes& bytes) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    Bytes out(deflateBound(&stream, bytes.size()) + 64);
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

Bytes zstd(const Bytes& bytes) {
    Bytes out(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
    EXPECT_EQ(ZSTD_isError(size), 0U);
    out.resize(size);
    return out;
}

struct Outcome {
    std::uint64_t records = 0;
    bool cut_off = false;
    std::string text;
    std::string error;
};

Outcome read_compressed(const Bytes& bytes, bool intact = true) {
    Outcome out;
    try {
        CaptureReader reader(std::make_unique<MemoryStream>(std::as_bytes(std::span(bytes))), "x.bin");
        CaptureReader::Record record;
        while (reader.next(record)) {
            const Bytes expected = frame_of(record.bytes.size(), static_cast<std::uint8_t>(out.records));
            EXPECT_TRUE(!intact || std::ranges::equal(record.bytes, std::as_bytes(std::span(expected))));
            ++out.records;
        }
        out.cut_off = reader.cut_off();
        out.text = reader.cut_off_text();
    } catch (const core::RunError& error) {
        out.error = error.what();
    }
    return out;
}

using Compress = Bytes (*)(const Bytes&);
class Compressed : public testing::TestWithParam<Compress> {};

TEST_P(Compressed, ReadsWholeFilesAndSeveralInARow) {
    const Bytes file = plain();
    const Outcome whole = read_compressed(GetParam()(file));
    EXPECT_EQ(whole.records, records);
    EXPECT_FALSE(whole.cut_off) << whole.text << whole.error;
    // Cut anywhere, packed one by one.
    for (const std::size_t cut : {std::size_t{1}, std::size_t{24}, file.size() / 2, file.size() - 1}) {
        const auto at = file.begin() + static_cast<std::ptrdiff_t>(cut);
        const Outcome parts = read_compressed(
            join({GetParam()(Bytes(file.begin(), at)), GetParam()({}), GetParam()(Bytes(at, file.end()))}));
        EXPECT_EQ(parts.records, records) << parts.error;
        EXPECT_FALSE(parts.cut_off) << parts.text;
    }
}

TEST_P(Compressed, ACutAnywhereIsSaidAndWhatCameBeforeIsUsed) {
    // Several members: a zstd frame that is this small comes out as a whole or not at all.
    const Bytes whole = plain();
    Bytes file;
    for (std::size_t at = 0; at < whole.size(); at += 500)
        file = join(
            {file, GetParam()(Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                    whole.begin() + static_cast<std::ptrdiff_t>(std::min(at + 500, whole.size()))))});
    std::uint64_t before = 0;
    for (std::size_t cut = 1; cut < file.size(); ++cut) {
        const Outcome found = read_compressed(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut)));
        EXPECT_GE(found.records, before);
        before = found.records;
    }
    EXPECT_GT(before, records / 2);
    // Also where all records are there, and within the one member that there is.
    const Bytes one = GetParam()(whole);
    for (std::size_t cut = 1; cut < one.size(); ++cut) {
        const Outcome found = read_compressed(Bytes(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(cut)));
        EXPECT_TRUE(found.cut_off || !found.error.empty()) << cut;
    }
    const Outcome half = read_compressed(join({file, Bytes(file.begin(), file.begin() + 9)}));
    EXPECT_EQ(half.records, records);
    EXPECT_TRUE(half.cut_off);
    EXPECT_NE(half.text.find("cut off"), std::string::npos) << half.text;
}

TEST_P(Compressed, DamageIsSaid) {
    const Bytes file = GetParam()(plain());
    for (std::size_t at = 4; at < file.size(); at += 3) {
        Bytes damaged = file;
        damaged[at] ^= 0x55U;
        static_cast<void>(
            read_compressed(damaged, false));  // anything but a crash: not every byte is covered by a checksum
    }
    const Outcome tail = read_compressed(join({file, Bytes{'j', 'u', 'n', 'k'}}));
    EXPECT_EQ(tail.records, records);
    EXPECT_TRUE(tail.cut_off);
    EXPECT_NE(tail.text.find("damaged"), std::string::npos) << tail.text;
}

INSTANTIATE_TEST_SUITE_P(Capture, Compressed, testing::Values(&gzip, &zstd));

TEST(CompressedCapture, PaddingBehindGzipIsNoDamage) {
    const Outcome found = read_compressed(join({gzip(plain()), Bytes(1000, 0)}));
    EXPECT_EQ(found.records, records);
    EXPECT_FALSE(found.cut_off) << found.text;
}

TEST(CompressedCapture, ASkippableFrameMayComeFirst) {
    const Outcome found = read_compressed(join({Bytes{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstd(plain())}));
    EXPECT_EQ(found.records, records) << found.error;
}

TEST(CompressedCapture, OtherCompressionIsNamed) {
    const std::pair<const char*, Bytes> kinds[] = {{"xz", {0xfd, '7', 'z', 'X', 'Z', 0, 0, 4}},
                                                   {"bzip2", {'B', 'Z', 'h', '9', '1', 'A', 'Y', '&'}},
                                                   {"lz4", {4, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0}}};
    for (const auto& [name, bytes] : kinds) {
        const Outcome found = read_compressed(bytes);
        EXPECT_NE(found.error.find(name), std::string::npos) << found.error;
        EXPECT_NE(found.error.find("gzip or zstd"), std::string::npos) << found.error;
    }
}

TEST(CompressedCapture, WhatIsCompressedMustBeACapture) {
    EXPECT_NE(read_compressed(gzip(Bytes(100, 'x'))).error.find("not a capture"), std::string::npos);
    EXPECT_NE(read_compressed(zstd({})).error.find("x.bin"), std::string::npos);
}

}  // namespace
}  // namespace weir::store
