// The event builder, or a shard of it, on its lcore: merges the descriptors of all rx lcores in order of time, feeds
// the EventBuilder, sends its commands back and its closed events on.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "assemble/event_builder.hpp"
#include "port/ring.hpp"
#include "stages/absences.hpp"
#include "stages/stage.hpp"
#include "stages/trigger_queue.hpp"
#include "stages/work_stage.hpp"

namespace weir::stages {

class BuildStage final : public Stage {
public:
    struct RxEdge {
        port::Ring<assemble::Descriptor>* descriptors = nullptr;  ///< from the rx lcore
        port::Ring<assemble::Command>* commands = nullptr;        ///< to the rx lcore
        const RxSignals* signals = nullptr;
    };
    struct WorkEdge {
        port::Ring<assemble::Event*>* events = nullptr;    ///< to the worker
        port::Ring<assemble::Event*>* released = nullptr;  ///< from the worker
    };
    struct Config {
        assemble::EventBuilder::Config builder;
        bool keep_incomplete = true;
        std::vector<RxEdge> rx;
        std::vector<WorkEdge> work;
        TriggerQueue* triggers = nullptr;      ///< where incomplete events are told; null: nobody wants to know
        std::vector<SourceGeometry> geometry;  ///< with `triggers`: of each source
    };

    BuildStage(const Config& config, RunSignals& signals);
    std::size_t poll(TimeNs now) noexcept override;

    [[nodiscard]] const wire::PacketTally& packets() const noexcept { return packets_; }
    [[nodiscard]] const assemble::MessageTally& messages() const noexcept { return messages_; }
    [[nodiscard]] const assemble::EventTally& events() const noexcept { return events_; }
    [[nodiscard]] std::uint64_t placed_bytes() const noexcept { return placed_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t open_events() const noexcept { return open_events_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t open_highest() const noexcept { return open_highest_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t queued_highest() const noexcept {
        return queued_highest_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t queued_events() const noexcept {
        return queued_events_.load(std::memory_order_relaxed);
    }
    /// Overload::prescale: how often overload has begun here, and events kept while it lasted.
    [[nodiscard]] std::uint64_t overload_times() const noexcept {
        return overload_times_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t prescale_kept() const noexcept {
        return prescale_kept_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t slots() const noexcept { return builder_.slots(); }
    /// Events that ended incomplete, and sources of which nothing came for them.
    [[nodiscard]] const Absences& absences() const noexcept { return absences_; }

private:
    static constexpr std::uint32_t burst = 64;
    struct Input {
        std::array<assemble::Descriptor, burst> items;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        TimeNs watermark = std::numeric_limits<TimeNs>::min();
        bool finished = false;  ///< nothing more comes
    };

    [[nodiscard]] std::size_t take_descriptors() noexcept;
    [[nodiscard]] std::size_t send_commands() noexcept;
    [[nodiscard]] std::size_t send_events() noexcept;
    void refill(std::size_t rx) noexcept;
    void note_absent(const assemble::Event& event) noexcept;
    void ask_for_record(const assemble::Event& event) noexcept;
    void watch_levels() noexcept;
    void make_room() noexcept;
    void finish_if_done() noexcept;
    [[nodiscard]] BuildSignals& own() noexcept { return signals_.build[config_.builder.shard]; }

    Config config_;
    RunSignals& signals_;
    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    assemble::EventTally events_;
    assemble::EventBuilder builder_;
    Absences absences_;
    std::vector<Input> inputs_;
    bool input_done_ = false;
    bool closed_all_ = false;  ///< after it: what was open
    std::atomic<std::uint64_t> placed_bytes_{0};
    std::atomic<std::uint32_t> open_events_{0};
    std::atomic<std::uint32_t> queued_events_{0};
    std::atomic<std::uint32_t> open_highest_{0};
    std::atomic<std::uint32_t> queued_highest_{0};
    bool overloaded_ = false;  ///< is counted in RunSignals::overloaded
    std::atomic<std::uint64_t> overload_times_{0};
    std::atomic<std::uint64_t> prescale_kept_{0};
};

}  // namespace weir::stages
