// What the parts of a run have done so far, collected for find_bottleneck.
#include <fmt/format.h>

#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

namespace {

std::uint64_t refused(const core::PacketTally& packets) {
    using enum core::PacketCounter;
    return packets.get(no_room) + packets.get(queue_full) + packets.get(prescaled);
}

}  // namespace

Usage Pipeline::usage(double seconds) const {
    Usage usage;
    const Plan& plan = options_.plan;
    usage.seconds = seconds;
    for (std::size_t i = 0; i < rx_.size(); ++i) {
        usage.stages.push_back({fmt::format("rx{}", i), plan.rx[i], rx_[i]->polls()});
        usage.refused_packets += refused(rx_[i]->packets());
    }
    for (std::size_t i = 0; i < build_.size(); ++i) {
        usage.stages.push_back({fmt::format("build{}", i), plan.build[i], build_[i]->polls()});
        usage.refused_packets += refused(build_[i]->packets());
        usage.evicted_events += build_[i]->events().get(core::EventCounter::incomplete_evicted);
    }
    for (std::size_t i = 0; i < work_.size(); ++i)
        usage.stages.push_back({fmt::format("work{}", i), plan.work[i], work_[i]->polls()});
    for (const Lcore& lcore : lcores_) usage.lcores.push_back({lcore.id, lcore.turns->values()});
    // The one that is behind is what the run waits for.
    for (const auto& sink : sinks_)
        usage.sink_bytes = std::min(usage.sink_bytes.value_or(sink->bytes()), sink->bytes());
    if (capture_ != nullptr)
        usage.reader = Usage::Reader{static_cast<double>(capture_->waiting_ns()) * 1e-9,
                                     static_cast<double>(capture_->pacing_ns()) * 1e-9};
    return usage;
}

}  // namespace weir::pipeline
