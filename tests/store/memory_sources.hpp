// Captures and segments in memory. The bytes must outlive them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "store/block_reader.hpp"
#include "store/capture/byte_stream.hpp"

namespace weir::store::test {

class MemoryStream final : public ByteStream {
public:
    explicit MemoryStream(std::span<const std::byte> bytes) : left_(bytes) {}
    std::size_t read(std::span<std::byte> out) noexcept override {
        const std::size_t bytes = std::min(out.size(), left_.size());
        std::copy_n(left_.data(), bytes, out.data());
        left_ = left_.subspan(bytes);
        return bytes;
    }

private:
    std::span<const std::byte> left_;
};

class MemorySource final : public ByteSource {
public:
    explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const override {
        if (offset >= bytes_.size()) return 0;
        const std::size_t count = std::min<std::size_t>(bytes.size(), bytes_.size() - offset);
        std::copy_n(bytes_.data() + offset, count, bytes.data());
        return count;
    }

private:
    std::span<const std::byte> bytes_;
};

}  // namespace weir::store::test
