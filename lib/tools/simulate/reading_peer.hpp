// A receiver that reads the sender's own memory (config::LossTold::lossless: memif, vhost). It makes the sender wait,
// for as long as its disk makes it wait, and what it has not taken when the sender leaves is lost.
#pragma once

#include <chrono>
#include <string>

namespace weir::simulate {

[[nodiscard]] bool reads_our_memory(const std::string& device);

/// `device` may take packets yet, though it has taken none for `stalled`. `link_is_up`: the peer is there; asked for
/// late, because some drivers ask the kernel.
template <typename IsUp>
[[nodiscard]] bool may_take_more(const std::string& device, std::chrono::nanoseconds stalled, IsUp&& link_is_up) {
    constexpr std::chrono::seconds usual(10), for_a_disk(60);
    return stalled <= usual || (stalled <= for_a_disk && reads_our_memory(device) && link_is_up());
}

/// Before the sender of `device` leaves: gives a peer that reads its memory the time to take what is in it. No driver
/// tells how much that is. net_memif (DPDK 22.11) reads on in memory that is gone, which ends the peer's process.
void take_leave_of(const std::string& device);

}  // namespace weir::simulate
