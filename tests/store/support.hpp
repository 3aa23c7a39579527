// What the event-file tests share: a temporary directory, random events with every kind of source, and a writer of
// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/block_writer.hpp"
#include "store/run_reader.hpp"
#include "store/run_writer.hpp"
#include "temporary_directory.hpp"

namespace weir::store::test {

using weir::test::TemporaryDirectory;

/// For tests that do a lot with little: a file system in memory, if there is one.
std::filesystem::path memory_folder();

struct TestSource {
    std::uint32_t id = 0;
    SourceState state = SourceState::complete;
    std::uint32_t declared = 0;
    std::vector<assemble::ByteRange> missing;
    std::vector<std::byte> received;
    std::vector<std::byte> meta;
    std::vector<std::byte> reduced{};  ///< its part of the payload where the event's content is not `received`
};

struct TestEvent {
    std::uint64_t id = 0;
    std::uint32_t epoch = 0;
    Cause cause = Cause::complete;
    std::vector<TestSource> sources;
    Content content = Content::received;
    EventResult result{};
    [[nodiscard]] std::vector<std::byte> payload() const;
    [[nodiscard]] std::size_t received_bytes() const;
};

/// An event of `sources` sources with messages of up to `bytes_max` bytes; some incomplete in every possible way.
TestEvent random_event(std::mt19937_64& random, std::uint64_t id, std::uint32_t sources, std::uint32_t bytes_max);
/// The same with a payload of another content and with what reducers find; some as received all the same.
TestEvent random_reduced_event(std::mt19937_64& random, std::uint64_t id, std::uint32_t sources,
                               std::uint32_t bytes_max);
/// A complete event whose source `s` sends the given 16-bit pixels.
TestEvent image_event(std::uint64_t id, const std::vector<std::vector<std::uint16_t>>& pixels);

/// Formats events into buffers of `buffer_bytes` as a worker does, and hands them to the run writer.
class Pump {
public:
    explicit Pump(RunWriter& run, std::size_t buffer_bytes = BlockWriter::buffer_bytes_min);
    void put(const TestEvent& event, bool compress = false);
    /// The event is begun, its description and as much payload as fits are written, and it is taken back.
    void put_and_take_back(const TestEvent& event);
    void flush();
    /// Buffers are filled up to a multiple of so many bytes before they are handed over.
    void pad_buffers(std::size_t bytes) { pad_bytes_ = bytes; }
    BlockWriter& writer() { return writer_; }
    /// Whether an event's result could be written into its first block.
    [[nodiscard]] const std::map<std::pair<std::uint32_t, std::uint64_t>, bool>& patched() const { return patched_; }

private:
    void fresh();
    void put_description(const TestEvent& event);
    void put_payload(const TestEvent& event, bool compress);
    RunWriter& run_;
    std::vector<std::byte> memory_;
    std::span<std::byte> buffer_;
    BlockWriter writer_;
    std::size_t pad_bytes_ = 0;
    std::map<std::pair<std::uint32_t, std::uint64_t>, bool> patched_;
};

/// A closed run with these events, at `path`. The ledger says so many written.
void write_run(const std::filesystem::path& path, const std::vector<TestEvent>& events, bool compress = false,
               std::uint64_t segment_bytes = std::uint64_t{1} << 30, std::uint16_t version = format_version);

/// What a scan found, keyed by (epoch, id).
struct Found {
    EventInfo info;
    std::vector<std::byte> payload;
};
using Key = std::pair<std::uint32_t, std::uint64_t>;
std::map<Key, Found> read_all(const RunReader& run, Verification* verification = nullptr);

/// Fails the test unless `found` is `event`.
void expect_same(const TestEvent& event, const Found& found);

std::vector<std::byte> read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
std::vector<std::byte> bytes_of(const std::string& text);

/// The file with the block at `at` changed, and that block's checksums right again.
using BlockChange = std::function<void(BlockHeader& header, std::byte* body)>;
std::vector<std::byte> with_changed_block(std::vector<std::byte> file, std::uint64_t at, const BlockChange& change);

/// What the core::RunError says that `action` throws; "no error" if it throws none.
std::string reason_of(const std::function<void()>& action);

}  // namespace weir::store::test
