// A burst of packets on its way, and the type that owns their buffers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "port/buffers.hpp"
#include "port/ring.hpp"

namespace weir::port {

/// Up to `capacity` packets, first in, first out. Their buffers are the batch's until take() or a ring takes them over;
/// what it still holds goes back to its pools, in bulk, by give_back() or with the batch. Nothing is done per packet:
/// ownership goes over by the burst.
class PacketBatch {
public:
    static constexpr std::uint32_t capacity = 64;

    PacketBatch() = default;
    ~PacketBatch() { give_back(); }
    PacketBatch(PacketBatch&& other) noexcept;
    PacketBatch& operator=(PacketBatch&& other) noexcept;
    PacketBatch(const PacketBatch&) = delete;
    PacketBatch& operator=(const PacketBatch&) = delete;

    [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
    [[nodiscard]] bool full() const noexcept { return end_ == capacity; }
    [[nodiscard]] std::uint32_t size() const noexcept { return end_ - first_; }
    [[nodiscard]] std::span<const Packet> packets() const noexcept { return {packets_.data() + first_, size()}; }

    /// Takes over one packet's buffer. The batch must not be full().
    void push(const Packet& packet) noexcept { packets_[end_++] = packet; }
    /// Where a receiver may write packets, which filled() then takes over.
    [[nodiscard]] std::span<Packet> room() noexcept { return {packets_.data() + end_, capacity - end_}; }
    void filled(std::uint32_t count) noexcept { end_ += count; }
    /// Takes over up to `wanted` packets of a ring, as far as there is room, and says how many.
    std::uint32_t pull_from(Ring<Packet>& ring, std::uint32_t wanted = capacity) noexcept {
        const std::uint32_t count = ring.pop(room().first(wanted < capacity - end_ ? wanted : capacity - end_));
        filled(count);
        return count;
    }
    /// The same for packets as long as `wanted` says so of the next one.
    template <class Wanted>
    std::uint32_t pull_while(Ring<Packet>& ring, Wanted&& wanted) noexcept {
        const std::uint32_t count = ring.pop_while(room(), std::forward<Wanted>(wanted));
        filled(count);
        return count;
    }

    /// Hands over what fits into the ring, from the front, and says how much that was.
    std::uint32_t push_to(Ring<Packet>& ring) noexcept {
        const std::uint32_t count = ring.push(packets());
        first_ += count;
        if (first_ == end_) first_ = end_ = 0;
        return count;
    }
    /// Hands everything over to the caller, who may change the packets in place. The span is good until the batch is
    /// filled again.
    [[nodiscard]] std::span<Packet> take() noexcept {
        const std::span<Packet> all(packets_.data() + first_, size());
        first_ = end_ = 0;
        return all;
    }
    /// Gives the buffers of what it holds back to their pools. Counting the packets is up to the caller.
    void give_back() noexcept {
        if (!empty()) [[unlikely]]
            release_all();
    }

private:
    void release_all() noexcept;

    std::array<Packet, capacity> packets_;
    std::uint32_t first_ = 0;
    std::uint32_t end_ = 0;
};

}  // namespace weir::port
