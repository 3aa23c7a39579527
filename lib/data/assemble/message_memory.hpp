// What messages hold: references to received buffers, and cells of payload that was copied out of them. The memory
// comes from pools that are taken at construction and touched when first used. One lcore uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "assemble/copy_store.hpp"
#include "assemble/free_list.hpp"
#include "assemble/message.hpp"
#include "assemble/message_config.hpp"
#include "assemble/overload.hpp"
#include "wire/packet_counter.hpp"

namespace weir::assemble {

/// Gives received buffers (mbufs) back to their pool, in bulk. Called on the rx lcore, at least once per burst.
using BufferRelease = void (*)(void** buffers, std::uint32_t count);

class MessageMemory {
public:
    MessageMemory(const MessageConfig& config, wire::PacketTally& packets, BufferRelease release);
    /// What one of this configuration takes beside its cells, if all of it is used.
    [[nodiscard]] static std::uint64_t memory_bytes(const MessageConfig& config) noexcept;

    /// Appends a packet's payload; the packet becomes in_flight. False when no reference is left (the buffer then still
    /// belongs to the caller). Without a buffer, what is at `data` stays there until the message is recycled.
    [[nodiscard]] bool append(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                              std::uint32_t bytes, TimeNs now) noexcept;
    /// The same for a packet in a buffer, where has_room(1) has said yes, and the caller counts the packet as
    /// in_flight. The message has to be sealed before its blocks are looked at.
    void put(Message& message, void* buffer, const std::byte* data, std::uint32_t offset, std::uint32_t bytes,
             TimeNs now) noexcept;
    /// The reference that was appended last is of the packet of the one before it.
    void join_last(Message& message) noexcept;
    /// The payload of these bytes, where one reference has just them; else nullptr. What came last is looked at first.
    [[nodiscard]] static const FragmentRef* find(Message& message, std::uint32_t offset, std::uint32_t bytes) noexcept;
    /// Moves everything in `from` after what is in `into`.
    void splice(Message& into, Message& from) noexcept;
    /// The message holds nothing any more.
    void release(Message& message) noexcept;

    /// Returns a buffer to its pool, by the end of the burst.
    void give_back(void* buffer) noexcept {
        __builtin_prefetch(buffer, 1);  // whatever it is, giving it back will look at it
        if (release_count_ == release_max) [[unlikely]]
            end_burst();
        to_release_[release_count_++] = buffer;
    }
    void end_burst() noexcept;

    /// Whether `packets` more packets find room, whatever they carry.
    [[nodiscard]] bool has_room(std::uint32_t packets) const noexcept {
        return blocks_free_ >= packets && buffers_held_ + packets <= buffers_max_;
    }
    [[nodiscard]] std::uint32_t buffers_held() const noexcept { return buffers_held_; }
    [[nodiscard]] std::uint32_t cells_held() const noexcept { return copying_.cells - copies_.free_cells(); }
    /// How full it is, of buffers and of references to payload. (Without cells there still are buffers.)
    [[nodiscard]] Fill fill() const noexcept {
        return std::max(fill_of(buffers_held_, buffers_max_), fill_of(blocks_ - blocks_free_, blocks_));
    }

private:
    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    [[nodiscard]] static std::size_t blocks_of(const MessageConfig& config) noexcept;
    [[nodiscard]] FragmentBlock* take_block() noexcept;
    void begin_block(Message& message) noexcept;
    [[nodiscard]] const std::byte* copy_out(Message& message, void* buffer, const std::byte* data,
                                            std::uint32_t bytes) noexcept;

    std::uint32_t buffers_max_;
    std::uint32_t copied_bytes_max_;  ///< of payload that is copied sometimes, or always
    CopyConfig copying_;
    wire::PacketTally& packets_;
    BufferRelease release_;
    std::unique_ptr<FragmentBlock, Freer> slab_;
    FragmentBlock* fresh_ = nullptr;  ///< blocks from here on have never been used
    FreeList<FragmentBlock> free_;
    std::uint32_t blocks_;
    std::uint32_t blocks_free_;
    std::uint32_t buffers_held_ = 0;
    CopyStore copies_;
    static constexpr std::uint32_t release_max = 1024;
    std::vector<void*> to_release_;  ///< the first `release_count_`
    std::uint32_t release_count_ = 0;
};

inline void MessageMemory::put(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                               std::uint32_t bytes, TimeNs now) noexcept {
    if (FragmentBlock::is_end(message.next_ref)) [[unlikely]]
        begin_block(message);
    // No bytes are never copied.
    if (bytes - 1 < copied_bytes_max_) {
        if (const std::byte* copied = copy_out(message, buffer, data, bytes); copied != nullptr) {
            buffer = nullptr;
            data = copied;
            --buffers_held_;
        }
    }
    ++buffers_held_;
    FragmentRef* const ref = message.next_ref++;
    *ref = {buffer, data, offset, bytes, now};
    message.received_bytes += bytes;
    ++message.packets;
    message.last_ns = now;
}

}  // namespace weir::assemble
