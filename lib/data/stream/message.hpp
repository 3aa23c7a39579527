// A message on its way: made once, sent to every consumer without being copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "stream/message_memory.hpp"

namespace weir::stream {

/// Events that are with ZeroMQ and not with the kernel yet.
using InFlight = std::atomic<std::uint64_t>;

/// Goes when the last consumer has its bytes, in whichever thread that is. Then its memory goes back.
class Message {
public:
    /// `bytes` lies in `block`.
    Message(std::shared_ptr<MessageMemory> memory, MessageMemory::Block block, std::span<const std::byte> bytes)
        : memory_(std::move(memory)), block_(std::move(block)), bytes_(bytes) {}
    ~Message() {
        if (in_flight_) in_flight_->fetch_sub(1, std::memory_order_release);
        memory_->give_back(std::move(block_));
    }
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    /// It counts in `in_flight` until it goes. While the caller holds it.
    void count_in(std::shared_ptr<InFlight> in_flight) {
        in_flight_ = std::move(in_flight);
        in_flight_->fetch_add(1, std::memory_order_relaxed);
    }

private:
    std::shared_ptr<MessageMemory> memory_;
    MessageMemory::Block block_;
    std::span<const std::byte> bytes_;
    std::shared_ptr<InFlight> in_flight_;
};

using MessagePtr = std::shared_ptr<Message>;

}  // namespace weir::stream
