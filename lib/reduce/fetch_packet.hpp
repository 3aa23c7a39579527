// Asks for a packet's payload some time before it is read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "assemble/message.hpp"

namespace weir::reduce {

/// What is asked for at a time, and of one packet at most.
inline constexpr std::uint32_t fetch_bytes = 8192;

/// Into the second-level cache: it waits for more lines at a time than the first, and has room for whole packets.
inline void fetch_packet(const assemble::FragmentRef& ref) noexcept {
    constexpr int second_level = 2;
    for (std::uint32_t at = 0; at < std::min(ref.bytes, fetch_bytes); at += 64)
        __builtin_prefetch(ref.data + at, 0, second_level);
}

}  // namespace weir::reduce
