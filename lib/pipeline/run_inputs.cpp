#include "pipeline/run_inputs.hpp"

#include <algorithm>

#include "core/doing.hpp"
#include "plan/setup.hpp"
#include "port/port_config.hpp"

namespace weir::pipeline {

RunInputs::RunInputs(const config::RunConfig& config, const plan::Plan& plan, const std::vector<std::uint16_t>& owners,
                     const std::optional<stages::CaptureFeeder::Config>& capture, RunPools& pools, RunRings& rings)
    : config_(config), plan_(plan), pools_(pools), rings_(rings) {
    const core::Doing doing("packet buffers");
    if (capture.has_value()) {
        make_capture(*capture);
        return;
    }
    for (std::uint32_t port = 0; port < config.ports.size(); ++port) make_port(port, owners);
}

void RunInputs::make_capture(const stages::CaptureFeeder::Config& config) {
    if (config.loop > 1) passes_ = std::make_unique<stages::PassSignals>(plan_.rx.size());
    capture_ = std::make_unique<stages::CaptureFeeder>(config, rings_.capture(), pools_.front(), passes_.get());
}

void RunInputs::make_port(std::uint32_t index, const std::vector<std::uint16_t>& owners) {
    const config::PortConfig& config = config_.ports[index];
    port::LivePortConfig live = port::live_port_config(config, static_cast<std::uint8_t>(index));
    live.answer_queues = static_cast<std::uint16_t>(plan::answering_lcores(config_, index, owners).size());
    if (stages::SimulatorFeeder::is_simulator(config.device)) make_simulator(index, live);
    std::vector<port::BufferPool*> pools;
    for (std::uint32_t queue = 0; queue < live.queues; ++queue) pools.push_back(&pools_.of_queue(index, queue));
    ports_.push_back(std::make_unique<port::LivePort>(live, pools));
}

/// What the port polls is then the simulator's device.
void RunInputs::make_simulator(std::uint32_t index, port::LivePortConfig& live) {
    const config::PortConfig& config = config_.ports[index];
    std::uint32_t sources = 0;
    for (const config::StreamConfig& stream : config_.streams)
        if (stream.port == index) sources += stream.source_count;
    simulators_.push_back(std::make_unique<stages::SimulatorFeeder>(
        stages::SimulatorFeeder::parse_device(config.device, sources, config_.formats), config.name,
        pools_.of_queue(index, 0)));
    live.device = simulators_.back()->device();
    live.args.reset();
    live.queues = 1;
}

void RunInputs::connect(std::vector<stages::RxStage::Config>& rx) const {
    if (capture_ != nullptr) rx.front().rings.push_back({&rings_.capture(), &capture_->ended()});
    for (std::uint32_t port = 0; port < ports_.size(); ++port)
        for (const plan::Placement::Queue& queue : plan_.placement.queues)
            if (queue.port == port)
                rx[queue.rx].ports.push_back({ports_[port].get(), static_cast<std::uint16_t>(queue.queue)});
}

core::TimeNs RunInputs::nap_ns(std::size_t rx) const noexcept {
    // What one rx lcore hands to another waits in a short ring.
    if (plan_.rx.size() > 1 || ports_.empty()) return port::LivePort::nap_ns_default;
    core::TimeNs shortest = core::ns_per_s;
    for (const plan::Placement::Queue& queue : plan_.placement.queues)
        if (queue.rx == rx) shortest = std::min(shortest, ports_[queue.port]->nap_ns());
    return shortest;
}

void RunInputs::begin() {
    for (const auto& port : ports_) port->begin();
}

void RunInputs::start(const stages::RunSignals& signals) {
    if (capture_ != nullptr) capture_->start(signals);
    for (const auto& simulator : simulators_) simulator->start(signals);
}

void RunInputs::end_unstarted() noexcept {
    if (capture_ != nullptr) capture_->end_unstarted();
}

void RunInputs::look() {
    for (const auto& port : ports_) port->look();
}

void RunInputs::join() {
    if (capture_ != nullptr) capture_->join();
    for (const auto& simulator : simulators_) simulator->join();
}

bool RunInputs::exhausted() const noexcept {
    if (simulators_.empty() || simulators_.size() != ports_.size()) return false;
    return std::ranges::all_of(simulators_, [](const auto& simulator) { return simulator->drained(); });
}

}  // namespace weir::pipeline
