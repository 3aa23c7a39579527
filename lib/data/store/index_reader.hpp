// The index file of a run, as it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/block_reader.hpp"
#include "store/format.hpp"

namespace weir::store {

/// Reads the entries of an index file one by one.
class IndexReader {
public:
    IndexReader(const std::filesystem::path& path, std::uint64_t run_tag, std::optional<std::uint16_t> version);
    /// Nothing at the end, or at damage: then problem() is not empty.
    std::optional<IndexEntry> next();
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return reader_.blocks(); }
    [[nodiscard]] std::uint32_t headers_crc() const noexcept { return reader_.headers_crc(); }

private:
    FileSource file_;
    BlockReader reader_;
    Block block_;
    std::size_t at_ = 0;
    std::string problem_;
};

}  // namespace weir::store
