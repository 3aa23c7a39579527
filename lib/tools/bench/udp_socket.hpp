// A UDP socket of the kernel that packets come to.
#pragma once

#include <cstdint>
#include <string>

#include "bench/file_descriptor.hpp"
#include "bench/receiver.hpp"

namespace weir::bench {

/// Bound to a free port. What can be asked of the kernel returns what it refused, for Receiver::remarks(); empty if
/// nothing.
class UdpSocket {
public:
    /// At this IPv4 address of the host. Throws core::RunError with what the kernel said.
    explicit UdpSocket(const std::string& address);

    [[nodiscard]] int get() const noexcept { return socket_.get(); }
    [[nodiscard]] Endpoint endpoint() const;
    /// A receive buffer of 64 MiB.
    [[nodiscard]] std::string enlarge_buffer();
    /// The kernel looks into the device's queue for a while before it lets a receiver sleep.
    [[nodiscard]] std::string poll_busily();
    /// Packets that found no room in the receive buffer, since the socket was made.
    [[nodiscard]] std::uint64_t dropped();

private:
    FileDescriptor socket_;
    std::uint32_t last_ = 0;  // the kernel's count, which wraps at 2^32
    std::uint64_t dropped_ = 0;
};

}  // namespace weir::bench
