#include "store/capture/reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>

#include "capture_bytes.hpp"
#include "core/error.hpp"
#include "memory_sources.hpp"

namespace weir::store {
namespace {

using test::Bytes;
using test::frame_of;
using test::join;
using test::MemoryStream;
using test::PcapOptions;

CaptureReader reader_of(Bytes& bytes) {
    return CaptureReader(std::make_unique<MemoryStream>(std::as_bytes(std::span(bytes))), "test.pcap");
}

Bytes bytes_of(const CaptureReader::Record& record) {
    Bytes bytes(record.bytes.size());
    std::memcpy(bytes.data(), record.bytes.data(), bytes.size());
    return bytes;
}

std::string error_of(Bytes bytes) {
    try {
        reader_of(bytes);
    } catch (const core::RunError& error) {
        return error.what();
    }
    return "no error";
}

class PcapKinds : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(PcapKinds, DeliversEveryRecordWithNanoseconds) {
    const auto [big_endian, nanoseconds] = GetParam();
    const PcapOptions options{.big_endian = big_endian, .nanoseconds = nanoseconds};
    const Bytes first = frame_of(60, 1);
    const Bytes second = frame_of(9000, 2);
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1700000000, 123456, first),
                       test::pcap_record(options, 1699999999, 7, second, 9001)});
    CaptureReader reader = reader_of(file);
    const core::TimeNs unit_ns = nanoseconds ? 1 : 1000;

    CaptureReader::Record record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(bytes_of(record), first);
    EXPECT_EQ(record.wire_bytes, 60U);
    EXPECT_EQ(record.time_ns, 1700000000 * core::ns_per_s + 123456 * unit_ns);
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(bytes_of(record), second);
    EXPECT_EQ(record.wire_bytes, 9001U);
    EXPECT_EQ(record.time_ns, 1699999999 * core::ns_per_s + 7 * unit_ns) << "delivered as stored, even backwards";
    EXPECT_FALSE(reader.next(record));
    EXPECT_FALSE(reader.next(record));
    EXPECT_FALSE(reader.cut_off());
    EXPECT_EQ(reader.cut_off_text(), "");
    EXPECT_EQ(reader.records(), 2U);
    EXPECT_EQ(reader.bytes(), 9060U);
}

INSTANTIATE_TEST_SUITE_P(Capture, PcapKinds, testing::Combine(testing::Bool(), testing::Bool()));

class PcapngKinds : public testing::TestWithParam<std::tuple<bool, unsigned>> {};

TEST_P(PcapngKinds, DeliversEveryRecordWithNanoseconds) {
    const auto [big_endian, resolution] = GetParam();
    const core::TimeNs unit_ns = resolution == 9 ? 1 : 1000;
    const std::uint64_t ticks = 1700000000ULL * static_cast<std::uint64_t>(core::ns_per_s / unit_ns) + 42;
    Bytes file =
        join({test::pcapng_header(big_endian, resolution), test::pcapng_record(big_endian, ticks, frame_of(61, 3)),
              test::pcapng_record(big_endian, ticks + 1, frame_of(1, 4), 2000)});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(bytes_of(record), frame_of(61, 3));
    EXPECT_EQ(record.time_ns, 1700000000 * core::ns_per_s + 42 * unit_ns);
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(bytes_of(record), frame_of(1, 4));
    EXPECT_EQ(record.wire_bytes, 2000U);
    EXPECT_FALSE(reader.next(record));
    EXPECT_FALSE(reader.cut_off());
    EXPECT_EQ(reader.records(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Capture, PcapngKinds, testing::Combine(testing::Bool(), testing::Values(6U, 9U)));

/// Cuts a file at every byte: an error at open inside the header, and afterwards every whole record, with a warning
/// exactly where the cut is not between records.
void expect_every_cut_handled(const Bytes& header, const std::vector<Bytes>& records) {
    Bytes whole = header;
    std::vector<std::size_t> ends{header.size()};
    for (const Bytes& record : records) {
        whole.insert(whole.end(), record.begin(), record.end());
        ends.push_back(whole.size());
    }
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
        SCOPED_TRACE(cut);
        Bytes file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
        if (cut < header.size()) {
            EXPECT_NE(error_of(file), "no error");
            continue;
        }
        CaptureReader reader = reader_of(file);
        CaptureReader::Record record;
        while (reader.next(record)) {
        }
        std::uint64_t whole_records = 0;
        while (whole_records + 1 < ends.size() && ends[whole_records + 1] <= cut) {
            ++whole_records;
        }
        EXPECT_EQ(reader.records(), whole_records);
        EXPECT_EQ(reader.cut_off(), ends[whole_records] != cut) << reader.cut_off_text();
    }
}

TEST(CaptureReader, CutAtEveryByteOfPcap) {
    const PcapOptions options;
    expect_every_cut_handled(test::pcap_header(options),
                             {test::pcap_record(options, 1, 1, frame_of(33, 1)), test::pcap_record(options, 1, 2, {}),
                              test::pcap_record(options, 1, 3, frame_of(70, 2))});
}

TEST(CaptureReader, CutAtEveryByteOfPcapng) {
    expect_every_cut_handled(test::pcapng_header(false, 9), {test::pcapng_record(false, 5, frame_of(33, 1)),
                                                             test::pcapng_record(false, 6, frame_of(70, 2))});
}

TEST(CaptureReader, GarbageAfterTheLastRecordIsACut) {
    const PcapOptions options;
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(60, 1)), Bytes{1, 2, 3}});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    EXPECT_TRUE(reader.next(record));
    EXPECT_FALSE(reader.next(record));
    EXPECT_TRUE(reader.cut_off());
    EXPECT_NE(reader.cut_off_text().find("test.pcap"), std::string::npos);
    EXPECT_NE(reader.cut_off_text().find("after record 1"), std::string::npos);
}

TEST(CaptureReader, AbsurdRecordLengthIsACut) {
    const PcapOptions options;
    test::Builder absurd(false);
    absurd.u32(1).u32(1).u32(0xfffffff0).u32(0xfffffff0);
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(60, 1)), absurd.bytes,
                       Bytes(100, 0xee)});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    EXPECT_TRUE(reader.next(record));
    EXPECT_FALSE(reader.next(record));
    EXPECT_TRUE(reader.cut_off());
    EXPECT_EQ(reader.records(), 1U);
}

TEST(CaptureReader, RecordBeyondTheSnapshotLengthIsShortenedAndReadingGoesOn) {
    const PcapOptions options{.snapshot_bytes = 100};
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(150, 1)),
                       test::pcap_record(options, 1, 2, frame_of(40, 2))});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record.bytes.size(), 100U);
    EXPECT_EQ(record.wire_bytes, 150U);
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(bytes_of(record), frame_of(40, 2));
    EXPECT_FALSE(reader.next(record));
    EXPECT_FALSE(reader.cut_off());
}

TEST(CaptureReader, WireLengthIsNeverBelowTheCapturedLength) {
    const PcapOptions options;
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(60, 1), 10)});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record.bytes.size(), 60U);
    EXPECT_EQ(record.wire_bytes, 60U);
}

TEST(CaptureReader, WildTimeStampsAreClamped) {
    const PcapOptions options;
    Bytes pcap =
        join({test::pcap_header(options), test::pcap_record(options, 0xffffffff, 0xffffffff, frame_of(60, 1))});
    Bytes pcapng = join({test::pcapng_header(false, 0), test::pcapng_record(false, ~0ULL, frame_of(60, 1)),
                         test::pcapng_record(false, ~0ULL >> 1, frame_of(60, 1))});
    for (Bytes* file : {&pcap, &pcapng}) {
        CaptureReader reader = reader_of(*file);
        CaptureReader::Record record;
        while (reader.next(record)) {
            EXPECT_GE(record.time_ns, 0);
            EXPECT_LT(record.time_ns, std::numeric_limits<core::TimeNs>::max());
        }
        EXPECT_GE(reader.records(), 1U);
    }
}

TEST(CaptureReader, RefusesWhatIsNoCapture) {
    EXPECT_NE(error_of(Bytes{'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd', '\n'}).find("not a capture"),
              std::string::npos);
    EXPECT_NE(error_of(Bytes(5000, 0)).find("not a capture"), std::string::npos);
    EXPECT_NE(error_of(Bytes{'h', 'e', 'l', 'l', 'o'}).find("test.pcap"), std::string::npos);
}

TEST(CaptureReader, RefusesOtherLinkTypes) {
    EXPECT_NE(error_of(test::pcap_header({.link = 105})).find("IEEE802_11"), std::string::npos);
    EXPECT_NE(error_of(test::pcap_header({.link = 105})).find("LINUX_SLL"), std::string::npos);
    EXPECT_NE(error_of(test::pcapng_header(false, 9, 105)).find("LINUX_SLL"), std::string::npos);
}

TEST(CaptureReader, NamesTheFileThatCannotBeOpened) {
    const std::string folder = std::filesystem::temp_directory_path();
    const std::string missing = folder + "/weir-no-such-capture.pcap";
    for (const std::string& path : {missing, folder}) {
        try {
            CaptureReader reader(path);
            FAIL() << path;
        } catch (const core::RunError& error) {
            EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
        }
    }
}

TEST(CaptureReader, RefusesAnEmptyFile) {
    const std::string path = testing::TempDir() + "/weir-empty.pcap";
    std::fclose(std::fopen(path.c_str(), "wb"));
    try {
        CaptureReader reader(path);
        FAIL();
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("empty"), std::string::npos) << error.what();
    }
    std::filesystem::remove(path);
}

TEST(CaptureReader, AReaderThatMovedReadsOn) {
    const PcapOptions options;
    Bytes file = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(60, 1)),
                       test::pcap_record(options, 1, 2, frame_of(61, 2))});
    Bytes other = join({test::pcap_header(options), test::pcap_record(options, 1, 1, frame_of(62, 3))});
    CaptureReader reader = reader_of(file);
    CaptureReader::Record record;
    ASSERT_TRUE(reader.next(record));
    CaptureReader moved = std::move(reader);
    ASSERT_TRUE(moved.next(record));
    EXPECT_EQ(bytes_of(record), frame_of(61, 2));
    EXPECT_EQ(moved.records(), 2U);
    moved = reader_of(other);
    ASSERT_TRUE(moved.next(record));
    EXPECT_EQ(bytes_of(record), frame_of(62, 3));
    EXPECT_EQ(moved.records(), 1U);
}

}  // namespace
}  // namespace weir::store
