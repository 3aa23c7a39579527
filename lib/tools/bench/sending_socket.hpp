// A UDP socket of the kernel to send from.
#pragma once

#include "bench/file_descriptor.hpp"
#include "bench/receiver.hpp"

namespace weir::bench {

/// Everything goes to `to`. Throws core::RunError with what the kernel said.
[[nodiscard]] FileDescriptor connected_socket(const Endpoint& to);

/// A full buffer makes the sender wait, and late, which is seen; but no longer than 20 ms, with EAGAIN.
void limit_waiting(const FileDescriptor& socket) noexcept;

/// Throws core::RunError: sending there does not work, because of `error` (an errno).
[[noreturn]] void throw_not_sent(const Endpoint& to, int error);

/// Packets may go later although this `error` (an errno) came. Refused is what somebody said of an earlier packet:
/// nobody listens there, and the counts will say so.
[[nodiscard]] bool may_try_again(int error) noexcept;

}  // namespace weir::bench
