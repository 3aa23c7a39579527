#include "store/index_file.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/manifest.hpp"

namespace weir::store {

IndexFile::IndexFile(File file, std::uint64_t run_tag) : file_(std::move(file)), run_tag_(run_tag) {
    if (!file_.truncate(0)) throw core::RunError(write_error_text("cannot empty", file_.path(), errno));
}

void IndexFile::write(std::span<const IndexEntry> entries, std::uint16_t version) {
    std::vector<std::byte> block(sizeof(BlockHeader) + padded(entries.size_bytes()));
    std::memcpy(block.data() + sizeof(BlockHeader), entries.data(), entries.size_bytes());
    BlockHeader header;
    header.type = BlockType::index;
    header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(entries.size_bytes());
    header.version = version;
    header.sequence = blocks_;
    header.run_tag = run_tag_;
    header.body_crc = core::crc32c(std::span<const std::byte>(block).subspan(sizeof header));
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    std::memcpy(block.data(), &header, sizeof header);
    file_.write_at(bytes_, block);
    headers_crc_ = core::crc32c(std::span<const std::byte>(block).first(listed_header_bytes(version)), headers_crc_);
    bytes_ += block.size();
    ++blocks_;
}

nlohmann::json IndexFile::listed() const {
    return listed_file(index_name, bytes_, blocks_, headers_crc_);
}

}  // namespace weir::store
