// Frames on their way from the thread that reads captures to the one that sends: bounded, one writer, one reader,
// nobody waits in here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/units.hpp"

namespace weir::resend {

class FrameRing {
public:
    struct Frame {
        core::TimeNs time_ns = 0;  ///< when it was captured, never running backwards
        std::uint32_t bytes = 0;   ///< of what is sent
        std::uint16_t port = 0;    ///< UDP destination; 0: what is sent has its own headers
    };

    /// `bytes` is a multiple of 16 and holds several of the longest frames.
    explicit FrameRing(std::size_t bytes);

    // The writer's.
    /// Room for the bytes of a frame, or nothing. Not yet seen by the reader.
    [[nodiscard]] std::byte* reserve(const Frame& frame) noexcept;
    /// What was reserved last is there now.
    void commit() noexcept;
    /// Nothing more comes.
    void end() noexcept { ended_.store(true, std::memory_order_release); }

    // The reader's.
    /// The next frame and its bytes; null if there is none. Valid until pop().
    [[nodiscard]] const Frame* front() noexcept;
    [[nodiscard]] std::span<const std::byte> front_bytes() const noexcept;
    void pop() noexcept;
    /// Everything that ever comes has been popped.
    [[nodiscard]] bool ended() noexcept { return ended_.load(std::memory_order_acquire) && front() == nullptr; }

    /// The writer has found no room once, or has ended: as much is there as can be.
    [[nodiscard]] bool is_full_or_ended() const noexcept;

private:
    std::size_t capacity_;
    std::unique_ptr<std::byte[]> memory_;
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> written_{0};
    std::uint64_t reserved_ = 0;  ///< the writer's: up to where it has taken room
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> read_{0};
    alignas(core::cache_line_bytes) std::atomic<bool> ended_{false};
    std::atomic<bool> was_full_{false};
};

}  // namespace weir::resend
