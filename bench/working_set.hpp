// The packets that the pipeline benchmark feeds: whole frames in ordinary memory, in the order in which they arrive, at
// places that follow no pattern, and in no cache. Built with the project's own encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stages/rx/rx_stage.hpp"

namespace weir::bench {

/// What is fed: a format, its packet size, and how its packets make messages and events.
struct StreamKind {
    std::string_view name;
    std::string_view format;  ///< as in the configuration
    bool roce = false;        ///< RDMA WRITE with immediate on a reliable connection
    bool check_icrc = false;
    std::uint32_t payload_bytes = 0;     ///< per packet
    std::uint32_t packets = 0;           ///< per message
    std::uint32_t header_last_byte = 0;  ///< of the frame: the last byte that a decoder reads of most packets
    std::uint32_t sources = 2;           ///< that make an event
    /// roce: the responder rules on each packet and answers are built. Messages of a queue pair then come one after the
    /// other and in order, as they must on a reliable connection.
    bool responder = false;
    bool only_if_named = false;  ///< not of a run that names no case

    [[nodiscard]] std::uint32_t message_bytes() const noexcept { return payload_bytes * packets; }
};

[[nodiscard]] std::span<const StreamKind> stream_kinds() noexcept;
/// SPEAD heaps; a heap is an event.
[[nodiscard]] std::span<const StreamKind> spead_kinds() noexcept;
[[nodiscard]] steer::Steering steering_of(const StreamKind& kind);
[[nodiscard]] stages::StreamRuntime runtime_of(const StreamKind& kind);

/// One received frame, as a device's descriptor would tell it.
struct Frame {
    std::byte* at = nullptr;
    std::uint32_t bytes = 0;
};

/// Memory for frames, with transparent huge pages where the kernel gives them.
class FrameMemory {
public:
    explicit FrameMemory(std::size_t bytes);
    ~FrameMemory();
    FrameMemory(const FrameMemory&) = delete;
    FrameMemory& operator=(const FrameMemory&) = delete;
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {at_, bytes_}; }
    /// Share of it that really lies on huge pages.
    [[nodiscard]] double huge_share() const;
    /// Writes everything back and takes it out of every cache.
    void evict(std::size_t bytes) const noexcept;

private:
    std::byte* at_ = nullptr;
    std::size_t bytes_ = 0;
};

/// How the packets of events mix on the wire.
struct Mix {
    std::uint32_t open_events = 1;  ///< events whose packets interleave at any time
    bool shuffled = false;          ///< packets of a message come in any order, else with rising offsets
    std::uint64_t seed = 1;
};

class WorkingSet {
public:
    /// As many whole events as fit into `bytes` of `memory`, but at least half as many again as are open
    /// at once. Throws core::RunError if the memory is too small for that.
    WorkingSet(const FrameMemory& memory, std::size_t bytes, const StreamKind& kind, const Mix& mix);

    [[nodiscard]] static std::size_t bytes_needed(const StreamKind& kind, std::uint32_t open_events) noexcept;

    [[nodiscard]] std::span<const Frame> frames() const noexcept { return frames_; }
    [[nodiscard]] std::uint32_t events() const noexcept { return events_; }
    [[nodiscard]] std::uint64_t frame_bytes() const noexcept { return frame_bytes_; }
    [[nodiscard]] std::uint64_t payload_bytes() const noexcept { return payload_bytes_; }
    /// Bytes from the start of the memory within which all frames lie.
    [[nodiscard]] std::size_t extent_bytes() const noexcept { return extent_bytes_; }
    /// The payload of every message, to compare with.
    [[nodiscard]] std::span<const std::byte> message() const noexcept { return message_; }
    /// Where the payload begins in frame `index`.
    [[nodiscard]] const std::byte* payload_of(std::size_t index) const noexcept {
        return frames_[index].at + payload_offset_[index];
    }

private:
    void write(std::size_t at, std::uint32_t event, std::uint32_t source, std::uint32_t index,
               std::span<std::byte> out);

    const StreamKind& kind_;
    std::uint32_t events_ = 0;
    std::uint64_t frame_bytes_ = 0;
    std::uint64_t payload_bytes_ = 0;
    std::size_t extent_bytes_ = 0;
    std::vector<Frame> frames_;
    std::vector<std::uint8_t> payload_offset_;
    std::vector<std::byte> message_;
};

}  // namespace weir::bench
