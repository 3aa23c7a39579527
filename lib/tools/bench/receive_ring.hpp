// An io_uring with one request in it: to receive from a socket until further notice.
#pragma once

#include <liburing.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/packet_buffers.hpp"
#include "bench/receiver.hpp"

namespace weir::bench {

/// For the thread that made it only: an io_uring that is its thread's own does the work of receiving when that thread
/// waits, and not by an interruption whenever the kernel likes.
class ReceiveRing {
public:
    /// Buffers that the kernel may fill before it has to be told of new ones: two bursts.
    static constexpr std::uint32_t buffers_max = 2 * Receiver::burst;
    /// The kernel's note in front of the payload in each buffer.
    static constexpr std::uint32_t note_bytes = sizeof(io_uring_recvmsg_out);

    /// Throws core::RunError that says why there is no io_uring, as far as that can be known.
    ReceiveRing(int socket, PacketBuffers& buffers);
    /// Gives all buffers back that nobody has got from take().
    ~ReceiveRing();
    ReceiveRing(const ReceiveRing&) = delete;
    ReceiveRing& operator=(const ReceiveRing&) = delete;

    /// Made by the thread that asks.
    [[nodiscard]] bool is_own() const noexcept;
    /// Gives the kernel as many buffers as are free, and it has places for.
    void provide() noexcept;
    /// What is there; the buffers are the caller's. Throws core::RunError if it cannot receive at all.
    [[nodiscard]] std::uint32_t take(std::span<ReceivedPacket> packets);
    /// Until a packet is there, or 10 ms are over.
    void wait();

private:
    void make_buffer_ring();
    void arm() noexcept;
    [[nodiscard]] bool take(const io_uring_cqe& done, ReceivedPacket& packet);

    struct Free {
        void operator()(void* memory) const noexcept;
    };

    int socket_;
    PacketBuffers& buffers_;
    pid_t thread_;
    io_uring ring_{};
    msghdr what_{};  // neither addresses nor control messages
    bool armed_ = false;
    std::unique_ptr<io_uring_buf_ring, Free> places_;
    std::array<std::byte*, buffers_max> given_{};  // by the number that the kernel knows them by
    std::vector<std::uint16_t> unused_;            // numbers
};

}  // namespace weir::bench
