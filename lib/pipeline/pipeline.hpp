// A run's stages, rings and buffers, put together as the plan says, and the lcores that poll them. Builds everything
// before the first packet; owns it until the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/huge_bytes.hpp"
#include "pipeline/bottleneck.hpp"
#include "pipeline/event_numbers.hpp"
#include "pipeline/levels.hpp"
#include "pipeline/run_flows.hpp"
#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "port/live_clock.hpp"
#include "port/live_port.hpp"
#include "record/recorder.hpp"
#include "stages/build_stage.hpp"
#include "stages/feeder.hpp"
#include "stages/pedestal_keeper.hpp"
#include "stages/reduce_setup.hpp"
#include "stages/rx/rx_stage.hpp"
#include "stages/sink_thread.hpp"
#include "stages/stage.hpp"
#include "stages/work_stage.hpp"

namespace weir::pipeline {

class Pipeline {
public:
    struct Options {
        RunConfig config;
        Plan plan;
        std::vector<StreamRuntime> streams;
        std::vector<SourceGeometry> geometry;
        std::shared_ptr<const ReduceSetup> reduce;     ///< loaded
        std::shared_ptr<PedestalSetup> pedestals;      ///< null: none are followed
        std::filesystem::path snapshots;               ///< where snapshots of pedestals go; empty: nowhere
        bool wait = false;                             ///< nothing is lost for want of room: the input waits
        std::optional<CaptureFeeder::Config> capture;  ///< replay instead of live ports
        std::vector<store::EventSink*> sinks;          ///< none: events are counted and forgotten
        AnswerLog* answers = nullptr;                  ///< replay: where answers to RoCE requests are kept
        Recorder* recorder = nullptr;                  ///< null: packets are not recorded
    };

    /// EAL runs. Throws core::RunError or core::UsageError; nothing is polled yet.
    explicit Pipeline(Options options);
    ~Pipeline();
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    void start();
    /// Takes no more input; what is under way is finished: open events are closed as incomplete.
    void stop_input() noexcept { signals_.stop_input.store(true, std::memory_order_relaxed); }
    /// Everything has reached the sink.
    [[nodiscard]] bool finished() const noexcept;
    /// Joins lcores and threads; after finished().
    void join();

    /// A simulated detector has sent everything and it has been taken.
    [[nodiscard]] bool input_exhausted() const noexcept;

    /// Keeps clocks in step; for the control thread, many times a second.
    void look();
    /// Why what lcores use may be swapped out, in words; empty if it may not, or nothing is said of it (a replay).
    [[nodiscard]] const std::string& unlocked() const noexcept { return unlocked_; }
    [[nodiscard]] const std::vector<std::unique_ptr<reduce::FragmentConverter>>& converters() const noexcept {
        return converters_;
    }
    /// Of live input; null in a replay, whose time is the capture's.
    [[nodiscard]] const port::LiveClock* clock() const noexcept { return clock_.get(); }
    /// The flow rules of the ports; update() and what it changes are the control thread's.
    [[nodiscard]] RunFlows& flows() noexcept { return *flows_; }
    [[nodiscard]] const RunFlows& flows() const noexcept { return *flows_; }
    /// How the control thread connects and disconnects the queue pair of `source` while the run goes on; null if weir
    /// does not answer it.
    [[nodiscard]] roce::QueuePairControl* queue_pair_control(std::uint32_t source) noexcept;

    /// How full everything is; for the control thread, at any time.
    [[nodiscard]] Levels levels() const;
    /// What everybody has done since the start; likewise.
    [[nodiscard]] Usage usage(double seconds) const;

    [[nodiscard]] const Options& options() const noexcept { return options_; }
    [[nodiscard]] const std::vector<std::unique_ptr<RxStage>>& rx() const noexcept { return rx_; }
    /// The shards of the event builder.
    [[nodiscard]] const std::vector<std::unique_ptr<BuildStage>>& build() const noexcept { return build_; }
    [[nodiscard]] const std::vector<std::unique_ptr<WorkStage>>& work() const noexcept { return work_; }
    /// One for each of Options::sinks.
    [[nodiscard]] const std::vector<std::unique_ptr<SinkThread>>& sinks() const noexcept { return sinks_; }
    /// As far as look() has taken them; whole after join().
    [[nodiscard]] const EventNumbers& numbers() const noexcept { return numbers_; }
    [[nodiscard]] const PedestalKeeper* pedestals() const noexcept { return pedestals_.get(); }
    [[nodiscard]] const CaptureFeeder* capture() const noexcept { return capture_.get(); }
    /// A looped capture: by how much each pass moves event numbers; 0 where there was no second pass.
    [[nodiscard]] std::uint64_t numbers_per_pass() const noexcept {
        return passes_ != nullptr ? passes_->span.load(std::memory_order_relaxed) : 0;
    }
    [[nodiscard]] const std::vector<std::unique_ptr<SimulatorFeeder>>& simulators() const noexcept {
        return simulators_;
    }
    [[nodiscard]] const std::vector<std::unique_ptr<port::LivePort>>& ports() const noexcept { return ports_; }

private:
    [[nodiscard]] bool is_live() const noexcept { return !options_.capture.has_value(); }

    struct Lcore {
        std::uint32_t id = 0;
        std::vector<Stage*> stages;
        const RunSignals* signals = nullptr;
        const port::LiveClock* clock = nullptr;
        IdleMode idle = IdleMode::pause;
        std::unique_ptr<PollCounts> turns;  ///< of all its stages together
    };

    void make_answers(std::size_t index, RxStage::Config& stage, const std::vector<std::uint16_t>& owners);
    void make_inputs(std::vector<RxStage::Config>& rx);
    void settle_passes();
    void make_port(std::size_t index, std::vector<RxStage::Config>& rx);
    [[nodiscard]] port::BufferPool& pool_of(std::size_t port, std::uint32_t queue);
    void make_rx(std::vector<RxStage::Config>& rx);
    void make_build();
    void make_work();
    void make_sinks();
    void make_lcores();
    static int run_lcore(void* argument);

    template <class T>
    using Rings = std::vector<std::unique_ptr<port::Ring<T>>>;

    Options options_;
    std::string unlocked_;
    RunSignals signals_;
    std::vector<std::unique_ptr<RxSignals>> rx_signals_;
    std::vector<std::unique_ptr<port::BufferPool>> pools_;   ///< as in the plan
    std::vector<std::unique_ptr<flow::Steering>> steering_;  ///< per port
    Rings<port::Packet> packet_rings_;
    Rings<assemble::Descriptor> descriptor_rings_;  ///< per builder shard and rx
    Rings<assemble::Command> command_rings_;        ///< per builder shard and rx
    Rings<assemble::Message*> recycle_rings_;       ///< per worker and rx
    Rings<assemble::Event*> event_rings_;           ///< per worker and builder shard
    Rings<assemble::Event*> released_rings_;        ///< per worker and builder shard
    Rings<OutputBuffer*> free_rings_;               ///< per worker
    Rings<OutputBuffer*> full_rings_;               ///< per worker
    Rings<OutputBuffer*> sink_rings_;               ///< from each sink to the next
    std::vector<core::HugeBytes> output_memory_;    ///< per worker
    std::vector<std::unique_ptr<OutputBuffer>> output_buffers_;
    std::unique_ptr<PassSignals> passes_;
    std::unique_ptr<CaptureFeeder> capture_;
    std::vector<std::unique_ptr<SimulatorFeeder>> simulators_;
    std::unique_ptr<port::LiveClock> clock_;
    std::vector<std::unique_ptr<reduce::FragmentConverter>> converters_;  ///< of each rx lcore, or none
    std::vector<std::unique_ptr<port::LivePort>> ports_;
    std::unique_ptr<RunFlows> flows_;                  ///< before the ports go
    std::unique_ptr<assemble::EventRoom> event_room_;  ///< where queue pairs are answered and nothing waits
    std::vector<std::unique_ptr<roce::QueuePairControl>> queue_pairs_;  ///< per rx
    std::vector<std::unique_ptr<RxStage>> rx_;
    std::unique_ptr<assemble::ShardBoard> board_;  ///< only where there are several builder shards
    EventNumbers numbers_;
    std::vector<std::unique_ptr<BuildStage>> build_;
    std::unique_ptr<PedestalKeeper> pedestals_;
    std::vector<std::unique_ptr<WorkStage>> work_;
    std::vector<std::unique_ptr<SinkThread>> sinks_;
    std::vector<Lcore> lcores_;
    bool running_ = false;
    std::uint32_t pool_highest_ = 0;  ///< as seen by look()
};

/// Wall clock, UNIX time.
[[nodiscard]] TimeNs wall_ns() noexcept;

}  // namespace weir::pipeline
