// Reads blocks back from a segment or an index, one after the other, and finds the next good one after damage. Made for
// arbitrary bytes: sizes are bounded before anything is allocated, and nothing is believed before its checksum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/file.hpp"
#include "store/format.hpp"

namespace weir::store {

/// Bytes that can be read at any offset: a file; in tests, memory.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// Reads up to `bytes.size()`; less only at the end. Throws core::RunError when the device fails.
    virtual std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

class FileSource final : public ByteSource {
public:
    explicit FileSource(const std::filesystem::path& path) : file_(File::open_to_read(path)) {}
    [[nodiscard]] std::uint64_t size() const override { return file_.size(); }
    std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const override {
        return file_.read_at(offset, bytes);
    }

private:
    File file_;
};

/// The bytes of `source` up to `end`: what is after does not exist.
class SliceSource final : public ByteSource {
public:
    SliceSource(const ByteSource& source, std::uint64_t end) : source_(source), end_(std::min(end, source.size())) {}
    [[nodiscard]] std::uint64_t size() const override { return end_; }
    std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const override {
        const std::uint64_t left = end_ - std::min(end_, offset);
        return source_.read(offset, bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left))));
    }

private:
    const ByteSource& source_;
    std::uint64_t end_;
};

struct Block {
    BlockHeader header;
    std::span<const std::byte> body;  ///< stored_bytes of it; valid until the next call of the reader
    std::uint64_t offset = 0;         ///< in the file
    [[nodiscard]] std::uint64_t bytes() const { return sizeof(BlockHeader) + padded(header.stored_bytes); }
};

class BlockReader {
public:
    enum class Result {
        block,    ///< one good block
        damaged,  ///< problem() says what; the reader stands after it, at the next good header or at the end
        end,
    };

    /// What is read in one go when everything is read.
    static constexpr std::size_t window_bytes_default = std::size_t{4} << 20;
    /// And when the heads of events are: many of small events, not much of the payload of large ones.
    static constexpr std::size_t window_bytes_heads = std::size_t{16} << 10;

    /// `run_tag`: only blocks of that run count. Without it the first good block decides. `window_bytes`: how much is
    /// read in one go; small where only a block or two of a large file are wanted.
    explicit BlockReader(const ByteSource& source, std::optional<std::uint64_t> run_tag = {},
                         std::size_t window_bytes = window_bytes_default);

    /// Only blocks of this version of the format are good; without it, the first good block decides.
    void expect_version(std::optional<std::uint16_t> version) noexcept { version_ = version; }

    Result next(Block& block);
    /// Goes on at `offset` (a multiple of 64).
    void seek(std::uint64_t offset) { offset_ = offset; }
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
    /// CRC-32C over the headers of the good blocks so far.
    [[nodiscard]] std::uint32_t headers_crc() const noexcept { return headers_crc_; }
    [[nodiscard]] std::optional<std::uint64_t> run_tag() const noexcept { return run_tag_; }
    [[nodiscard]] std::optional<std::uint16_t> version() const noexcept { return version_; }

private:
    std::span<const std::byte> view(std::uint64_t offset, std::size_t bytes);
    /// Empty if the header is good, else what is wrong with it.
    [[nodiscard]] std::string check_header(const BlockHeader& header) const;
    Result damaged(std::string what, std::uint64_t next_offset);
    void find_next_header(std::uint64_t offset);

    const ByteSource& source_;
    std::uint64_t size_;
    std::optional<std::uint64_t> run_tag_;
    std::optional<std::uint16_t> version_;
    std::size_t window_bytes_;
    std::uint64_t offset_ = 0;
    std::uint64_t blocks_ = 0;
    std::uint32_t headers_crc_ = 0;
    std::string problem_;
    std::vector<std::byte> window_;
    std::uint64_t window_offset_ = 0;
};

}  // namespace weir::store
