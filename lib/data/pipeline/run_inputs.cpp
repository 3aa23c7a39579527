#include "pipeline/run_inputs.hpp"

#include <algorithm>

#include "core/allocation_context.hpp"

namespace weir::pipeline {

RunInputs::RunInputs(const plan::Plan& plan, const std::optional<stages::CaptureFeeder::Config>& capture,
                     fabric::BlockQueue* blocks, RunPorts& ports, RunRings& rings)
    : plan_(plan), blocks_(blocks), ports_(ports), rings_(rings) {
    if (capture.has_value())
        make_capture(*capture);
    else if (blocks_ == nullptr)
        ports_.open();
}

void RunInputs::make_capture(const stages::CaptureFeeder::Config& config) {
    const core::AllocationContext allocating("packet buffers");
    if (config.loop > 1) passes_ = std::make_unique<stages::PassSignals>(plan_.rx.size());
    capture_ = std::make_unique<stages::CaptureFeeder>(config, rings_.capture(), ports_.pools().front(), passes_.get());
}

void RunInputs::connect(std::vector<stages::RxStage::Config>& rx) const {
    if (capture_ != nullptr) rx.front().rings.push_back({&rings_.capture(), &capture_->ended()});
    rx.front().blocks = blocks_;
    const Ports& ports = ports_.ports();
    for (std::uint32_t port = 0; port < ports.size(); ++port)
        for (const plan::Placement::Queue& queue : plan_.placement.queues)
            if (queue.port == port)
                rx[queue.rx].ports.push_back({ports[port].get(), static_cast<std::uint16_t>(queue.queue)});
}

core::TimeNs RunInputs::nap_ns(std::size_t rx) const noexcept {
    // What one rx lcore hands to another waits in a short ring.
    if (plan_.rx.size() > 1 || ports().empty()) return port::LivePort::nap_ns_default;
    core::TimeNs shortest = core::ns_per_s;
    for (const plan::Placement::Queue& queue : plan_.placement.queues)
        if (queue.rx == rx) shortest = std::min(shortest, ports()[queue.port]->nap_ns());
    return shortest;
}

void RunInputs::begin() {
    ports_.begin();
}

void RunInputs::start(const stages::RunSignals& signals) {
    if (capture_ != nullptr) capture_->start(signals);
    for (const auto& device : built_in()) device->start(signals);
}

void RunInputs::end_unstarted() noexcept {
    if (capture_ != nullptr) capture_->end_unstarted();
}

void RunInputs::look() {
    for (const auto& port : ports()) port->look();
}

void RunInputs::join() {
    if (capture_ != nullptr) capture_->join();
    for (const auto& device : built_in()) device->join();
}

bool RunInputs::exhausted() const noexcept {
    if (built_in().empty() || built_in().size() != ports().size()) return false;
    return std::ranges::all_of(built_in(), [](const auto& device) { return device->drained(); });
}

}  // namespace weir::pipeline
