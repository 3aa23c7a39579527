#include "run/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "port/device_problem.hpp"
#include "port/free_memory.hpp"
#include "port/pci_devices.hpp"
#include "run/captures.hpp"
#include "run/preflight.hpp"

namespace weir::run {

namespace {

/// In a replay a device is only a name.
void check_device_names(const config::RunConfig& config) {
    for (const config::PortConfig& port : config.ports)
        if (const std::string problem = port::device_name_problem(port.device); !problem.empty())
            throw core::UsageError(fmt::format("{}:{}: port.device: found \"{}\"; accepted: {}", port.place.file,
                                               port.place.line, port.device, problem));
}

/// What the configuration may say and this version does not do: refused, rather than ignored.
void refuse_unsupported(const config::RunConfig& config) {
    if (config.ports.size() > 256)
        throw core::UsageError(fmt::format("[[port]]: found {} ports; accepted: at most 256", config.ports.size()));
}

}  // namespace

Preparation::Preparation(RunOptions options) : options_(std::move(options)) {
    refuse_unsupported(options_.config);
    if (is_live()) check_device_names(options_.config);
    streams_ = plan::make_streams(options_.config);
    geometry_ = plan::make_geometry(options_.config, streams_);
    reduce_ = std::make_shared<stages::ReduceSetup>(options_.config);
    input_.output_buffer_bytes = reduce_->output_buffer_bytes();
    input_.replay = !is_live();
    if (is_replay()) {
        options_.capture->ports = port_indices(options_);
        measure_captures(*options_.capture, input_);
    }
    look_at_machine(options_.config, input_);
    for (const stages::StreamRuntime& stream : streams_)
        input_.header_bytes.push_back(std::max(stream.context.header_read_bytes, stream.context.header_bytes));
    input_.number_bits = is_builder() ? std::vector<std::uint8_t>(geometry_.size(), 64)
                                      : plan::make_number_bits(options_.config, streams_);
    plan_ = make_plan(options_.config, geometry_, input_);
    add_reduce_memory();
    if (is_replay()) options_.capture->blocks = plan_.capture_blocks;
}

void Preparation::add_reduce_memory() {
    plan_.reduce = reduce_->memory(static_cast<std::uint32_t>(plan_.work.size()));
    plan_.memory.reduce_bytes = plan_.reduce.sum();
}

void Preparation::print() const {
    fmt::print("{}\n", print_config(options_.cluster ? options_.cluster->whole : options_.config));
    std::string line;
    const std::string plan_text = plan_.text();
    for (const char c : plan_text) {
        if (line.empty()) line = "# ";
        line += c;
        if (c != '\n') continue;
        fmt::print("{}", line);
        line.clear();
    }
    for (const std::string& warning : plan_.warnings) fmt::print("# warning: {}\n", warning);
    for (const KeptPrivilege& kept : kept_for_devices(options_.config))
        fmt::print("# kept while running: {}, {}\n", capability_name(kept.capability), kept.why);
}

void Preparation::check_machine() const {
    check_memory(options_.config, plan_, port::free_memory(), [this](std::uint64_t memory_bytes) {
        config::RunConfig other = options_.config;
        other.events.memory_bytes = memory_bytes;
        return make_plan(other, geometry_, input_);
    });
    if (is_live()) check_host(options_.config, streams_, geometry_, plan_, options_.force);
}

void Preparation::check_devices() const {
    if (!is_live()) return;
    for (const config::PortConfig& port : options_.config.ports)
        if (config::is_pci_address(port.device))
            if (const std::string problem = port::pci_problem(port.device); !problem.empty())
                throw core::RunError(fmt::format("port '{}': {}", port.name, problem));
}

void Preparation::load() {
    reduce_ = std::make_shared<stages::ReduceSetup>(options_.config);
    reduce_->load();
    add_reduce_memory();
    pedestals_ = reduce_->make_pedestals(options_.config);
}

port::EalConfig Preparation::eal() const {
    port::EalConfig eal;
    eal.lcores = plan_.placement.lcores();
    eal.pin = plan_.pin;
    eal.touch = is_live();
    eal.cpus = plan_.host.usable();
    eal.other_cpus = plan_.placement.housekeeping;
    eal.telemetry = options_.telemetry;
    eal.memory_bytes = plan_.eal_memory_bytes;
    eal.node_memory_bytes = plan_.node_memory_bytes;
    std::vector<std::string> devices;
    if (is_live())
        for (const config::PortConfig& port : options_.config.ports) {
            devices.push_back(port.device);
            if (config::is_pci_address(port.device)) eal.pci.push_back(port.devargs());
        }
    eal.drivers = port::drivers_of(devices);
    return eal;
}

std::vector<KeptPrivilege> Preparation::kept_privileges(std::span<const std::filesystem::path> folders) const {
    std::vector<KeptPrivilege> keep = kept_for_devices(options_.config);
    const bool has_pci = !plan_.node_memory_bytes.empty();
    for (KeptPrivilege& more : kept_for_process(has_pci, folders)) keep.push_back(std::move(more));
    return keep;
}

}  // namespace weir::run
