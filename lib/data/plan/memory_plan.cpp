#include "plan/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "port/answer_sender.hpp"
#include "port/buffers.hpp"
#include "port/capture_blocks.hpp"
#include "port/ring.hpp"
#include "roce/listener/listener.hpp"
#include "stages/stage.hpp"

namespace weir::plan {

namespace {

constexpr std::uint32_t cached = port::BufferPool::cache_buffers * 3 / 2;  ///< by a thread, at most
constexpr std::uint32_t for_replies = 256 + 1024;  ///< of a port: to ARP and ping, on their way out

/// Buffers that a RoCE source holds while it may be restarting.
std::uint32_t restarting(const config::RunConfig& config) {
    const bool roce = std::ranges::any_of(
        config.streams, [](const config::StreamConfig& s) { return s.transport == config::Transport::roce; });
    return roce ? roce::Listener::held_max(config.sources.size()) : 0;
}

/// A replay has one pool, which the reader takes from whoever will own the packet: were it split, a part could be used
/// up while another has plenty, and the reader would wait for ever.
Plan::Pool pool_of_replay(const config::RunConfig& config, const Plan& plan) {
    const auto rx = static_cast<std::uint32_t>(plan.rx.size());
    Plan::Pool pool;
    pool.node = plan.memory_node(plan.rx.front());
    pool.buffers = plan.buffers_per_rx * rx;                             // what messages hold
    pool.buffers += 4 * port::PacketBatch::capacity * (rx + 1);          // bursts in hand
    pool.buffers += plan.packet_ring + plan.steer_ring * rx * (rx - 1);  // rings full of packets
    pool.buffers += plan.reassembly.buffers_max * rx;                    // pieces of datagrams that wait
    pool.buffers += restarting(config);
    pool.buffers += (rx + 2) * cached;  // threads that take buffers out or give them back one by one
    pool.on_demand = true;
    return pool;
}

/// One pool for each rx lcore that polls queues. Not one for each queue: of several on one lcore mostly few are busy,
/// and the buffers that they have just given back are still in cache. Not one for all: its top would go from core to
/// core.
std::vector<Plan::Pool> pools_of_ports(const config::RunConfig& config, const Plan& plan) {
    std::map<std::uint32_t, Plan::Pool> pools;
    for (const Placement::Queue& queue : plan.placement.queues) {
        const auto [at, fresh] = pools.try_emplace(queue.rx);
        Plan::Pool& pool = at->second;
        const int node = plan.port_nodes.empty() ? port::any_node : plan.port_nodes[queue.port];
        if (fresh) pool.rx = queue.rx;
        if (fresh || pool.node == port::any_node) pool.node = node;
        pool.buffers += config.ports[queue.port].rx_descriptors;  // that the device has
        if (queue.queue == 0) pool.buffers += for_replies;
    }
    // What messages may hold in all, in equal parts. Where more arrives on one lcore than its part, which others own,
    // its pool runs low, and the lcore asks for room (RxStage::may_take).
    const auto rx = static_cast<std::uint32_t>(plan.rx.size());
    const auto count = static_cast<std::uint32_t>(pools.size());
    std::vector<Plan::Pool> all;
    for (auto& [index, pool] : pools) {
        if (pool.node == port::any_node) pool.node = plan.memory_node(plan.rx[index]);
        pool.buffers += (plan.buffers_per_rx * rx + count - 1) / count;
        pool.buffers += 8 * port::PacketBatch::capacity;  // bursts in hand, here and where they are steered to
        pool.buffers += plan.steer_ring * (rx - 1);       // rings to the other lcores full of packets
        pool.buffers += plan.reassembly.buffers_max;      // pieces of datagrams that wait
        pool.buffers += restarting(config);
        pool.buffers += 3 * cached;  // of the lcore itself, of a simulated detector, of who copies
        all.push_back(pool);
    }
    return all;
}

port::BufferPoolConfig config_of(const Plan::Pool& pool, const Plan& plan) noexcept {
    return {pool.buffers, plan.room_bytes, pool.node, port::BufferPoolConfig::any_lcore, pool.on_demand};
}

/// What pools have besides EAL's memory.
std::uint64_t on_demand_bytes(const Plan& plan) noexcept {
    std::uint64_t bytes = port::CaptureBlocks::memory_bytes(plan.capture_blocks) -
                          port::CaptureBlocks::eal_memory_bytes(plan.capture_blocks);
    for (const Plan::Pool& pool : plan.pools)
        bytes += port::BufferPool::memory_bytes(config_of(pool, plan)) -
                 port::BufferPool::eal_memory_bytes(config_of(pool, plan));
    return bytes;
}

/// EAL memory: adds up by node; -1 for what may be anywhere.
std::map<int, std::uint64_t> sums(const config::RunConfig& config, const Plan& plan) {
    std::map<int, std::uint64_t> bytes;
    const auto rx_count = plan.rx.size();
    const auto work_count = plan.work.size();
    for (const Plan::Pool& pool : plan.pools)
        bytes[pool.node] += port::BufferPool::eal_memory_bytes(config_of(pool, plan));
    for (const std::uint32_t lcore : plan.rx) {
        std::uint64_t& here = bytes[plan.memory_node(lcore)];
        here += (rx_count - 1) * port::Ring<port::Packet>::memory_bytes(plan.steer_ring);
        here += plan.build.size() * port::Ring<assemble::Command>::memory_bytes(plan.descriptor_ring);
        here += work_count * port::Ring<assemble::Message*>::memory_bytes(plan.messages_per_rx);
    }
    for (const std::uint32_t lcore : plan.build) {
        std::uint64_t& here = bytes[plan.memory_node(lcore)];
        here += rx_count * port::Ring<assemble::Descriptor>::memory_bytes(plan.descriptor_ring);
        here += work_count * port::Ring<assemble::Event*>::memory_bytes(plan.event_ring);
    }
    for (const std::uint32_t lcore : plan.work)
        bytes[plan.memory_node(lcore)] +=
            plan.build.size() * port::Ring<assemble::Event*>::memory_bytes(plan.event_ring);
    std::uint64_t& anywhere = bytes[port::any_node];
    anywhere += port::Ring<port::Packet>::memory_bytes(plan.packet_ring);
    anywhere += port::CaptureBlocks::eal_memory_bytes(plan.capture_blocks);
    // Acknowledgements have buffers of their own, so that they can be sent however full the others are.
    const std::vector<std::uint16_t> owners = make_owners(config, plan.placement);
    for (std::uint32_t port = 0; port < config.ports.size(); ++port)
        if (const std::size_t lcores = answering_lcores(config, port, owners).size(); lcores > 0)
            anywhere += port::BufferPool::memory_bytes(port::AnswerSender::pool_config(
                static_cast<std::uint32_t>(lcores), config.ports[port].options.tx_descriptors));
    anywhere += std::uint64_t{48} << 20U;  // EAL itself, device data, queues of virtual devices, heap fragmentation
    return bytes;
}

std::string missing_text(int node, std::uint64_t wanted, const port::NumaNode& has) {
    constexpr unsigned mib = 20;
    return fmt::format(
        "NUMA node {} has {} MiB of free hugepages, and {} MiB are planned there: the rest comes from other nodes, "
        "if they have some (echo {} > /sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages)",
        node, has.hugepage_free_bytes >> mib, (wanted >> mib) + 1,
        (has.hugepage_bytes - has.hugepage_free_bytes + wanted) / (2U << mib) + 1, node);
}

/// What EAL takes on each node at the start: where there is not enough, nothing; then what does not fit is taken where
/// there is some.
void divide(const std::map<int, std::uint64_t>& bytes, Plan& plan) {
    const int main = plan.host.nodes.front().id;  // what may be anywhere
    std::map<int, std::uint64_t> wanted;
    for (const auto& [node, sum] : bytes) wanted[node == port::any_node ? main : node] += sum;
    for (const port::NumaNode& node : plan.host.nodes) {
        plan.node_memory_bytes.resize(static_cast<std::size_t>(node.id) + 1);
        const std::uint64_t sum = wanted[node.id];
        plan.node_wanted_bytes.resize(static_cast<std::size_t>(node.id) + 1);
        plan.node_wanted_bytes.back() = sum;
        if (sum <= node.hugepage_free_bytes)
            plan.node_memory_bytes.back() = sum;
        else
            plan.warnings.push_back(missing_text(node.id, sum, node));
    }
}

}  // namespace

void size_memory(const config::RunConfig& config, bool replay, bool hugepages, Plan& plan) {
    if (replay)
        plan.pools = {pool_of_replay(config, plan)};
    else
        plan.pools = pools_of_ports(config, plan);
    plan.pool_buffers = 0;
    for (const Plan::Pool& pool : plan.pools) plan.pool_buffers += pool.buffers;
    const std::map<int, std::uint64_t> bytes = sums(config, plan);
    plan.eal_memory_bytes = 0;
    for (const auto& [node, sum] : bytes) plan.eal_memory_bytes += sum;
    plan.buffer_memory_bytes = plan.eal_memory_bytes + on_demand_bytes(plan);
    if (hugepages && !plan.host.nodes.empty()) divide(bytes, plan);
}

}  // namespace weir::plan
