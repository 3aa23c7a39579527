// Reads blocks back. See block_reader.hpp.
#include "store/block_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/crc32c.hpp"
#include "store/manifest.hpp"

namespace weir::store {

namespace {}  // namespace

BlockReader::BlockReader(const ByteSource& source, std::optional<std::uint64_t> run_tag, std::size_t window_bytes)
    : source_(source), size_(source.size()), run_tag_(run_tag), window_bytes_(window_bytes) {}

/// `bytes` from `offset` on, or fewer at the end of the file.
std::span<const std::byte> BlockReader::view(std::uint64_t offset, std::size_t bytes) {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ - std::min(size_, offset)));
    const bool starts_inside = offset >= window_offset_ && offset - window_offset_ <= window_.size();
    if (!starts_inside || window_.size() - (offset - window_offset_) < bytes) {
        const std::size_t keep = starts_inside ? window_.size() - (offset - window_offset_) : 0;
        const std::uint64_t left = size_ - offset;
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, window_bytes_), left));
        if (keep > 0) std::memmove(window_.data(), window_.data() + (window_.size() - keep), keep);
        window_.resize(want);
        window_offset_ = offset;
        const std::size_t got = source_.read(offset + keep, std::span(window_).subspan(keep));
        window_.resize(keep + got);
    }
    const std::span<const std::byte> rest = std::span<const std::byte>(window_).subspan(offset - window_offset_);
    return rest.first(std::min(bytes, rest.size()));
}

std::string BlockReader::check_header(const BlockHeader& header) const {
    if (header.magic != block_magic) return "no block starts here";
    if (header.header_crc != core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes}))
        return "the block header does not match its checksum";
    if (header.version < format_version || header.version > format_version_newest ||
        header.header_bytes != sizeof header)
        return fmt::format("the block has version {}; this program reads versions {} to {}", header.version,
                           format_version, format_version_newest);
    if (header.reserved != 0 || header.reserved_too != 0 ||
        (header.version < format_version_reduced && header.element_bytes != 0))
        return "reserved bytes of the block header are not zero";
    if (header.stored_bytes > body_bytes_max || header.raw_bytes > body_bytes_max) return "the block is too large";
    if (run_tag_ && header.run_tag != *run_tag_) return "the block belongs to another run";
    if (version_ && header.version != *version_)
        return fmt::format("the block has version {} in a run of version {}", header.version, *version_);
    return {};
}

BlockReader::Result BlockReader::next(Block& block) {
    if (offset_ >= size_) return Result::end;
    const std::uint64_t left = size_ - offset_;
    const std::span<const std::byte> start = view(offset_, sizeof(BlockHeader));
    if (start.size() < sizeof(BlockHeader))
        return damaged(fmt::format("torn tail: {} bytes, less than a block header", left), size_);
    std::memcpy(&block.header, start.data(), sizeof block.header);
    if (std::string what = check_header(block.header); !what.empty())
        return damaged(std::move(what), offset_ + block_align);

    const std::uint64_t bytes = block.bytes();
    if (bytes > left)
        return damaged(fmt::format("torn tail: the file ends {} bytes before the end of this block", bytes - left),
                       size_);
    const std::span<const std::byte> whole = view(offset_, static_cast<std::size_t>(bytes));
    if (whole.size() < bytes) return damaged("the file became shorter while it was read", size_);
    const std::span<const std::byte> body = whole.subspan(sizeof(BlockHeader));
    if (core::crc32c(body) != block.header.body_crc)
        return damaged("the block's body does not match its checksum", offset_ + bytes);
    if (!all_zero(body.subspan(block.header.stored_bytes)))
        return damaged("the block's padding is not zero", offset_ + bytes);

    headers_crc_ = core::crc32c(whole.first(listed_header_bytes(block.header.version)), headers_crc_);
    run_tag_ = block.header.run_tag;
    version_ = block.header.version;
    ++blocks_;
    block.body = body.first(block.header.stored_bytes);
    block.offset = offset_;
    offset_ += bytes;
    return Result::block;
}

BlockReader::Result BlockReader::damaged(std::string what, std::uint64_t next_offset) {
    problem_ = fmt::format("at byte {}: {}", offset_, what);
    find_next_header(next_offset);
    return Result::damaged;
}

/// Blocks start at multiples of 64: the next one whose header verifies.
void BlockReader::find_next_header(std::uint64_t offset) {
    for (offset_ = offset; offset_ < size_; offset_ += block_align) {
        const std::span<const std::byte> start = view(offset_, sizeof(BlockHeader));
        if (start.size() < sizeof(BlockHeader)) break;
        BlockHeader header;
        std::memcpy(&header, start.data(), sizeof header);
        if (check_header(header).empty()) return;
    }
    offset_ = size_;
}

}  // namespace weir::store
