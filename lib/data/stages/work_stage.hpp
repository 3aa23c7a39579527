// A worker lcore: takes closed events, reduces them and formats them into output buffers for the writer thread, then
// hands messages back to the rx lcores that own them. Bounded work per poll: a large event takes several.
#pragma once

#include <memory>
#include <vector>

#include "assemble/counters.hpp"
#include "assemble/event.hpp"
#include "core/latency_histogram.hpp"
#include "port/live_clock.hpp"
#include "port/ring.hpp"
#include "reduce/gather.hpp"
#include "stages/always_missing.hpp"
#include "stages/cut_off.hpp"
#include "stages/event_encoder.hpp"
#include "stages/event_handle.hpp"
#include "stages/missing_packets.hpp"
#include "stages/output_fence.hpp"
#include "stages/source_span.hpp"
#include "stages/stage.hpp"
#include "store/block_writer.hpp"

namespace weir::stages {

/// What is known of a source without looking at its packets.
struct SourceGeometry {
    std::uint32_t message_bytes = 0;         ///< 0: not fixed
    std::uint32_t packet_payload_bytes = 0;  ///< 0: not fixed
    bool sequenced = false;                  ///< what is missing is known from sequence numbers, on the rx lcores
    std::uint32_t message_packets = 0;       ///< 0: not fixed
    std::uint32_t lane_bytes = 0;            ///< a message is sent in parts of so many bytes at once; 0: in one
};

class PedestalWorker;

class WorkStage final : public Stage {
public:
    struct Config {
        bool to_file = true;                        ///< false: the `null` sink, which counts and forgets
        std::size_t null_buffer_bytes = 1U << 20U;  ///< then: what is formatted into and forgotten
        /// Buffers end at a multiple of this, and with a long event: 4096 where a sink writes past the page cache.
        std::size_t buffer_alignment = store::block_align;
        PedestalWorker* pedestals = nullptr;  ///< null: they are not followed
        std::uint32_t sources_needed = 1;
        std::vector<SourceGeometry> sources;
        std::uint32_t refs_max = 4096;  ///< references that one message can have
        struct BuildEdge {
            port::Ring<assemble::Event*>* events = nullptr;    ///< from a shard of the builder
            port::Ring<assemble::Event*>* released = nullptr;  ///< back to it
        };
        std::vector<BuildEdge> build;
        std::vector<port::Ring<assemble::Message*>*> recycle;  ///< to each rx lcore
        port::Ring<OutputBuffer*>* free_buffers = nullptr;
        port::Ring<OutputBuffer*>* full_buffers = nullptr;
        OutputFence* fence = nullptr;            ///< somebody wants to know what is written
        std::uint32_t index = 0;                 ///< of the worker
        const port::LiveClock* clock = nullptr;  ///< of live input: how long events take is looked at
        /// From when on something is missing that a capture may have, and core::never; null: no capture is read.
        const std::atomic<TimeNs>* cut_ns = nullptr;
        TimeNs timeout_ns = 0;  ///< of events
        TimeNs flush_after_ns =
            100 * core::ns_per_ms;  ///< a buffer that is not full goes to the writer after this long
    };

    WorkStage(const Config& config, std::unique_ptr<EventEncoder> encoder, RunSignals& signals);
    std::size_t poll(TimeNs now) noexcept override;

    [[nodiscard]] const assemble::EventTally& events() const noexcept { return events_; }
    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] MissingPackets::Summary missing_packets(std::uint32_t source) const noexcept {
        return missing_packets_[source].summary();
    }
    /// What was missing in every message of the source.
    [[nodiscard]] AlwaysMissing::Summary always_missing(std::uint32_t source) const {
        return always_missing_[source].summary();
    }
    /// What of it may not have been sent yet when the run was ended.
    [[nodiscard]] CutOff::Summary cut_off(std::uint32_t source) const noexcept { return cut_off_[source].summary(); }
    /// Incomplete events that were open where a capture could not be read any further, or began later.
    [[nodiscard]] std::uint64_t cut_events() const noexcept { return cut_events_.load(std::memory_order_relaxed); }
    /// Which events had something of the source.
    [[nodiscard]] SourceSpan::Summary source_span(std::uint32_t source) const noexcept {
        return source_spans_[source].summary();
    }
    [[nodiscard]] EventSpan::Summary event_span() const noexcept { return event_span_.summary(); }
    /// Of all missing packets, those of events in which every source of several misses something.
    [[nodiscard]] std::uint64_t missing_together() const noexcept {
        return missing_together_.load(std::memory_order_relaxed);
    }
    /// What the reducers have counted.
    [[nodiscard]] std::vector<reduce::ReducerCounters> reducers() const;
    /// From the arrival of a complete event's last packet until it was in an output buffer, or vetoed.
    [[nodiscard]] const core::LatencyHistogram& latency() const noexcept { return latency_; }
    /// Payload that was read, as received.
    [[nodiscard]] std::uint64_t raw_bytes() const noexcept { return raw_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t stored_bytes() const noexcept { return stored_bytes_.load(std::memory_order_relaxed); }

private:
    enum class Phase : std::uint8_t { pedestals, event, sources, payload };

    [[nodiscard]] bool take_event() noexcept;
    [[nodiscard]] bool pop_event() noexcept;
    void begin_event() noexcept;
    [[nodiscard]] bool step_pedestals() noexcept;
    [[nodiscard]] bool step() noexcept;
    [[nodiscard]] bool step_event() noexcept;
    [[nodiscard]] bool step_sources() noexcept;
    [[nodiscard]] bool step_payload() noexcept;
    [[nodiscard]] bool is_behind_cut() const noexcept;
    /// What a source lacks in the event in hand.
    struct Lack {
        std::span<const assemble::ByteRange> gaps;  ///< the first of them
        std::uint64_t bytes = 0;                    ///< of all; 0 also where nothing came and no size is known
    };
    void account_source(std::uint32_t source, const Lack& lack) noexcept;
    [[nodiscard]] std::uint64_t count_missing(std::uint32_t source, const Lack& lack) noexcept;
    [[nodiscard]] std::uint64_t count_gaps(std::uint32_t source, std::span<const assemble::ByteRange> gaps,
                                           bool at_begin) const noexcept;
    void note_latency() noexcept;
    void release_event() noexcept;
    [[nodiscard]] bool ensure_buffer() noexcept;
    void flush() noexcept;

    Config config_;
    RunSignals& signals_;
    assemble::EventTally events_;
    core::LatencyHistogram latency_;
    store::BlockWriter writer_;
    std::unique_ptr<EventEncoder> encoder_;
    reduce::SortedRefs refs_;
    std::vector<assemble::ByteRange> received_;
    std::vector<assemble::ByteRange> missing_;
    std::vector<MissingPackets> missing_packets_;  ///< per source
    std::vector<AlwaysMissing> always_missing_;    ///< per source
    std::vector<CutOff> cut_off_;                  ///< per source
    std::vector<SourceSpan> source_spans_;         ///< per source
    EventSpan event_span_;
    std::atomic<std::uint64_t> cut_events_{0};
    std::atomic<std::uint64_t> missing_together_{0};
    std::uint64_t event_missing_ = 0;  ///< packets that the event in hand misses, and in how many of its sources
    std::size_t event_gaps_ = 0;
    OutputBuffer null_buffer_;
    std::unique_ptr<std::byte[]> null_memory_;

    EventHandle event_;     ///< in hand, if there is one
    std::size_t from_ = 0;  ///< the shard that it is from, or that is asked next
    OutputBuffer* buffer_ = nullptr;
    TimeNs now_ = 0;
    TimeNs buffer_since_ns_ = 0;
    bool spans_buffers_ = false;  ///< the event in hand began in an earlier buffer
    Phase phase_ = Phase::event;
    std::uint32_t source_ = 0;
    store::BlockWriter::Mark mark_;  ///< where the event in hand begins, if it may be taken back
    std::atomic<std::uint64_t> raw_bytes_{0};
    std::atomic<std::uint64_t> stored_bytes_{0};
    std::atomic<bool> finished_{false};
};

}  // namespace weir::stages
