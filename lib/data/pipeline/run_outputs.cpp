#include "pipeline/run_outputs.hpp"

#include <algorithm>

namespace weir::pipeline {

RunOutputs::RunOutputs(const plan::Plan& plan, std::vector<store::EventSink*> sinks, store::LatestEvent* latest_event,
                       RunRings& rings, stages::OutputFence* fence)
    : plan_(plan), sinks_(std::move(sinks)), latest_event_(latest_event), rings_(rings), fence_(fence) {}

void RunOutputs::make_buffers(stages::WorkStage::Config& worker) {
    worker.to_file = !sinks_.empty();
    worker.null_buffer_bytes = plan_.output_buffer_bytes;
    if (sinks_.empty()) return;
    for (const store::EventSink* sink : sinks_)
        worker.buffer_alignment = std::max(worker.buffer_alignment, sink->alignment());
    const std::size_t index = memory_.size();
    worker.fence = fence_;
    worker.index = static_cast<std::uint32_t>(index);
    worker.free_buffers = &rings_.free(index);
    worker.full_buffers = &rings_.full(index);
    const std::size_t buffer_bytes = plan_.output_buffer_bytes;
    memory_.emplace_back(buffer_bytes * plan_.output_buffers);
    for (std::uint32_t i = 0; i < plan_.output_buffers; ++i) {
        buffers_.push_back(std::make_unique<stages::OutputBuffer>());
        buffers_.back()->memory = memory_.back().span().subspan(i * buffer_bytes, buffer_bytes);
        buffers_.back()->worker = static_cast<std::uint32_t>(index);
        worker.free_buffers->push(buffers_.back().get());
    }
}

void RunOutputs::make_sinks(const Workers& workers) {
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
        stages::SinkThread::Config config;
        config.sink = sinks_[i];
        if (i == 0) {
            config.latest_event = latest_event_;
            for (std::size_t worker = 0; worker < workers.size(); ++worker)
                config.in.push_back(
                    {&rings_.full(worker), [stage = workers[worker].get()] { return stage->finished(); }});
        } else {
            config.in.push_back(
                {&rings_.after_sink(i - 1), [before = threads_[i - 1].get()] { return before->finished(); }});
        }
        if (i + 1 < sinks_.size())
            config.next = &rings_.after_sink(i);
        else
            for (std::size_t worker = 0; worker < workers.size(); ++worker)
                config.freed.push_back(&rings_.free(worker));
        if (i + 1 == sinks_.size()) config.fence = fence_;
        threads_.push_back(std::make_unique<stages::SinkThread>(std::move(config)));
    }
}

void RunOutputs::start() {
    for (const auto& sink : threads_) sink->start();
}

bool RunOutputs::finished() const noexcept {
    return std::ranges::all_of(threads_, [](const auto& sink) { return sink->finished(); });
}

void RunOutputs::join() {
    for (const auto& sink : threads_) sink->join();
}

}  // namespace weir::pipeline
