#include "pipeline/run_ports.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/device_facts.hpp"
#include "core/allocation_context.hpp"
#include "core/error.hpp"
#include "plan/setup.hpp"
#include "port/port_config.hpp"

namespace weir::pipeline {

RunPorts::RunPorts(const config::RunConfig& config, const plan::Plan& plan, stages::MakeBuiltInDevice make_built_in)
    : config_(config),
      plan_(plan),
      owners_(plan::make_owners(config_, plan_.placement)),
      pools_(plan_),
      make_(std::move(make_built_in)) {}

void RunPorts::open() {
    const core::AllocationContext allocating("packet buffers");
    if (std::exchange(open_, true)) return;
    for (std::uint32_t port = 0; port < config_.ports.size(); ++port) open_port(port);
}

void RunPorts::open_port(std::uint32_t index) {
    const config::PortConfig& config = config_.ports[index];
    port::LivePortConfig live = port::live_port_config(config, static_cast<std::uint8_t>(index));
    live.answer_queues = static_cast<std::uint16_t>(plan::answering_lcores(config_, index, owners_).size());
    if (config::is_simulator(config.device)) make_built_in(index, live);
    std::vector<port::BufferPool*> pools;
    for (std::uint32_t queue = 0; queue < live.queues; ++queue) pools.push_back(&pools_.of_queue(index, queue));
    ports_.push_back(std::make_unique<port::LivePort>(live, pools));
}

/// What the port polls is then that device.
void RunPorts::make_built_in(std::uint32_t index, port::LivePortConfig& live) {
    const config::PortConfig& config = config_.ports[index];
    std::uint32_t sources = 0;
    for (const config::StreamConfig& stream : config_.streams)
        if (stream.port == index) sources += stream.source_count;
    if (!make_)
        throw core::UsageError(
            fmt::format("port '{}': this program has no simulated detector; give it another device", config.name));
    built_in_.push_back(make_({.text = config.device,
                               .port = config.name,
                               .sources = sources,
                               .queue_entries = config.rx_descriptors,
                               .formats = config_.formats},
                              pools_.of_queue(index, 0)));
    live.device = built_in_.back()->device();
    live.args.reset();
    live.queues = 1;
}

void RunPorts::begin() {
    pools_.begin();
    for (const auto& port : ports_) port->begin();
}

void RunPorts::idle() noexcept {
    for (const auto& port : ports_) {
        port->idle();
        port->look();
    }
}

}  // namespace weir::pipeline
