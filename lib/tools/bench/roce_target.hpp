// The receiving end of one queue pair of an unreliable connection, for messages of one packet: what weir's own decoder
// believes is taken, and what is written goes to the place in memory that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/frame_kind.hpp"
#include "wire/fragment.hpp"

namespace weir::bench {

class RoceTarget {
public:
    /// Payloads have at most `bytes`. Of WRITE: they go to at least `addresses` places in turn. Throws core::RunError
    /// where no RoCE packet has so many bytes.
    RoceTarget(FrameKind::Is is, std::uint32_t bytes, std::uint32_t addresses);
    [[nodiscard]] const FrameKind& frames() const noexcept { return frames_; }

    enum class Is : std::uint8_t {
        taken,
        damaged,  ///< its iCRC or its form
        other,    ///< not for this queue pair, or to a place that is not ours
        not_yet,  ///< its place has been written to in this burst, and nobody has read it
    };
    struct Taken {
        Is is = Is::other;
        const std::byte* payload = nullptr;
        std::uint32_t bytes = 0;
    };
    /// A datagram to wire::roce_port. The iCRC is checked.
    [[nodiscard]] Taken take(const wire::Datagram& datagram) noexcept;
    /// What was taken has been read.
    void next_burst() noexcept { ++burst_; }

private:
    FrameKind frames_;
    std::vector<std::byte> region_;
    std::vector<std::uint64_t> written_;  // the burst that wrote to each place last
    std::uint64_t burst_ = 1;
};

}  // namespace weir::bench
