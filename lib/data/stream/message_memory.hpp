// Memory of messages: taken by the sink's thread, given back by ZeroMQ's thread when the last consumer has its copy.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace weir::stream {

/// Keeps what comes back for the next message: fresh pages from the system would cost more than the copy into them.
class MessageMemory {
public:
    /// One message's memory. What it holds is not zeroed.
    struct Block {
        std::unique_ptr<std::byte[]> bytes;
        std::size_t size = 0;
        [[nodiscard]] std::span<std::byte> span() const noexcept { return {bytes.get(), size}; }
    };

    /// `spare_max`: bytes that are kept while nobody needs them.
    explicit MessageMemory(std::size_t spare_max) : spare_max_(spare_max) {}

    /// At least `size` bytes.
    [[nodiscard]] Block take(std::size_t size);
    /// Any thread.
    void give_back(Block block) noexcept;

private:
    std::mutex mutex_;
    std::vector<Block> spare_;
    std::size_t spare_bytes_ = 0;
    std::size_t spare_max_;
};

}  // namespace weir::stream
