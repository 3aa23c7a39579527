// Memory that a kernel receiver's payloads go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace weir::bench {

/// A fixed number of buffers for one thread. With one address the buffer that was given back last is taken first, so
/// that the same few, hot in the cache, are used again and again; with more, all are used in turn.
class PacketBuffers {
public:
    /// `held` buffers may be taken and not given back; with `addresses` > 1 payload goes to at least as many places in
    /// turn. Throws std::bad_alloc.
    PacketBuffers(std::uint32_t bytes, std::uint32_t held, std::uint32_t addresses);
    PacketBuffers(const PacketBuffers&) = delete;
    PacketBuffers& operator=(const PacketBuffers&) = delete;

    /// nullptr if all are held.
    [[nodiscard]] std::byte* take() noexcept;
    [[nodiscard]] std::uint32_t available() const noexcept { return free_; }
    [[nodiscard]] std::uint32_t bytes() const noexcept { return bytes_; }

    /// All of it: for a device that has to know beforehand.
    [[nodiscard]] std::span<std::byte> memory() const noexcept { return {memory_.get(), memory_bytes_}; }

    /// For assemble::BufferRelease: each goes back to the PacketBuffers that it was taken from.
    static void release(void** buffers, std::uint32_t count) noexcept;

private:
    void give_back(std::byte* buffer) noexcept;

    std::uint32_t bytes_;
    bool in_turn_;
    std::size_t memory_bytes_ = 0;
    std::unique_ptr<std::byte[]> memory_;
    std::vector<std::byte*> ring_;  // the free ones are from next_ on, free_ of them
    std::uint32_t next_ = 0;
    std::uint32_t free_ = 0;
};

}  // namespace weir::bench
