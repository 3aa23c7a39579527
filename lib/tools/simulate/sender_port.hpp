// A DPDK device as a sender has it: EAL, a pool and one port with a queue to receive and one or more to send.
#pragma once

#include <string>

#include "port/buffers.hpp"
#include "port/eal.hpp"
#include "port/live_port.hpp"

namespace weir::simulate {

/// Starts EAL (port::start_eal), which can happen only once in a process.
class SenderPort {
public:
    /// Frames of net_af_packet's ring and of what is received beside; more than any jumbo frame.
    static constexpr std::uint32_t room_bytes = 16640;
    /// Frames that a sender may hold at once; the pool has as many more as the device may keep.
    static constexpr std::uint32_t held_max = 128;
    [[nodiscard]] static constexpr std::uint32_t buffers(std::uint16_t queues) noexcept {
        return 1024 * queues + 256 + held_max + 2 * port::BufferPool::cache_buffers;
    }

    /// `device` as in device:VDEV[,ARGS]. Throws core::UsageError where frames of `frame_bytes_max` do not go through
    /// it, and core::RunError where it does not start. `queues`: to send through.
    SenderPort(const std::string& device, std::uint32_t frame_bytes_max, std::uint16_t queues = 1);
    /// Not before a peer has had the time to take what was sent: take_leave_of.
    ~SenderPort();
    SenderPort(const SenderPort&) = delete;
    SenderPort& operator=(const SenderPort&) = delete;

    [[nodiscard]] port::LivePort& port() noexcept { return port_; }
    [[nodiscard]] port::BufferPool& pool() noexcept { return pool_; }
    [[nodiscard]] std::uint16_t id() const noexcept { return port_.id(); }

private:
    struct Eal {
        Eal(const std::string& device, std::uint16_t queues);
        ~Eal() { port::stop_eal(); }
        Eal(const Eal&) = delete;
        Eal& operator=(const Eal&) = delete;
    };

    std::string complete_;  ///< with the arguments that the frames need
    Eal eal_;
    port::BufferPool pool_;
    port::LivePort port_;
};

}  // namespace weir::simulate
