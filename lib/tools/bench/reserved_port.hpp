// A UDP port of the kernel's that nobody else gets, while its packets are taken in another way.
#pragma once

#include <string>

#include "bench/file_descriptor.hpp"
#include "bench/receiver.hpp"

namespace weir::bench {

/// Without it the kernel would answer every packet that it sees as well: nobody is there.
class ReservedPort {
public:
    /// A free port at this IPv4 address, or this one. Throws core::RunError with what the kernel said.
    explicit ReservedPort(const std::string& address, std::uint16_t port = 0);
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

private:
    FileDescriptor socket_;
    Endpoint endpoint_;
};

}  // namespace weir::bench
