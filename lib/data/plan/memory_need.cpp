#include "plan/memory_need.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "assemble/event_builder.hpp"
#include "assemble/message_table.hpp"
#include "assemble/sequence_tracker.hpp"
#include "config/device_facts.hpp"
#include "config/sinks/pcapng.hpp"
#include "core/error.hpp"
#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "roce/listener/listener.hpp"
#include "roce/responder/frame_memory.hpp"
#include "roce/responder/in_order_receiver.hpp"
#include "store/capture/input.hpp"

namespace weir::plan {

namespace {

constexpr unsigned mib = 20;

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t large = std::uint64_t{10} << 30U;
    if (bytes >= large) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1U << 30U));
    return fmt::format("{} MiB", (bytes + (1U << mib) - 1) >> mib);
}

/// The sources that one rx lcore has.
struct OwnSources {
    std::uint32_t all = 0;
    std::uint32_t listened = 0;  ///< RoCE, in any order
    std::uint32_t reliable = 0;  ///< RoCE, connections that are answered
    std::uint32_t ordered = 0;   ///< UDP, messages in order of sequence numbers
};

bool is_ordered(const config::RunConfig& config, const config::StreamConfig& stream) {
    const wire::FormatEntry* const format = wire::find_format(stream.format);
    return format != nullptr && stream.transport == config::Transport::udp &&
           format->make_context(config::format_options(config, stream)).in_sequence;
}

/// Of one rx lcore: messages, sources, and what they are found by.
std::uint64_t rx_bytes(const config::RunConfig& config, const Plan& plan, const OwnSources& own) {
    // Sequence numbers, counters, and what else an rx lcore has of every source of the run, its own or not.
    constexpr std::uint64_t counters_bytes = 512;
    assemble::MessageTable::Config table;
    table.sources = static_cast<std::uint32_t>(config.sources.size());
    table.own.assign(table.sources, 0);
    std::fill_n(table.own.begin(), std::min(own.all, table.sources), std::uint8_t{1});
    if (own.ordered > 0) table.in_sequence.assign(std::min(own.ordered, table.sources), 1);
    table.messages_max = plan.messages_per_rx;
    table.buffers_max = plan.buffers_per_rx;
    table.copies = plan.copies;
    table.range_blocks = plan.range_blocks_per_rx;
    table.horizon = plan.horizon;
    table.keeps = std::ranges::any_of(config.streams, [](const config::StreamConfig& stream) {
        return stream.roce.service != roce::Service::listen;
    });
    std::uint64_t bytes = assemble::MessageTable::memory_bytes(table);
    bytes += table.sources * (counters_bytes + sizeof(assemble::SequenceTracker));
    if (own.listened > 0) bytes += roce::Listener::memory_bytes(own.listened, plan.psn_window);
    bytes += roce::InOrderReceiver::memory_bytes(own.reliable, plan.psn_window);
    bytes += port::IpReassembly::memory_bytes(plan.reassembly);
    return bytes;
}

std::uint64_t bookkeeping(const config::RunConfig& config, const Plan& plan) {
    std::vector<OwnSources> shares(plan.rx.size());
    const std::vector<std::uint16_t> owners = make_owners(config, plan.placement);
    for (std::size_t source = 0; source < owners.size(); ++source) {
        OwnSources& share = shares[owners[source]];
        const config::StreamConfig& stream = config.streams[config.sources[source].stream];
        ++share.all;
        if (is_ordered(config, stream)) ++share.ordered;
        if (stream.transport == config::Transport::roce)
            ++(stream.roce.service == roce::Service::rc ? share.reliable : share.listened);
    }
    std::uint64_t bytes = 0;
    for (const OwnSources& own : shares) bytes += rx_bytes(config, plan, own);
    assemble::EventBuilder::Config builder;
    builder.sources = static_cast<std::uint32_t>(config.sources.size());
    builder.open_max = plan.open_max;
    builder.queued_max = plan.queued_max;
    builder.horizon = plan.horizon;
    builder.rx_count = static_cast<std::uint32_t>(plan.rx.size());
    builder.messages_max = plan.messages_per_rx;
    return bytes + plan.build.size() * assemble::EventBuilder::memory_bytes(builder);
}

struct Shortage {
    std::uint64_t needed = 0;
    std::uint64_t free = 0;
    std::string of;  ///< what is short, in words
};

/// What a node of a cluster holds besides: see MemoryNeed.
std::uint64_t parts_of_events(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry) {
    if (!config.cluster) return 0;
    const config::ClusterConfig& cluster = *config.cluster;
    const auto self = std::ranges::find(cluster.nodes, config.node, &config::ClusterNode::name);
    if (self == cluster.nodes.end()) return 0;
    if (self->role == config::NodeRole::readout) return cluster.memory_bytes;
    std::uint64_t event_bytes = 0;
    for (const stages::SourceGeometry& source : geometry) event_bytes += source.message_bytes;
    return cluster.credits * cluster.block * event_bytes;
}

/// Cards take hugepages, which are apart from everything else.
std::optional<Shortage> shortage_of(const Plan& plan, const port::FreeMemory& free) {
    std::uint64_t ordinary = plan.memory.sum();
    if (!plan.node_memory_bytes.empty()) {
        ordinary -= plan.memory.dpdk_bytes;
        std::uint64_t pages = 0;
        for (const port::NumaNode& node : plan.host.nodes) pages += node.hugepage_free_bytes;
        if (plan.memory.dpdk_bytes > pages)
            return Shortage{plan.memory.dpdk_bytes, pages,
                            "hugepages (more: echo N > /proc/sys/vm/nr_hugepages, N of 2 MiB each)"};
    }
    if (free.known && ordinary > free.bytes) return Shortage{ordinary, free.bytes, free.limited_by};
    return std::nullopt;
}

/// The largest events.memory that fits, in whole MiB; 0: none does.
std::uint64_t fitting_mib(const config::RunConfig& config, const port::FreeMemory& free,
                          const std::function<Plan(std::uint64_t)>& plan_for) {
    std::uint64_t fits = 0;
    std::uint64_t too_much = config.events.memory_bytes >> mib;
    while (fits + 1 < too_much) {
        const std::uint64_t middle = fits + (too_much - fits) / 2;
        (shortage_of(plan_for(middle << mib), free) ? too_much : fits) = middle;
    }
    return fits;
}

}  // namespace

std::string MemoryNeed::text() const {
    std::string parts;
    for (const auto& [bytes, what] :
         {std::pair{dpdk_bytes, "packet buffers and rings"}, std::pair{copies_bytes, "copies"},
          std::pair{bookkeeping_bytes, "bookkeeping"}, std::pair{captures_bytes, "captures"},
          std::pair{regions_bytes, "memory regions of queue pairs"}, std::pair{output_bytes, "output"},
          std::pair{reduce_bytes, "reducers"}, std::pair{record_bytes, "flight recorder"},
          std::pair{kernel_rings_bytes, "rings of kernel devices"}, std::pair{parts_bytes, "parts of events"}})
        if (bytes > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", what, size_text(bytes));
    return fmt::format("{}: {}", size_text(sum()), parts);
}

MemoryNeed memory_need(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry,
                       const Plan& plan) {
    MemoryNeed need;
    need.dpdk_bytes = plan.buffer_memory_bytes;
    need.copies_bytes = std::uint64_t{plan.copies.cells} * plan.copies.cell_bytes * plan.rx.size();
    need.bookkeeping_bytes = bookkeeping(config, plan);
    need.captures_bytes = std::uint64_t{plan.capture_blocks} * store::CaptureInput::memory_bytes;
    for (const config::StreamConfig& stream : config.streams)
        for (const config::RoceConfig::Region& at : stream.roce.regions)
            need.regions_bytes += roce::FrameMemory::memory_bytes(at.region) * (at.qp ? 1 : stream.qp.size());
    const bool writes = std::ranges::any_of(config.sinks, &config::SinkConfig::writes);
    need.output_bytes =
        plan.work.size() * std::uint64_t{plan.output_buffer_bytes} * (writes ? plan.output_buffers : 1U);
    need.reduce_bytes = plan.reduce.sum();
    for (const config::SinkConfig& sink : config.sinks)
        if (const auto* record = sink.as<config::RecorderConfig>()) need.record_bytes += record->memory_bytes;
    for (const config::PortConfig& port : config.ports)
        need.kernel_rings_bytes += std::uint64_t{config::kernel_ring_mib(port.device)} << mib;
    need.parts_bytes = parts_of_events(config, geometry);
    return need;
}

void check_memory(const config::RunConfig& config, const Plan& plan, const port::FreeMemory& free,
                  const std::function<Plan(std::uint64_t)>& plan_for) {
    const std::optional<Shortage> shortage = shortage_of(plan, free);
    if (!shortage.has_value()) return;
    const std::uint64_t fits = fitting_mib(config, free, plan_for);
    const bool parts_are_most = 2 * plan.memory.parts_bytes > plan.memory.sum();
    const std::string advice =
        fits > 0 ? fmt::format("memory = \"{}MiB\" in [events] would fit", fits)
        : parts_are_most
            ? "most of it is parts of events: less memory in [cluster], or for a builder fewer credits or smaller blocks"
            : fmt::format(
                  "no events.memory is small enough: "
                  "{} sources with {} open events take {} whatever it says (fewer sources, or a smaller window)",
                  config.sources.size(), plan.open_max, size_text(plan.memory.bookkeeping_bytes));
    throw core::RunError(fmt::format("the run needs {} of memory, and {} are free of {}; {}. It needs {}",
                                     size_text(shortage->needed), size_text(shortage->free), shortage->of, advice,
                                     plan.memory.text()));
}

}  // namespace weir::plan
