// How many packets of a source are missing. What a format fixes (bytes of a packet, packets of a message) makes the
// number exact; otherwise it is a guess by what did come of the source, and is kept apart as one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "assemble/message.hpp"
#include "core/one_writer.hpp"

namespace weir::stages {

/// Of one source. Written by one lcore, read by any thread.
class MissingPackets {
public:
    struct Summary {
        std::uint64_t exact = 0;
        std::uint64_t whole = 0;  ///< messages that came whole, and their packets
        std::uint64_t whole_packets = 0;
        std::uint64_t absent = 0;  ///< messages of which nothing came and nothing is known
        std::uint64_t gaps = 0;    ///< of messages of which something came
        std::uint64_t gap_bytes = 0;
        std::uint64_t gap_packets = 0;    ///< by the largest packet that had been seen
        std::uint64_t largest_bytes = 0;  ///< packet that was seen

        /// The same for what two lcores saw.
        void join(const Summary& other) noexcept {
            exact += other.exact;
            whole += other.whole;
            whole_packets += other.whole_packets;
            absent += other.absent;
            if (gaps == 0 || (other.gaps > 0 && other.largest_bytes > largest_bytes)) {
                gap_packets = of_gaps(gaps, gap_bytes, other.largest_bytes) + other.gap_packets;
            } else if (other.largest_bytes < largest_bytes) {
                gap_packets += of_gaps(other.gaps, other.gap_bytes, largest_bytes);
            } else {
                gap_packets += other.gap_packets;
            }
            gaps += other.gaps;
            gap_bytes += other.gap_bytes;
            largest_bytes = std::max(largest_bytes, other.largest_bytes);
        }
        /// Packets that are known to be missing, but not how many they are.
        [[nodiscard]] std::uint64_t guessed() const noexcept { return gap_packets + absent * usual(); }
        /// Packets of a message, going by those that came whole.
        [[nodiscard]] std::uint64_t usual() const noexcept {
            return whole == 0 ? 1 : std::max<std::uint64_t>(1, (whole_packets + whole / 2) / whole);
        }
    };

    void add_exact(std::uint64_t packets) noexcept { core::add(exact_, packets); }
    /// A message that came whole, in packets of no fixed size. The first to come tells how large they are.
    void add_whole(const assemble::Message& message) noexcept {
        if (message.packets == 0) return;
        core::add(whole_, 1);
        core::add(whole_packets_, message.packets);
        saw((message.received_bytes + message.packets - 1) / message.packets);
        if (message.first_block != nullptr) saw(message.first_block->refs[0].bytes);
    }
    /// A message of no known size of which nothing came. Returns the guess.
    std::uint64_t add_absent() noexcept {
        core::add(absent_, 1);
        return summary().usual();
    }
    /// What is missing of a message whose largest packet had so many bytes. Returns the guess.
    std::uint64_t add_gaps(std::span<const assemble::ByteRange> gaps, std::uint64_t largest_bytes) noexcept {
        saw(largest_bytes);
        std::uint64_t packets = 0;
        for (const assemble::ByteRange& gap : gaps) {
            packets += packets_in(gap.end - gap.begin);
            core::add(gap_bytes_, gap.end - gap.begin);
        }
        core::add(gaps_, gaps.size());
        core::add(gap_packets_, packets);
        return packets;
    }
    /// Packets that so many bytes have, going by the largest that was seen.
    [[nodiscard]] std::uint64_t packets_in(std::uint64_t bytes) const noexcept {
        return of_gaps(bytes > 0 ? 1 : 0, bytes, largest_.load(std::memory_order_relaxed));
    }
    [[nodiscard]] Summary summary() const noexcept {
        const auto value = [](const std::atomic<std::uint64_t>& of) { return of.load(std::memory_order_relaxed); };
        return {value(exact_), value(whole_),     value(whole_packets_), value(absent_),
                value(gaps_),  value(gap_bytes_), value(gap_packets_),   value(largest_)};
    }

private:
    /// Packets are of the largest size but for the last of a message; a gap is one of them at least.
    [[nodiscard]] static std::uint64_t of_gaps(std::uint64_t gaps, std::uint64_t bytes, std::uint64_t size) noexcept {
        return size == 0 ? gaps : std::max(gaps, (bytes + size - 1) / size);
    }
    /// What was counted by a smaller packet was too much.
    void saw(std::uint64_t bytes) noexcept {
        if (bytes <= largest_.load(std::memory_order_relaxed)) return;
        largest_.store(bytes, std::memory_order_relaxed);
        gap_packets_.store(
            of_gaps(gaps_.load(std::memory_order_relaxed), gap_bytes_.load(std::memory_order_relaxed), bytes),
            std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t> exact_{0};
    std::atomic<std::uint64_t> whole_{0};
    std::atomic<std::uint64_t> whole_packets_{0};
    std::atomic<std::uint64_t> absent_{0};
    std::atomic<std::uint64_t> gaps_{0};
    std::atomic<std::uint64_t> gap_bytes_{0};
    std::atomic<std::uint64_t> gap_packets_{0};
    std::atomic<std::uint64_t> largest_{0};
};

}  // namespace weir::stages
