// The detector simulator: an endless or counted stream of frames from the project's own encoders, with seeded faults,
// and an independent account of what was sent. Not here: the targets that frames go to, and pacing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/simulated_frames.hpp"

namespace weir::simulate {

/// What the simulator did, counted where it was done. packets: generated - dropped + duplicated = emitted.
struct SimulatorAccount {
    struct Source {
        std::uint64_t generated = 0;
        std::uint64_t dropped = 0;
        std::uint64_t duplicated = 0;
        std::uint64_t truncated = 0;
        std::uint64_t corrupted = 0;
        std::uint64_t emitted = 0;
        std::uint64_t frame_bytes = 0;  ///< of the emitted frames, cut ones as cut
    };
    std::vector<Source> sources;
    std::uint64_t events = 0;          ///< begun; all their packets are planned
    std::uint64_t events_whole = 0;    ///< every packet was emitted uncut at least once
    std::uint64_t events_damaged = 0;  ///< something is missing
    std::uint64_t events_empty = 0;    ///< not one packet was emitted uncut
    std::uint64_t message_bytes = 0;   ///< of all messages of all events, as if nothing was dropped

    [[nodiscard]] Source total() const noexcept;
};

/// Deterministic: the same configuration gives the same frames in the same order.
class Simulator {
public:
    struct Frame {
        std::uint32_t bytes = 0;
        std::uint32_t source = 0;
        std::uint64_t event = 0;
        bool truncated = false;
        bool corrupted = false;
        /// When the frame is due: events since the start, with the fraction that says how far the event is. Never
        /// falls.
        double due_events = 0;
    };

    /// Throws core::UsageError naming the option and what is accepted.
    explicit Simulator(const SimulatorConfig& config);

    /// Writes the next frame and describes it; false when all events have been sent. `out` has frame_bytes_max() bytes.
    /// Allocates nothing.
    bool next(std::span<std::byte> out, Frame& frame) noexcept;
    /// The same for who only wants the bytes.
    bool next(std::span<std::byte> out, std::uint32_t& frame_bytes) noexcept;
    /// Begins no further event: next() gives what is left of the present one, then false.
    void stop() noexcept { stopped_ = true; }

    [[nodiscard]] std::uint32_t frame_bytes_max() const noexcept { return frames_.frame_bytes_max(); }
    /// Bytes in front of the UDP payload in every frame.
    [[nodiscard]] std::uint32_t frame_header_bytes() const noexcept { return frames_.header_bytes(); }
    [[nodiscard]] const SimulatorAccount& account() const noexcept { return account_; }
    /// As given, with the defaults that depend on format and transport filled in.
    [[nodiscard]] const SimulatorConfig& config() const noexcept { return frames_.config(); }
    /// Destination port, or queue pair, of a source.
    [[nodiscard]] std::uint32_t endpoint(std::uint32_t source) const noexcept { return frames_.endpoint(source); }

    /// What a receiver must find: bytes of a message, detector headers not counted...
    [[nodiscard]] std::uint32_t message_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
        return frames_.message_bytes(event, source);
    }
    /// ... and the bytes themselves.
    void message_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                         std::span<std::byte> out) noexcept {
        frames_.message_content(event, source, offset, out);
    }

    /// RoCE: bytes of the RDMA message (the format's header, if it has one, and the whole message after it) ...
    [[nodiscard]] std::uint32_t rdma_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
        return frames_.rdma_bytes(event, source);
    }
    /// ... those of one packet of it, made again as often as asked for ...
    void rdma_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                      std::span<std::byte> out) noexcept {
        frames_.rdma_content(event, source, offset, out);
    }
    /// ... the WRITEs that it is cut into, in their order (empty: it is not) ...
    [[nodiscard]] std::span<const FrameWrites::Write> writes() const noexcept { return frames_.writes(); }
    /// ... so that an event has so many messages of each source ...
    [[nodiscard]] std::uint32_t messages_per_event() const noexcept {
        return writes().empty() ? 1 : static_cast<std::uint32_t>(writes().size());
    }
    /// ... where WRITEs go: a source's first buffer, and from there on; and the headers in front.
    [[nodiscard]] std::uint64_t rdma_va(std::uint32_t source) const noexcept { return frames_.rdma_va(source); }
    [[nodiscard]] std::uint64_t rdma_offset(std::uint64_t event) const noexcept { return frames_.rdma_offset(event); }
    static constexpr std::uint64_t va_step = SimulatedFrames::va_step;
    static constexpr std::uint32_t qkey = SimulatedFrames::qkey;
    [[nodiscard]] wire::FrameSpec frame_spec(std::uint32_t source) const noexcept { return frames_.frame_spec(source); }

private:
    struct Planned {
        std::uint64_t place;  ///< in the order of emission; where it is shared, the later packet goes first
        std::uint64_t sequence;
        std::uint64_t event;
        std::uint32_t source;
        std::uint32_t packet;
        std::uint32_t psn;
        bool truncated;
        bool corrupted;
        double due_events;
    };
    struct Later {
        bool operator()(const Planned& a, const Planned& b) const noexcept {
            return a.place != b.place ? a.place > b.place : a.sequence < b.sequence;
        }
    };

    void begin_event() noexcept;
    void end_event() noexcept;
    bool plan_next() noexcept;
    void plan_faults(const Planned& packet) noexcept;
    void enqueue(Planned packet) noexcept;

    SimulatedFrames frames_;
    const SimulatorConfig& config_;  ///< that of frames_
    SimulatorAccount account_;

    bool stopped_ = false;
    std::uint64_t event_ = 0;  ///< events begun
    std::uint32_t packet_ = 0;
    std::uint32_t source_ = 0;
    std::uint64_t event_emitted_ = 0;  ///< packets of the present event that go out uncut
    std::uint64_t event_lost_ = 0;
    std::uint32_t event_packets_max_ = 0;
    std::vector<std::uint32_t> event_packets_;  ///< per source
    std::vector<std::uint32_t> psn_;            ///< per source, of its next packet

    std::vector<Planned> waiting_;  ///< heap, at most reorder + 2
    std::uint64_t sequence_ = 0;
    double due_events_ = 0;
};

}  // namespace weir::simulate
