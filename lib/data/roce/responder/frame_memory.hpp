// Memory that peers write into: for detectors that scatter a frame over one buffer with WRITEs of their own and end it
// with an immediate. A buffer's frame is one message: payload is copied to where the WRITE says, the ranges that have
// come are kept, and the WRITE with an immediate (of no bytes, too) delivers the frame under that number, with the gaps
// it has. The event takes the bytes from here; until it has left, the buffer is lent, and a WRITE into it finds no
// room.
//
// With NumberBy::format the buffer begins with the detector's header. It is taken out of the message, and its number,
// of which the immediate are the low 32 bits, is the frame's. A frame without its header is unbound.
//
// What is written twice within a frame is not written again: the first copy stays, as everywhere in weir.
//
// An unreliable connection may lose the end of a frame, and the next one then comes to what is left of it. A frame
// during which PSNs were lost is believed only if it took no more PSNs than a whole one takes: if it were two, all of
// the second and a part of the first would lie between its first packet and its end. Before a whole one has come it is
// not believed. Where its bytes come again although PSNs were lost, another frame has begun.
//
// All memory is taken at construction and not touched before it is used. For the rx lcore that owns the queue pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "assemble/message_table.hpp"
#include "roce/message_source.hpp"
#include "roce/responder/responder.hpp"

namespace weir::roce {

class FrameMemory {
public:
    /// Takes memory for the backed regions in `sources`, and tells them (Region::lent). `messages`: of the same
    /// sources, what their messages are. `touch`: its pages are touched at once, rather than when peers write to them.
    /// Throws core::UsageError for NumberBy::format without a format that carries numbers.
    FrameMemory(std::vector<Responder::SourceConfig>& sources, std::span<const MessageSource> messages,
                TimeNs timeout_ns, assemble::MessageTable& table, bool touch = false);
    FrameMemory(const FrameMemory&) = delete;
    FrameMemory& operator=(const FrameMemory&) = delete;

    /// The same for the source's queue pair when it is configured anew, with the regions that it was made with.
    void tell(std::uint32_t source, QueuePair& queue_pair) const noexcept;

    /// Takes the buffer of a packet that the responder accepted for a backed region: `ruling.region` is set.
    void write(const Ruling& ruling, const wire::RocePacket& packet, void* buffer, TimeNs now) noexcept;
    /// The responder accepted another packet of the source, which goes past the memory.
    void pass_by(std::uint32_t source) noexcept;
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
    /// … and that a region takes.
    [[nodiscard]] static std::uint64_t memory_bytes(const Region& region) noexcept;

private:
    /// One queue pair.
    struct Sender {
        MessageSource config;
        bool loses = false;           ///< its packets are not sent again
        std::uint64_t written = 0;    ///< packets that came here
        std::int32_t frame_psns = 0;  ///< that a whole frame takes; 0: not known yet
    };
    struct Buffer {
        std::byte* memory = nullptr;
        std::uint8_t* lent = nullptr;
        assemble::Message* message = nullptr;  ///< what has come of the frame
        std::uint32_t bytes = 0;               ///< of a whole frame
        Sender* sender = nullptr;
        TimeNs first_ns = 0;
        std::uint64_t first_written = 0;  ///< Sender::written with the frame's first packet
        std::uint32_t first_psn = 0;
        Buffer* previous = nullptr;  ///< of those that collect, in the order in which they began
        Buffer* next = nullptr;
    };
    struct Block {
        const std::uint8_t* lent = nullptr;  ///< tells which region it is
        Buffer* first = nullptr;
        std::uint32_t source = 0;
    };

    void add(Region& region, Sender& sender, bool touch);
    [[nodiscard]] Buffer* buffer_of(const Region& region, std::uint64_t va) const noexcept;
    [[nodiscard]] bool begin(Buffer& at, std::uint32_t psn, TimeNs now) noexcept;
    void refuse(Buffer& at, const wire::RocePacket& packet, void* buffer) noexcept;
    [[nodiscard]] Sender* sender_of(std::uint32_t source) noexcept;
    [[nodiscard]] static bool has_lost(const Buffer& at, std::uint32_t psn) noexcept;
    [[nodiscard]] static bool is_one_frame(const Buffer& at, std::uint32_t psn) noexcept;
    [[nodiscard]] static wire::Verdict take_header(Buffer& at, std::uint32_t immediate, std::uint64_t& number) noexcept;
    void end(Buffer& at, const wire::RocePacket& packet, TimeNs now) noexcept;
    void abandon(Buffer& at, wire::PacketCounter counter) noexcept;
    void unlink(Buffer& at) noexcept;

    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    TimeNs timeout_ns_;
    assemble::MessageTable& table_;
    std::vector<std::unique_ptr<Sender>> senders_;
    std::vector<Sender*> sender_by_source_;  ///< null: has no memory
    std::vector<std::unique_ptr<std::byte, Freer>> memory_;
    std::vector<std::unique_ptr<std::uint8_t[]>> lent_;
    std::vector<std::unique_ptr<Buffer[]>> buffers_;
    std::vector<Block> blocks_;  ///< one per backed region of a queue pair
    Buffer* first_ = nullptr;
    Buffer* last_ = nullptr;
};

}  // namespace weir::roce
