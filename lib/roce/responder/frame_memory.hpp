// Memory that peers write into: for detectors that scatter a frame over one buffer with WRITEs of their own and end it
// with an immediate. A buffer's frame is one message: payload is copied to where the WRITE says, the ranges that have
// come are kept, and the WRITE with an immediate (of no bytes, too) delivers the frame under that number, with the gaps
// it has. The event takes the bytes from here; until it has left, the buffer is lent, and a WRITE into it finds no
// room.
//
// What is written twice within a frame is not written again: the first copy stays, as everywhere in weir. All memory is
// taken at construction and not touched before it is used. For the rx lcore that owns the queue pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "assemble/message_table.hpp"
#include "roce/responder/responder.hpp"

namespace weir::roce {

class FrameMemory {
public:
    /// Takes memory for the backed regions in `sources`, and tells them (Region::lent). `touch`: its pages are touched
    /// at once, rather than when peers write to them.
    FrameMemory(std::vector<Responder::SourceConfig>& sources, TimeNs timeout_ns, assemble::MessageTable& table,
                bool touch = false);
    FrameMemory(const FrameMemory&) = delete;
    FrameMemory& operator=(const FrameMemory&) = delete;

    /// Takes the buffer of a packet that the responder accepted for a backed region: `ruling.region` is set.
    void write(const Ruling& ruling, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    /// Whether the frame that a WRITE to `va` belongs to has begun: then it has its message, and a place for its event.
    [[nodiscard]] bool collects(const Region& region, std::uint64_t va) const noexcept;
    /// Frames whose end has not come within the time-out never learn their number: they end as unbound.
    void expire(TimeNs now) noexcept;
    /// Ends the frame that was begun first, likewise. Precondition: there is one.
    void evict_oldest() noexcept;
    /// When that was begun; `never` if there is none.
    [[nodiscard]] TimeNs oldest_ns() const noexcept { return first_ != nullptr ? first_->first_ns : never; }
    static constexpr TimeNs never = std::numeric_limits<TimeNs>::max();
    /// The peer of `source` is gone, or begins anew.
    void forget(std::uint32_t source) noexcept;
    /// End of run, or of a pass.
    void finish() noexcept;

    /// Bytes that the backed regions of a queue pair take.
    [[nodiscard]] static std::uint64_t memory_bytes(const QueuePair& queue_pair) noexcept;

private:
    struct Buffer {
        std::byte* memory = nullptr;
        std::uint8_t* lent = nullptr;
        assemble::Message* message = nullptr;  ///< what has come of the frame
        std::uint32_t bytes = 0;               ///< of a whole frame
        std::uint32_t source = 0;
        TimeNs first_ns = 0;
        Buffer* previous = nullptr;  ///< of those that collect, in the order in which they began
        Buffer* next = nullptr;
    };
    struct Block {
        const std::uint8_t* lent = nullptr;  ///< tells which region it is
        Buffer* first = nullptr;
    };

    [[nodiscard]] Buffer* buffer_of(const Region& region, std::uint64_t va) const noexcept;
    [[nodiscard]] bool begin(Buffer& at, TimeNs now) noexcept;
    void deliver(Buffer& at, std::uint32_t number, TimeNs now) noexcept;
    void abandon(Buffer& at, wire::PacketCounter counter) noexcept;
    void unlink(Buffer& at) noexcept;

    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    TimeNs timeout_ns_;
    assemble::MessageTable& table_;
    std::vector<std::unique_ptr<std::byte, Freer>> memory_;
    std::vector<std::unique_ptr<std::uint8_t[]>> lent_;
    std::vector<std::unique_ptr<Buffer[]>> buffers_;
    std::vector<Block> blocks_;  ///< one per backed region of a queue pair
    Buffer* first_ = nullptr;
    Buffer* last_ = nullptr;
};

}  // namespace weir::roce
