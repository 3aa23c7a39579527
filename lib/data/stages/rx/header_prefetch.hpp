// Fetches the headers of packets from memory while those before them are being worked on.
#pragma once

#include <rte_prefetch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/units.hpp"
#include "port/buffers.hpp"

namespace weir::stages {

/// A few headers at a time: a core has few line fill buffers, and stands still when it asks for more.
class HeaderPrefetch {
public:
    /// Some cores (AMD's family 26) stand still for the address of each header, and then wait only once for those that
    /// are asked for close to each other. Who does much for each packet asks for so many at a time.
    static constexpr std::size_t together = 8;

    /// The packets whose headers are fetched next.
    void aim(std::span<const port::Packet> packets) noexcept {
        at_ = packets.data();
        end_ = packets.data() + packets.size();
    }
    void next(std::size_t count = 1) noexcept {
        for (; count > 0 && at_ != end_; --count, ++at_) {
            // Headers of all layers end in the first or the second line of the frame.
            rte_prefetch0(port::frame_of(*at_));
            if (second_line_) rte_prefetch0(port::frame_of(*at_) + core::cache_line_bytes);
        }
    }
    /// All that next() has not fetched yet.
    void rest() noexcept { next(static_cast<std::size_t>(end_ - at_)); }
    /// Headers of the packet in this buffer end at `end`: those to come are like it.
    void expect(const rte_mbuf& mbuf, const std::byte* end) noexcept {
        second_line_ = end - rte_pktmbuf_mtod(&mbuf, const std::byte*) > std::ptrdiff_t{core::cache_line_bytes};
    }
    /// Of the packet's headers, the line that `end` says is their last. Cheap where that is the frame's first.
    static void until(const std::byte* end) noexcept { rte_prefetch0(end - 1); }
    /// For packets that are read whole: so many after the one in hand are asked for, lest each waits for memory.
    [[nodiscard]] static std::size_t bodies_ahead(const port::Packet& packet) noexcept {
        constexpr std::size_t ahead_bytes = 8192;
        return ahead_bytes / std::max<std::size_t>(packet.captured_bytes, core::cache_line_bytes) + 1;
    }
    /// Into the second-level cache: it waits for more lines at a time than the first, and has room for whole packets.
    static void body(const port::Packet& packet) noexcept {
        for (std::uint32_t at = 0; at < packet.captured_bytes; at += core::cache_line_bytes)
            rte_prefetch1(port::frame_of(packet) + at);
    }

private:
    const port::Packet* at_ = nullptr;
    const port::Packet* end_ = nullptr;
    bool second_line_ = true;  ///< headers do not end in the first line of the frame
};

}  // namespace weir::stages
