#include "doctor/examine.hpp"

#include <algorithm>

#include "doctor/device_probe.hpp"
#include "doctor/disk_trial.hpp"
#include "doctor/live_facts.hpp"
#include "doctor/read_host.hpp"
#include "plan/setup.hpp"
#include "stages/reduce_setup.hpp"

namespace weir::doctor {

namespace {

std::vector<std::uint32_t> header_bytes_of(const std::vector<stages::StreamRuntime>& streams) {
    std::vector<std::uint32_t> bytes;
    for (const stages::StreamRuntime& stream : streams) bytes.push_back(stream.context.header_bytes);
    return bytes;
}

}  // namespace

Examination::Examination(const config::RunConfig* config, ExamineOptions options)
    : config_(config), options_(std::move(options)) {
    if (config_ == nullptr) return;
    streams_ = plan::make_streams(*config_);
    geometry_ = plan::make_geometry(*config_, streams_);
    header_bytes_ = header_bytes_of(streams_);
}

bool Examination::wants(Needs needs) const {
    for (const Check& check : checks())
        if (check.needs == needs &&
            (options_.only.empty() || std::ranges::find(options_.only, check.name) != options_.only.end()))
            return true;
    return false;
}

/// For the machine that the facts are of.
void Examination::make_plan() {
    plan::PlanInput input;
    input.host = host_.topology;
    for (const config::PortConfig& port : config_->ports)
        input.port_nodes.push_back(port::device_node(port.devargs(), options_.root));
    for (const stages::StreamRuntime& stream : streams_)
        input.header_bytes.push_back(std::max(stream.context.header_read_bytes, stream.context.header_bytes));
    input.number_bits = plan::make_number_bits(*config_, streams_);
    const stages::ReduceSetup reduce(*config_);
    input.output_buffer_bytes = reduce.output_buffer_bytes();
    plan_ = plan::make_plan(*config_, geometry_, input);
    plan_.reduce = reduce.memory(static_cast<std::uint32_t>(plan_.work.size()));
    plan_.memory.reduce_bytes = plan_.reduce.sum();
    run_ = {config_, &plan_, geometry_, header_bytes_};
}

void Examination::ask_devices() {
    using Devices = Known<std::vector<DeviceFacts>>;
    if (host_.root != "/") return not_recorded(host_);
    ask_kernel(host_);
    if (options_.passive)
        host_.devices = Devices::no("--passive: no device was opened");
    else if (config_ != nullptr && wants(Needs::devices))
        host_.devices = probe_devices(run_, options_.watch_s);
}

Load Examination::load() const {
    Load load = options_.load;
    if (config_ == nullptr) return load;
    std::uint64_t event = 0;
    std::uint32_t packet = 0;
    constexpr std::uint32_t headers = 42;  // Ethernet, IPv4, UDP
    for (std::size_t i = 0; i < geometry_.size(); ++i) {
        event += geometry_[i].message_bytes;
        const std::uint32_t stream = config_->sources[i].stream;
        if (geometry_[i].packet_payload_bytes > 0)
            packet = std::max(packet, geometry_[i].packet_payload_bytes + header_bytes_[stream] + headers);
    }
    if (load.packet_bytes == 0) load.packet_bytes = packet;
    if (load.event_bytes == 0) load.event_bytes = event;
    return load;
}

std::vector<Finding> Examination::look() {
    const Interest interest = config_ != nullptr ? interest_of(*config_) : Interest{};
    host_ = read_host(options_.root, interest, Depth::all);
    if (config_ != nullptr) make_plan();
    ask_devices();
    const DiskTrialLimits limits;
    if (config_ != nullptr)
        host_.disks = look_at_disks(*config_, host_, options_.passive || !wants(Needs::disk) ? nullptr : &limits);
    return judge({host_, config_ != nullptr ? &run_ : nullptr, load()}, options_.only);
}

std::vector<Finding> reasons_not_to_start(const config::RunConfig& config,
                                          const std::vector<stages::StreamRuntime>& streams,
                                          const std::vector<stages::SourceGeometry>& geometry, const plan::Plan& plan) {
    const std::vector<std::uint32_t> header_bytes = header_bytes_of(streams);
    HostFacts host = read_host("/", interest_of(config), Depth::quick);
    ask_kernel(host);
    const PlannedRun run{&config, &plan, geometry, header_bytes};
    return judge_start({host, &run, {}});
}

}  // namespace weir::doctor
