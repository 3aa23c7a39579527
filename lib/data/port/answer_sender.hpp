// Short frames that an rx lcore sends on a port as answers: acknowledgements. Collected during a burst and handed to
// the device together, from buffers of their own, so that an answer can be sent however full the event memory is.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "port/buffers.hpp"

namespace weir::port {

class AnswerSender {
public:
    static constexpr std::uint32_t burst = 32;
    static constexpr std::uint32_t room_bytes = 256;
    /// Buffers for `queues` transmit queues: what a device may keep of each, a burst in hand, and what the caches hold.
    /// Each queue has one lcore.
    [[nodiscard]] static BufferPoolConfig pool_config(std::uint32_t queues, std::uint32_t descriptors) noexcept {
        BufferPoolConfig config;
        config.buffers = queues * (descriptors + burst) + (queues + 1) * BufferPool::cache_buffers * 3 / 2;
        config.room_bytes = room_bytes;
        return config;
    }

    /// For one lcore: queue `queue` of the started device `port` is its alone, or, with `shared`, whose this is set.
    AnswerSender(std::uint16_t port, std::uint16_t queue, BufferPool& pool, std::atomic_flag* shared) noexcept
        : pool_(&pool), shared_(shared), port_(port), queue_(queue) {}

    /// Memory for the next answer; empty if there is none, and then it counts as not sent. flush() is called when full.
    [[nodiscard]] std::span<std::byte> begin() noexcept;
    /// The memory of begin() holds a frame of so many bytes; 0: nothing after all.
    void commit(std::size_t bytes) noexcept;
    /// Hands everything to the device. What it does not take is given up: its requester asks again. Nothing while
    /// somebody else has the queue: come again.
    void flush() noexcept;
    /// Answers that were not sent since this was asked last.
    [[nodiscard]] std::uint32_t take_failures() noexcept {
        const std::uint32_t count = failures_;
        failures_ = 0;
        return count;
    }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

private:
    BufferPool* pool_;
    std::atomic_flag* shared_;
    std::uint16_t port_;
    std::uint16_t queue_;
    std::uint32_t count_ = 0;
    std::uint32_t failures_ = 0;
    rte_mbuf* next_ = nullptr;
    std::array<rte_mbuf*, burst> frames_{};
};

}  // namespace weir::port
