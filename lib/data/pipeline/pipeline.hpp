// A run's stages, put together as the plan says, with what is between and around them: rings, buffers, inputs, outputs,
// and the lcores that poll them. Builds everything before the first packet; owns it until the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/cluster_thread.hpp"
#include "pipeline/bottleneck.hpp"
#include "pipeline/event_numbers.hpp"
#include "pipeline/lcores.hpp"
#include "pipeline/levels.hpp"
#include "pipeline/run_flows.hpp"
#include "pipeline/run_inputs.hpp"
#include "pipeline/run_outputs.hpp"
#include "pipeline/run_ports.hpp"
#include "pipeline/run_rings.hpp"
#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "port/live_clock.hpp"
#include "record/recorder.hpp"
#include "stages/build_stage.hpp"
#include "stages/capture_feeder.hpp"
#include "stages/output_fence.hpp"
#include "stages/pedestal_keeper.hpp"
#include "stages/reduce_setup.hpp"
#include "stages/rx/rx_stage.hpp"
#include "stages/stage.hpp"
#include "stages/work_stage.hpp"

namespace weir::pipeline {

class Pipeline {
public:
    struct Options {
        config::RunConfig config;
        plan::Plan plan;
        std::vector<stages::StreamRuntime> streams;
        std::vector<stages::SourceGeometry> geometry;
        std::shared_ptr<const stages::ReduceSetup> reduce;     ///< loaded
        std::shared_ptr<stages::PedestalSetup> pedestals;      ///< null: none are followed
        std::filesystem::path snapshots;                       ///< where snapshots of pedestals go; empty: nowhere
        bool wait = false;                                     ///< nothing is lost for want of room: the input waits
        std::optional<stages::CaptureFeeder::Config> capture;  ///< replay instead of live ports
        fabric::ClusterThread* builder = nullptr;  ///< of a cluster: what it builds is the input, instead of live ports
        std::vector<store::EventSink*> sinks;      ///< none: events are counted and forgotten
        store::LatestEvent* latest_event = nullptr;  ///< sees what goes to the sinks; null: nobody looks
        stages::AnswerLog* answers = nullptr;        ///< replay: where answers to RoCE requests are kept
        record::Recorder* recorder = nullptr;        ///< null: packets are not recorded
        RunPorts* ports = nullptr;                   ///< devices that are up already; null: the run has its own
        stages::MakeBuiltInDevice make_built_in{};   ///< for ports of its own
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
    [[nodiscard]] bool input_exhausted() const noexcept { return inputs_->exhausted(); }

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
    /// Packets come from devices, and time is now.
    [[nodiscard]] bool is_live() const noexcept { return !options_.capture.has_value() && !is_builder(); }
    [[nodiscard]] bool is_builder() const noexcept { return options_.builder != nullptr; }
    [[nodiscard]] const std::vector<std::unique_ptr<stages::RxStage>>& rx() const noexcept { return rx_; }
    /// The shards of the event builder.
    [[nodiscard]] const std::vector<std::unique_ptr<stages::BuildStage>>& build() const noexcept { return build_; }
    [[nodiscard]] const std::vector<std::unique_ptr<stages::WorkStage>>& work() const noexcept { return work_; }
    /// One for each of Options::sinks.
    [[nodiscard]] const std::vector<std::unique_ptr<stages::SinkThread>>& sinks() const noexcept {
        return outputs_.sinks();
    }
    /// As far as look() has taken them; whole after join().
    [[nodiscard]] const EventNumbers& numbers() const noexcept { return numbers_; }
    [[nodiscard]] const stages::PedestalKeeper* pedestals() const noexcept { return pedestals_.get(); }
    [[nodiscard]] const stages::CaptureFeeder* capture() const noexcept { return inputs_->capture(); }
    /// A looped capture: by how much each pass moves event numbers; 0 where there was no second pass.
    [[nodiscard]] std::uint64_t numbers_per_pass() const noexcept {
        const stages::PassSignals* const passes = inputs_->passes();
        return passes != nullptr ? passes->span.load(std::memory_order_relaxed) : 0;
    }
    [[nodiscard]] const std::vector<std::unique_ptr<stages::BuiltInDevice>>& built_in() const noexcept {
        return inputs_->built_in();
    }
    [[nodiscard]] const std::vector<std::unique_ptr<port::LivePort>>& ports() const noexcept {
        return inputs_->ports();
    }

private:
    [[nodiscard]] std::vector<stages::RxStage::Config> connect_rx();
    void make_rx(std::vector<stages::RxStage::Config> configs);
    void make_answers(std::size_t index, stages::RxStage::Config& stage);
    void measure_passes(stages::PassSignals& passes) const;
    void build_for_cluster(stages::RxStage::Config& stage) const;
    [[nodiscard]] std::vector<std::uint8_t> number_bits() const;
    [[nodiscard]] stages::BuildStage::Config build_config();
    void make_build();
    void make_work();
    void make_lcores();

    Options options_;
    std::vector<std::uint16_t> owners_;  ///< the rx lcore of each source
    std::string unlocked_;
    stages::RunSignals signals_;
    std::vector<std::unique_ptr<stages::RxSignals>> rx_signals_;
    std::unique_ptr<RunPorts> own_ports_;  ///< null: they are somebody else's
    RunPorts& ports_;
    std::vector<std::unique_ptr<steer::Steering>> steering_;  ///< per port
    RunRings rings_;
    std::unique_ptr<fabric::BlockQueue> blocks_;  ///< a builder of a cluster
    std::unique_ptr<stages::OutputFence> fence_;  ///< likewise
    RunOutputs outputs_;
    std::unique_ptr<port::LiveClock> clock_;
    std::vector<std::unique_ptr<reduce::FragmentConverter>> converters_;  ///< of each rx lcore, or none
    std::unique_ptr<RunInputs> inputs_;
    std::unique_ptr<RunFlows> flows_;                  ///< before the ports go
    std::unique_ptr<assemble::EventRoom> event_room_;  ///< where queue pairs are answered and nothing waits
    std::vector<std::unique_ptr<roce::QueuePairControl>> queue_pairs_;  ///< per rx
    std::vector<std::unique_ptr<stages::RxStage>> rx_;
    std::unique_ptr<assemble::ShardBoard> board_;  ///< only where there are several builder shards
    EventNumbers numbers_;
    std::vector<std::unique_ptr<stages::BuildStage>> build_;
    std::unique_ptr<stages::PedestalKeeper> pedestals_;
    std::vector<std::unique_ptr<stages::WorkStage>> work_;
    Lcores lcores_;
    bool running_ = false;
};

}  // namespace weir::pipeline
