// Where the events of a run go: the output buffers of its workers, and a thread for each sink.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/huge_bytes.hpp"
#include "pipeline/run_rings.hpp"
#include "plan/plan.hpp"
#include "stages/sink_thread.hpp"
#include "stages/stage.hpp"
#include "stages/work_stage.hpp"

namespace weir::pipeline {

class RunOutputs {
public:
    using Sinks = std::vector<std::unique_ptr<stages::SinkThread>>;
    using Workers = std::vector<std::unique_ptr<stages::WorkStage>>;

    /// No `sinks`: events are counted and forgotten. The rings outlive this object, and the sinks and `latest_event`
    /// (null: nobody wants pictures) its threads.
    /// `fence` is told what is written; null: nobody wants to know.
    RunOutputs(const plan::Plan& plan, std::vector<store::EventSink*> sinks, store::LatestEvent* latest_event,
               RunRings& rings, stages::OutputFence* fence);

    /// Gives the next worker its buffers, in memory as the calling thread's policy says. Throws std::bad_alloc.
    void make_buffers(stages::WorkStage::Config& worker);
    /// Each sink gets all buffers, in the order in which the first one took them. When all workers are there.
    void make_sinks(const Workers& workers);

    void start();
    [[nodiscard]] bool finished() const noexcept;
    /// After finished().
    void join();

    /// One for each sink.
    [[nodiscard]] const Sinks& sinks() const noexcept { return threads_; }

private:
    const plan::Plan& plan_;
    std::vector<store::EventSink*> sinks_;
    store::LatestEvent* latest_event_;
    RunRings& rings_;
    stages::OutputFence* fence_;
    std::vector<core::HugeBytes> memory_;  ///< per worker
    std::vector<std::unique_ptr<stages::OutputBuffer>> buffers_;
    Sinks threads_;
};

}  // namespace weir::pipeline
