// Copies of received packets on their way from an rx lcore to the recorder (docs/guides/RECORDER.md): fixed blocks of
// memory that the lcore fills and the recorder gives back. The lcore never waits for it: what finds no block is left
// out and counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "port/buffers.hpp"

namespace weir::stages {

using core::TimeNs;

/// In front of each copy.
struct RecordHead {
    TimeNs time_ns = 0;
    std::uint32_t wire_bytes = 0;
    std::uint32_t bytes = 0;        ///< copied; block_end: nothing follows in this block
    std::uint32_t lost_before = 0;  ///< packets of this port left out since the one before it in this ring
    std::uint16_t queue = 0;
    std::uint8_t port = 0;
    std::uint8_t unused = 0;
    std::uint64_t unused_too = 0;  ///< the copy begins where it can be written past the caches

    static constexpr std::uint32_t block_end = UINT32_MAX;
};
static_assert(sizeof(RecordHead) == 32);

/// One producer (the rx lcore), one consumer (the recorder's thread). Positions are bytes since the start; a block is
/// block_bytes of them.
class RecordRing {
public:
    static constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20U;
    static constexpr std::uint32_t packet_bytes_max = 65535;  ///< of a packet; the rest is cut off
    /// A burst of the largest packets, and the blocks that it begins and ends in.
    static constexpr std::uint64_t burst_blocks = 6;
    static constexpr std::uint64_t blocks_min = 16;

    /// Takes `blocks` (at least blocks_min) of memory now, all of it. Packets are cut after `snap_bytes`; 0: not at
    /// all. Throws core::RunError when the memory is not there.
    RecordRing(std::uint64_t blocks, std::uint32_t snap_bytes);
    ~RecordRing();
    RecordRing(const RecordRing&) = delete;
    RecordRing& operator=(const RecordRing&) = delete;

    // For the rx lcore.
    /// Copies a burst of at most 64 packets as they were received.
    void add(std::span<const port::Packet> packets, std::uint16_t queue) noexcept;
    /// For an input that would rather wait: add() has room for any burst.
    [[nodiscard]] bool has_room() const noexcept {
        return free_blocks(written_.load(std::memory_order_relaxed)) >= burst_blocks;
    }

    // For the recorder. Everything before written() can be read; everything before the block of `position` is given
    // back.
    [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }
    [[nodiscard]] const RecordHead& head_at(std::uint64_t position) const noexcept {
        return *reinterpret_cast<const RecordHead*>(memory_ + position % size_);
    }
    /// The copy that belongs to head_at(position).
    [[nodiscard]] std::span<const std::byte> bytes_at(std::uint64_t position) const noexcept {
        return {memory_ + position % size_ + sizeof(RecordHead), head_at(position).bytes};
    }
    /// Of the record after this one; it may be in the next block.
    [[nodiscard]] std::uint64_t next(std::uint64_t position) const noexcept;
    /// Where the first record at or after `position` is: block ends are passed over. At most `end`.
    [[nodiscard]] std::uint64_t record_from(std::uint64_t position, std::uint64_t end) const noexcept;
    /// Time of the newest record in the block of `position`, which the lcore has left.
    [[nodiscard]] TimeNs newest_in(std::uint64_t position) const noexcept {
        return newest_[position / block_bytes % blocks_];
    }
    void release(std::uint64_t position) noexcept {
        released_.store(position / block_bytes, std::memory_order_release);
    }
    [[nodiscard]] std::uint64_t free_blocks(std::uint64_t written) const noexcept {
        const std::uint64_t used =
            (written + block_bytes - 1) / block_bytes - released_.load(std::memory_order_acquire);
        return blocks_ - used;
    }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }

    // For any thread.
    [[nodiscard]] std::uint64_t seen() const noexcept { return seen_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t seen_of(std::uint8_t port) const noexcept {
        return ports_[port].seen.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t left_out_of(std::uint8_t port) const noexcept {
        return ports_[port].left_out.load(std::memory_order_relaxed);
    }

private:
    [[nodiscard]] std::byte* room_for(std::uint32_t bytes, TimeNs time_ns) noexcept;

    std::byte* memory_ = nullptr;
    std::uint64_t blocks_;
    std::uint64_t size_;
    std::uint32_t snap_bytes_;
    std::vector<TimeNs> newest_;  ///< by block; written before the lcore leaves it
    struct Port {
        std::atomic<std::uint64_t> seen{0};
        std::atomic<std::uint64_t> left_out{0};
        std::uint32_t lost = 0;  ///< since its last record
    };
    std::unique_ptr<Port[]> ports_;

    // The rx lcore's.
    alignas(core::cache_line_bytes) std::uint64_t at_ = 0;  ///< end of the last record; published as written_
    TimeNs block_newest_ = 0;
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uint64_t> seen_{0};
    std::atomic<std::uint64_t> left_out_{0};
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> released_{0};  ///< blocks that were given back
};

}  // namespace weir::stages
