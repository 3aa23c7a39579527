#include "store/capture/writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "capture_bytes.hpp"
#include "core/error.hpp"
#include "store/capture/reader.hpp"

namespace weir::store {
namespace {

std::string new_path(const char* name) {
    std::string path = testing::TempDir() + "/weir-" + std::to_string(::getpid()) + "-" + name;
    std::filesystem::remove(path);
    return path;
}

test::Bytes contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CaptureWriter, WritesTheBytesOfThePcapFormat) {
    const std::string path = new_path("writer.pcap");
    const test::Bytes first = test::frame_of(60, 1);
    const test::Bytes second = test::frame_of(9000, 2);
    CaptureWriter writer(path);
    writer.write(std::as_bytes(std::span(first)), 1700000000 * core::ns_per_s + 999999999);
    writer.write(std::as_bytes(std::span(second)), 5, 9500);
    writer.write({}, -1);
    writer.close();
    EXPECT_EQ(writer.records(), 3U);
    EXPECT_EQ(contents(path), test::join({test::pcap_header(), test::pcap_record({}, 1700000000, 999999999, first),
                                          test::pcap_record({}, 0, 5, second, 9500), test::pcap_record({}, 0, 0, {})}));
    std::filesystem::remove(path);
}

TEST(CaptureWriter, TheReaderReadsIt) {
    const std::string path = new_path("round-trip.pcap");
    {
        CaptureWriter writer(path);
        for (std::uint8_t i = 0; i < 100; ++i) {
            const test::Bytes frame = test::frame_of(i * 90U, i);
            writer.write(std::as_bytes(std::span(frame)), i);
        }
    }
    CaptureReader reader(path);
    CaptureReader::Record record;
    for (std::uint8_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(reader.next(record));
        const test::Bytes frame = test::frame_of(i * 90U, i);
        EXPECT_TRUE(std::ranges::equal(record.bytes, std::as_bytes(std::span(frame))));
        EXPECT_EQ(record.time_ns, i);
    }
    EXPECT_FALSE(reader.next(record));
    EXPECT_FALSE(reader.cut_off());
    std::filesystem::remove(path);
}

TEST(CaptureWriter, RefusesAnExistingFile) {
    const std::string path = new_path("existing.pcap");
    std::ofstream(path) << "precious";
    try {
        CaptureWriter writer(path);
        FAIL();
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("exists already"), std::string::npos) << error.what();
    }
    EXPECT_EQ(contents(path).size(), 8U);
    std::filesystem::remove(path);
}

TEST(CaptureWriter, NamesAFolderThatDoesNotExist) {
    try {
        CaptureWriter writer("/no/such/folder/x.pcap");
        FAIL();
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("/no/such/folder/x.pcap"), std::string::npos) << error.what();
    }
}

TEST(CaptureWriter, AFullDiskIsAnError) {
    // The writer creates its file, so its descriptor is turned into one that refuses every write.
    const std::string path = new_path("full.pcap");
    CaptureWriter writer(path);
    const std::string descriptor = "/proc/self/fd";
    int replaced = -1;
    for (const auto& entry : std::filesystem::directory_iterator(descriptor)) {
        std::error_code no_target;
        if (std::filesystem::read_symlink(entry.path(), no_target) == path) {
            replaced = std::stoi(entry.path().filename());
        }
    }
    ASSERT_GE(replaced, 0);
    const int full = ::open("/dev/full", O_WRONLY);
    ASSERT_GE(full, 0);
    ASSERT_EQ(::dup2(full, replaced), replaced);
    ::close(full);
    const test::Bytes frame(9000);
    EXPECT_THROW(
        {
            for (int i = 0; i < 200; ++i) {
                writer.write(std::as_bytes(std::span(frame)), i);
            }
            writer.close();
        },
        core::RunError);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir::store
