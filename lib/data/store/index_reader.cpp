#include "store/index_reader.hpp"

#include <cstring>

namespace weir::store {

IndexReader::IndexReader(const std::filesystem::path& path, std::uint64_t run_tag, std::optional<std::uint16_t> version)
    : file_(path), reader_(file_, run_tag) {
    reader_.expect_version(version);
}

std::optional<IndexEntry> IndexReader::next() {
    while (problem_.empty() && at_ == block_.body.size()) {
        const std::uint64_t sequence = reader_.blocks();
        const BlockReader::Result result = reader_.next(block_);
        if (result == BlockReader::Result::end) return {};
        at_ = 0;
        if (result == BlockReader::Result::damaged) {
            problem_ = reader_.problem();
        } else if (block_.header.type != BlockType::index || block_.header.sequence != sequence ||
                   block_.body.empty() || block_.body.size() % sizeof(IndexEntry) != 0 || block_.header.flags != 0 ||
                   block_.header.element_bytes != 0 || block_.header.raw_bytes != block_.header.stored_bytes) {
            problem_ = "its blocks contradict each other";
        }
    }
    if (!problem_.empty()) return {};
    IndexEntry entry;
    std::memcpy(&entry, block_.body.data() + at_, sizeof entry);
    at_ += sizeof entry;
    return entry;
}

}  // namespace weir::store
