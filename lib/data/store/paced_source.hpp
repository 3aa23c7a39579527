// An open file that is read at a pace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "store/block_reader.hpp"
#include "store/file.hpp"
#include "store/read_pace.hpp"

namespace weir::store {

class PacedSource final : public ByteSource {
public:
    /// Both stay where they are.
    PacedSource(const File& file, const ReadPace& pace) : file_(file), pace_(pace) {}
    [[nodiscard]] std::uint64_t size() const override { return file_.size(); }
    /// Throws ReadingStopped too.
    std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const override {
        keep_pace(pace_, bytes.size());
        return file_.read_at(offset, bytes);
    }

private:
    const File& file_;
    const ReadPace& pace_;
};

}  // namespace weir::store
