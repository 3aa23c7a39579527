#include "plan/plan.hpp"

#include <fmt/format.h>
#include <rte_config.h>

#include <algorithm>
#include <bit>

#include "assemble/shard_board.hpp"
#include "assemble/shard_of.hpp"
#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "plan/memory_plan.hpp"
#include "plan/setup.hpp"
#include "port/buffers.hpp"
#include "port/capture_blocks.hpp"
#include "port/eal.hpp"
#include "port/ring.hpp"
#include "roce/listener/listener.hpp"
#include "stages/stage.hpp"
#include "wire/network.hpp"

namespace weir::plan {

namespace {

constexpr std::uint32_t ethernet_overhead_bytes = 14 + 2 * 4 + 4;  // header, two VLAN tags, FCS if the device leaves it

void place_lcores(const config::RunConfig& config, const PlanInput& input, Plan& plan) {
    PlacementInput wanted;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const config::PortConfig& port = config.ports[i];
        const int node = i < input.port_nodes.size() ? input.port_nodes[i] : port::any_node;
        const std::uint16_t queues = config::is_simulator(port.device) ? 1 : port.queues;
        wanted.ports.push_back({port.name, queues, node});
    }
    wanted.lcores = config.lcores;
    wanted.replay = input.replay;
    wanted.reduces = !config.reduce.empty();
    wanted.writes = std::ranges::any_of(config.sinks, &config::SinkConfig::writes);
    wanted.build_max = assemble::ShardOf(stages::builders_max, input.number_bits).shards();
    wanted.lcore_ids = RTE_MAX_LCORE;
    plan.host = input.host;
    plan.port_nodes = input.port_nodes;
    plan.placement = place(plan.host, wanted);
    plan.rx = plan.placement.rx;
    plan.build = plan.placement.build;
    plan.work = plan.placement.work;
    plan.pin = plan.placement.pin;
    plan.warnings = plan.placement.warnings;
}

/// Buffers of one whole event, or 0 if sizes are not known in advance.
std::uint64_t buffers_per_event(const std::vector<stages::SourceGeometry>& geometry) {
    std::uint64_t buffers = 0;
    for (const stages::SourceGeometry& source : geometry) {
        if (source.message_bytes == 0 || source.packet_payload_bytes == 0) return 0;
        buffers += (source.message_bytes + source.packet_payload_bytes - 1) / source.packet_payload_bytes;
    }
    return buffers;
}

/// Cells that the messages of one whole event take when all payload is copied.
std::uint64_t cells_per_event(const std::vector<stages::SourceGeometry>& geometry, const assemble::CopyConfig& copies) {
    std::uint64_t cells = 0;
    for (const stages::SourceGeometry& source : geometry) {
        // Larger payload comes in IP fragments, each of which is copied.
        const std::uint64_t in_cell = std::max(1U, copies.in_cell(source.packet_payload_bytes));
        const std::uint64_t packets =
            (source.message_bytes + source.packet_payload_bytes - 1) / source.packet_payload_bytes;
        cells += (packets + in_cell - 1) / in_cell;
    }
    return cells;
}

constexpr std::uint64_t messages_max = 65536;  ///< whose bookkeeping is not worth a thought
constexpr std::uint64_t events_min = 8;        ///< open, and on their way to the sink

void size_events(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry, Plan& plan) {
    const auto sources = static_cast<std::uint64_t>(geometry.size());
    const auto rx_count = static_cast<std::uint64_t>(plan.rx.size());
    std::uint64_t per_event = buffers_per_event(geometry);
    std::uint64_t buffers = plan.buffers_for_events * rx_count;
    if (per_event > 0 && plan.cells_for_events > 0) {
        // Fixed sizes have cells only if everything is copied; then cells are what an event takes.
        per_event = cells_per_event(geometry, plan.copies);
        buffers = plan.cells_for_events * rx_count;
    }
    // Without known sizes the bookkeeping is what is bounded: this many messages at once. A few events must be open
    // however many sources there are; more than that, where they are very many, only if the operator wants it.
    const std::uint64_t least = std::clamp<std::uint64_t>(config.events.window.value_or(events_min), events_min, 64);
    std::uint64_t open = std::clamp<std::uint64_t>(messages_max / sources, least, 4096);
    plan.open_limit = fmt::format("bookkeeping for {} messages", messages_max);
    if (per_event > 0) {
        // Four fifths of the memory for events that are collecting, the rest for those on their way to the disk.
        const std::uint64_t by_memory = std::max<std::uint64_t>(1, buffers * 4 / 5 / per_event);
        if (by_memory < open) {
            open = by_memory;
            plan.open_limit = fmt::format("memory, {} {} for an event", per_event,
                                          plan.cells_for_events > 0 ? "cells for copies" : "packet buffers");
        }
    }
    if (config.events.window.has_value() && *config.events.window <= open) {
        open = *config.events.window;
        plan.open_limit = "window";
    }
    plan.open_max = static_cast<std::uint32_t>(open);
    const std::uint64_t queue_by_memory =
        per_event > 0 ? std::max<std::uint64_t>(2, buffers / per_event > open ? buffers / per_event - open : 0) : 1024;
    const std::uint64_t queue_by_bookkeeping = std::max(events_min, 5 * messages_max / sources);
    plan.queued_max = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({queue_by_memory, queue_by_bookkeeping, 1024, 16 + open * 4}));
    // Numbers are remembered for each source; of very many fewer, unless the operator says how many.
    constexpr std::uint64_t numbers_max = 1U << 22U;
    constexpr std::uint64_t usual = 1024;
    const std::uint64_t horizon =
        config.events.horizon.value_or(std::min(usual, std::max<std::uint64_t>(64, numbers_max / sources)));
    plan.horizon = std::max(static_cast<std::uint32_t>(horizon), 2 * (plan.open_max + plan.queued_max));
}

/// Sources of the rx lcore that has most of them.
std::uint32_t largest_share(const config::RunConfig& config, const Placement& placement) {
    std::vector<std::uint32_t> shares(placement.rx.size());
    for (const std::uint16_t owner : make_owners(config, placement)) ++shares[owner];
    return std::max(1U, *std::ranges::max_element(shares));
}

/// Every ring takes one of DPDK's memory zones, of which there are 2560 in a process; pools and devices take some too.
void check_counts(const Plan& plan) {
    constexpr std::size_t rings_max = 2400;
    const std::size_t rx = plan.rx.size();
    const std::size_t build = plan.build.size();
    const std::size_t work = plan.work.size();
    if (build > stages::builders_max)
        throw core::UsageError(
            fmt::format("lcores.build: found {} lcores; accepted: at most {}", build, stages::builders_max));
    const std::size_t rings = rings_between(rx, build, work);
    if (rings > rings_max)
        throw core::UsageError(fmt::format(
            "[lcores]: found {} rx, {} build and {} work lcores, which take {} rings between them; accepted: "
            "lcores that take at most {} (rx * rx + 2 * rx * build + rx * work + 2 * build * work)",
            rx, build, work, rings, rings_max));
}

/// As many PSNs as the longest message has packets of 1 KiB, four times over; the most there are where connections are
/// few, so that nothing is gained by fewer.
std::uint32_t psn_window(const Plan& plan, std::uint32_t connections) {
    constexpr std::uint32_t cells_max = 1U << 24U;
    constexpr std::uint32_t window_min = 4096;
    const std::uint32_t of_message = plan.message_bytes_max / 256;
    return std::bit_ceil(std::min(roce::Listener::psn_window_max,
                                  std::max({window_min, of_message, cells_max / std::max(1U, connections)})));
}

void size_rings(const config::RunConfig& config, Plan& plan) {
    const auto rx_count = static_cast<std::uint32_t>(plan.rx.size());
    const auto shards = static_cast<std::uint32_t>(plan.build.size());
    const bool roce = std::ranges::any_of(
        config.streams, [](const config::StreamConfig& s) { return s.transport == config::Transport::roce; });
    // Messages of an rx lcore: those of every event that is open or queued, those announced and not yet answered, and
    // what waits for its number or to be found a restart. RoCE packets out of order are messages of their own until
    // they join. Shards that ask each other to make room exceed the window until that is done.
    plan.roce_runs = roce ? 16384 : 0;
    const std::uint32_t own_sources = largest_share(config, plan.placement);
    const std::uint32_t over = shards > 1 ? shards * (assemble::ShardBoard::asked_max + 1) : 0;
    // As many as a source that has begun again may interleave.
    plan.probation_per_source =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(messages_max / own_sources, 16, 64));
    plan.messages_per_rx = (plan.open_max + plan.queued_max + over + plan.probation_per_source) * own_sources +
                           4 * port::PacketBatch::capacity + plan.roce_runs;
    plan.range_blocks_per_rx = std::min<std::uint32_t>(plan.messages_per_rx, 16384);
    plan.psn_window = psn_window(plan, own_sources);
    const std::uint32_t slots = 2 * plan.open_max + plan.queued_max + 128;
    plan.packet_ring = 1024;
    // There is a ring from each rx lcore to each other one, and what is in them is not in messages: in all, a rx lcore
    // gets 2048 places at least, so that the sum grows with the number of lcores and not with its square.
    plan.steer_ring = std::clamp(2048 / std::max(rx_count - 1, 1U), 2 * port::PacketBatch::capacity, plan.packet_ring);
    // A shard's share twice over. What does not fit waits on the rx lcore, where there is room for everything.
    plan.descriptor_ring = (shards > 1 ? 4 * plan.messages_per_rx / shards : 2 * plan.messages_per_rx) + 1024;
    plan.event_ring = slots + 1;
}

/// Divides the memory for open events between packet buffers and cells for copied payload.
void size_buffers(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry,
                  const PlanInput& input, Plan& plan) {
    const auto rx_count = static_cast<std::uint64_t>(plan.rx.size());
    const std::uint64_t element = plan.room_bytes + 512;
    const bool fixed = buffers_per_event(geometry) > 0;
    const std::uint32_t wasteful_bytes = plan.room_bytes / 4;
    const bool may_be_small = std::ranges::any_of(geometry, [&](const stages::SourceGeometry& source) {
        return source.packet_payload_bytes <= wasteful_bytes;  // 0: not known
    });
    std::uint64_t for_buffers = config.events.memory_bytes;
    if (config.events.assembly == config::AssemblyMode::copy) {
        // Everything is copied, so the buffers only have to bridge a burst; a small pool stays in cache.
        for_buffers = std::min<std::uint64_t>(for_buffers / 8, 2048 * element * rx_count);
        plan.copies.at_once_bytes = plan.room_bytes;
        plan.copies.cell_bytes = fixed ? 65536 : 16384;
    } else if (config.events.assembly == config::AssemblyMode::automatic && may_be_small && !fixed) {
        // What would waste most of its buffer is copied once half of them are held, and what is small at once, which
        // is quicker. A replay has read it into the cache just before, and refers to it.
        for_buffers /= 2;
        plan.copies.at_once_bytes = input.replay ? 0 : assemble::CopyConfig::small_bytes;
        plan.copies.bytes_max = wasteful_bytes;
    }
    const std::uint64_t for_cells = config.events.memory_bytes - for_buffers;
    const auto for_each_rx = [rx_count](std::uint64_t count) { return static_cast<std::uint32_t>(count / rx_count); };
    plan.buffers_for_events = std::max(for_each_rx(for_buffers / element), 4 * port::PacketBatch::capacity);
    plan.cells_for_events = plan.copies.payload_bytes_max() > 0 ? for_each_rx(for_cells / plan.copies.cell_bytes) : 0;
    plan.buffers_per_rx = plan.buffers_for_events;
    plan.copies.cells = plan.cells_for_events;
    if (input.replay) {
        // Messages hold no more buffers than the capture has packets, whichever rx lcore they are on; more would only
        // take time at the start. Four times as many leave the pieces of datagrams, which get a quarter, enough.
        const std::uint64_t packets = 4 * input.capture_packets + 1024;
        plan.buffers_per_rx = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.buffers_per_rx, packets));
        plan.copies.cells = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.copies.cells, packets));
        // Blocks hold what is in the ring, in open events and on its way to the sink, as long as that is little; what
        // is beyond them is copied into buffers. So they come on top of the memory for events, but as a small part of
        // it.
        constexpr std::uint64_t blocks_max = 64;
        plan.capture_blocks = static_cast<std::uint32_t>(
            std::min({blocks_max, config.events.memory_bytes / 4 / store::CaptureInput::memory_bytes,
                      input.capture_bytes / store::CaptureInput::read_bytes + 1}));
    }
    plan.copies.above_held = plan.buffers_per_rx / 2;
}

/// Pieces that the largest datagram comes in, over a path like the ports' links. What a capture's path was like nobody
/// says.
std::uint32_t pieces_of_largest(const config::RunConfig& config, const PlanInput& input) {
    constexpr std::uint32_t datagram_bytes = 65535;
    constexpr std::uint32_t usual_mtu = 1500;
    constexpr std::uint32_t headers_bytes = wire::ipv6_header_bytes + wire::ipv6_fragment_header_bytes;
    std::uint32_t mtu = input.replay ? usual_mtu : datagram_bytes;
    for (const config::PortConfig& port : config.ports)
        mtu = std::min(mtu, std::max<std::uint32_t>(port.mtu, 2 * headers_bytes));
    const std::uint32_t piece_bytes = (mtu - headers_bytes) / 8 * 8;
    return std::min((datagram_bytes + piece_bytes - 1) / piece_bytes, port::IpReassembly::pieces_max);
}

/// Room for the pieces of IP datagrams. Interleaved, every source may have begun one of 64 KiB, which with jumbo frames
/// has eight pieces; the rest is for those that lost a piece and wait for their time-out. A quarter of what messages
/// can hold at most, so that in a replay what waits here never keeps the messages from room that they were promised.
void size_reassembly(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry,
                     const PlanInput& input, Plan& plan) {
    constexpr std::uint32_t pieces_for_losses = 256;
    const auto sources = static_cast<std::uint32_t>(geometry.size());
    plan.reassembly.buffers_max =
        std::min(pieces_for_losses + sources * pieces_of_largest(config, input), plan.buffers_per_rx / 4);
    plan.reassembly.datagrams_max = plan.reassembly.buffers_max / 2;  // whole ones have at least two pieces
    plan.reassembly.timeout_ns = config.events.ip_fragment_timeout_ms * core::ns_per_ms;
    // Headers of all layers with every extension that is followed, and what the formats read.
    plan.header_bytes = wire::ethernet_header_bytes + 2 * wire::vlan_tag_bytes + wire::ipv6_header_bytes +
                        wire::ipv6_extension_bytes_max + wire::udp_header_bytes +
                        (input.header_bytes.empty() ? 0 : *std::ranges::max_element(input.header_bytes));
}

}  // namespace

void look_at_machine(const config::RunConfig& config, PlanInput& input) {
    input.host = port::host_topology();
    for (const config::PortConfig& port : config.ports)
        input.port_nodes.push_back(input.replay ? port::any_node : port::device_node(port.devargs()));
}

Plan make_plan(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry,
               const PlanInput& input) {
    Plan plan;
    place_lcores(config, input, plan);
    check_counts(plan);
    plan.shards_used = assemble::ShardOf(static_cast<std::uint32_t>(plan.build.size()), input.number_bits).shards();
    std::uint32_t room = 0;
    for (const config::PortConfig& port : config.ports)
        room = std::max({room, port.mbuf_bytes, port.mtu + ethernet_overhead_bytes,
                         config::buffer_room_bytes(port.devargs(), port.mtu)});
    plan.room_bytes = std::min<std::uint32_t>((room + 63) / 64 * 64, 65535 - 128);
    size_buffers(config, geometry, input, plan);
    size_reassembly(config, geometry, input, plan);
    size_events(config, geometry, plan);
    std::uint32_t largest = 0;
    for (const config::StreamConfig& stream : config.streams)
        largest = std::max(largest,
                           stream.max_message_bytes > 0 ? stream.max_message_bytes : wire::message_bytes_max_default);
    for (const stages::SourceGeometry& source : geometry) largest = std::max(largest, source.message_bytes);
    plan.message_bytes_max = largest;
    size_rings(config, plan);
    // Where whole events have to find room in a buffer, a few of them have to do.
    constexpr std::uint64_t output_bytes_max = std::uint64_t{64} << 20U;
    plan.output_buffer_bytes = input.output_buffer_bytes;
    plan.output_buffers =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(output_bytes_max / plan.output_buffer_bytes, 4, 16));
    const bool hugepages = !input.replay && std::ranges::any_of(config.ports, [](const config::PortConfig& port) {
        return config::is_pci_address(port.device);
    });
    size_memory(config, input.replay, hugepages, plan);
    plan.memory = memory_need(config, geometry, plan);
    return plan;
}

namespace {

/// What reducers hold, if anything: a line of its own, because it is no part of DPDK's memory.
std::string reduce_text(const config::ReduceMemory& memory) {
    if (memory.sum() == 0) return {};
    const auto whole_mib = [](std::uint64_t bytes) { return (bytes + (1U << 20U) - 1) >> 20U; };
    std::string parts;
    for (const auto& [bytes, what] :
         {std::pair{memory.calibration_bytes, "calibration"}, std::pair{memory.noise_bytes, "noise"},
          std::pair{memory.pedestal_bytes, "pedestals"}, std::pair{memory.dark_frame_bytes, "dark frames"}})
        if (bytes > 0) parts += fmt::format("{}{} {} MiB", parts.empty() ? "" : ", ", what, whole_mib(bytes));
    return fmt::format("reducers: {} MiB of ordinary memory ({})\n", whole_mib(memory.sum()), parts);
}

std::string copies_text(const assemble::CopyConfig& copies, std::size_t rx_count) {
    std::vector<std::string> what;
    if (copies.at_once_bytes > 0) what.push_back(fmt::format("up to {} bytes", copies.at_once_bytes));
    if (copies.bytes_max > 0)
        what.push_back(fmt::format("up to {} bytes once half the buffers are held", copies.bytes_max));
    return fmt::format("copies: payload {}, into {} cells of {} KiB\n", fmt::join(what, ", and "),
                       std::uint64_t{copies.cells} * rx_count, copies.cell_bytes >> 10U);
}

}  // namespace

std::string Plan::text() const {
    std::string text = fmt::format("lcores: rx {}, build {}, work {}{}\n", fmt::join(rx, " "), fmt::join(build, " "),
                                   fmt::join(work, " "), placement.proposed ? " (proposed)" : "");
    for (const std::string& line : placement.lines) text += fmt::format("  {}\n", line);
    if (build.size() > 1 && shards_used == 1)
        text += fmt::format("builder: event numbers of less than {} bits are not shared; lcore {} takes all events\n",
                            assemble::ShardOf::bits_min, build.front());
    text +=
        fmt::format("events: {} open at most (limit: {}), {} on their way to the sink, the last {} are remembered\n",
                    open_max, open_limit, queued_max, horizon);
    text +=
        fmt::format("buffers: {} of {} bytes{}, {:.0f} MiB of DPDK memory\n", pool_buffers, room_bytes,
                    pools.size() > 1 ? fmt::format(" in {} pools, one for each lcore with queues", pools.size()) : "",
                    static_cast<double>(buffer_memory_bytes) / (1 << 20));
    for (std::size_t node = 0; node < node_memory_bytes.size() && node_memory_bytes.size() > 1; ++node)
        text += fmt::format("  node {}: {} MiB\n", node, node_memory_bytes[node] >> 20U);
    text += reduce_text(reduce);
    text += fmt::format("memory: {}\n", memory.text());
    if (copies.cells > 0) text += copies_text(copies, rx.size());
    return text;
}

}  // namespace weir::plan
