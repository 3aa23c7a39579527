// Where messages came from, and how their first packet looked: what tells a copy of a packet from another packet under
// the same number, as two senders use it, or one whose number stands still.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "core/zeroed_array.hpp"
#include "wire/fragment.hpp"

namespace weir::assemble {

/// Of one packet, which begins a message.
struct Origin {
    std::uint16_t sender = 0;  ///< wire::Fragment::sender
    /// Of the packet at offset 0 (where packets have one), its header and the first bytes of its payload in a few bits;
    /// 0: not known. Of two packets that differ, one pair in 65536 has the same.
    std::uint16_t print = 0;
};

/// Bytes of payload that are looked at, beside the header.
inline constexpr std::uint32_t print_payload_bytes = 32;

/// The sum of the words of `bytes`, each with a factor of its own, so that their order counts.
[[nodiscard]] inline std::uint64_t weighed_sum(const std::byte* data, std::uint32_t bytes,
                                               std::uint64_t factor) noexcept {
    std::uint64_t sum = 0;
    const std::byte* const end = data + bytes;
    const bool whole_word = bytes >= sizeof(std::uint64_t);
    for (; bytes >= sizeof(std::uint64_t); bytes -= sizeof(std::uint64_t), data += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, sizeof word);
        sum += (word ^ word >> 32U) * factor;
        factor += 0x9E37'79B9'7F4A'7C15U << 1U;
    }
    if (bytes == 0) return sum;  // of which there may be no place
    std::uint64_t word = 0;
    // The last whole word has a fixed size, which makes it one instruction.
    if (whole_word)
        std::memcpy(&word, end - sizeof word, sizeof word);
    else
        std::memcpy(&word, data, bytes);
    return sum + (word ^ word >> 32U) * factor;
}

/// `payload_bytes`: of payload at fragment.payload, as many as are as they were sent.
[[nodiscard]] inline Origin origin_of(const wire::Fragment& fragment, std::uint32_t payload_bytes) noexcept {
    Origin origin{.sender = fragment.sender};
    if (fragment.offset != 0 || fragment.in_sequence) return origin;
    std::uint64_t sum = weighed_sum(fragment.header, fragment.header_bytes, 0xD6E8'FEB8'6659'FD93U);
    payload_bytes = std::min({payload_bytes, fragment.bytes, print_payload_bytes});
    sum += weighed_sum(fragment.payload, payload_bytes, 0xA076'1D64'78BD'642FU);
    sum ^= sum >> 32U;
    origin.print = static_cast<std::uint16_t>((sum * 0xE703'7ED1'A0B4'28DBU) >> 48U);
    if (origin.print == 0) origin.print = 1;
    return origin;
}

/// Whether one packet may be a copy of the other.
[[nodiscard]] inline bool may_be_copies(Origin a, Origin b) noexcept {
    return a.sender == b.sender && (a.print == 0 || b.print == 0 || a.print == b.print);
}

/// Of one source: the origins of the messages that became whole last. One lcore uses it.
class Origins {
public:
    /// `touch`: as in MessageConfig.
    Origins(std::uint32_t horizon, bool touch) : ring_(std::max<std::uint32_t>(horizon, 4), touch) {}
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t horizon) noexcept {
        return std::max<std::uint32_t>(horizon, 4) * sizeof(Entry);
    }

    void remember(std::uint64_t number, Origin origin) noexcept {
        ring_[next_] = {number, origin};
        if (++next_ == ring_.size()) next_ = 0;
        count_ = std::min(count_ + 1, ring_.size());
    }
    /// The latest under this number. Mostly it is one of the last, which are looked at first.
    [[nodiscard]] std::optional<Origin> find(std::uint64_t number) const noexcept {
        std::size_t at = next_;
        for (std::size_t left = count_; left > 0; --left) {
            at = (at == 0 ? ring_.size() : at) - 1;
            if (ring_[at].number == number) return ring_[at].origin;
        }
        return std::nullopt;
    }
    void clear() noexcept { next_ = count_ = 0; }

private:
    struct Entry {
        std::uint64_t number;
        Origin origin;
    };
    core::ZeroedArray<Entry> ring_;
    std::size_t next_ = 0;
    std::size_t count_ = 0;
};

}  // namespace weir::assemble
