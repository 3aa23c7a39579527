// The sizes of everything, decided before EAL starts: how many events can be open, how many buffers, messages and ring
// entries that takes, and which lcores do what. Every size is a sum of stated reasons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assemble/copy_store.hpp"
#include "config/reduce_memory.hpp"
#include "config/run_config.hpp"
#include "plan/memory_need.hpp"
#include "plan/placement.hpp"
#include "port/ip_reassembly.hpp"
#include "stages/work_stage.hpp"

namespace weir::plan {

struct PlanInput {
    std::uint64_t capture_bytes = 0;    ///< replay: size of the files, all passes
    std::uint64_t capture_packets = 0;  ///< replay: at most so many, which bounds how many buffers can ever be needed
    bool replay = false;
    bool wait = false;
    port::HostTopology host{};      ///< of the machine that the run is for
    std::vector<int> port_nodes{};  ///< NUMA node of each port's device; empty: on none
    std::vector<std::uint32_t>
        header_bytes{};                       ///< of each stream: what its format reads or keeps of a datagram's start
    std::vector<std::uint8_t> number_bits{};  ///< of each source: width of its event number
    std::uint32_t output_buffer_bytes = 1U << 20U;  ///< that the reducers need (ReduceSetup)
};

struct Plan {
    // lcores; `build` has one per shard
    std::vector<std::uint32_t> rx;
    std::vector<std::uint32_t> build;
    std::vector<std::uint32_t> work;
    bool pin = true;
    Placement placement;      ///< the same with queues, CPUs of the other threads, and reasons
    port::HostTopology host;  ///< that it is for
    std::vector<int> port_nodes;

    std::vector<std::string> warnings;  ///< what will cost packets or speed

    // events
    std::uint32_t open_max = 0;     ///< events open at once
    std::uint32_t queued_max = 0;   ///< events closed and not written yet
    std::string open_limit;         ///< which limit decided open_max, in words
    std::uint32_t shards_used = 1;  ///< fewer than `build` has where event numbers are too narrow to be shared
    std::uint32_t horizon = 0;

    // buffers
    std::uint32_t room_bytes = 0;          ///< of a packet buffer
    std::uint32_t buffers_for_events = 0;  ///< that `memory` is enough for, per rx lcore
    std::uint32_t cells_for_events = 0;    ///< likewise, for copied payload
    std::uint32_t buffers_per_rx = 0;      ///< that the messages of one rx lcore can hold
    struct Pool {
        std::uint32_t rx = 0;  ///< index of the rx lcore whose queues take from it
        int node = port::any_node;
        std::uint32_t buffers = 0;
        bool on_demand = false;  ///< replay: in ordinary memory, taken as it is needed
    };
    std::vector<Pool> pools;
    std::uint32_t pool_buffers = 0;         ///< of all pools
    port::IpReassembly::Config reassembly;  ///< of each rx lcore
    std::uint32_t header_bytes = 0;         ///< of a frame: all headers lie within
    assemble::CopyConfig copies;            ///< of each rx lcore
    std::uint32_t messages_per_rx = 0;
    std::uint32_t probation_per_source = 0;  ///< messages
    std::uint32_t message_bytes_max = 0;
    std::uint32_t roce_runs = 0;   ///< per rx lcore
    std::uint32_t psn_window = 0;  ///< PSNs remembered per RoCE connection
    std::uint32_t range_blocks_per_rx = 0;

    std::uint32_t capture_blocks = 0;  ///< replay: that captures are read into, for packets by reference

    // rings
    std::uint32_t packet_ring = 0;      ///< capture → rx
    std::uint32_t steer_ring = 0;       ///< rx → rx
    std::uint32_t descriptor_ring = 0;  ///< rx → builder shard → rx
    std::uint32_t event_ring = 0;       ///< builder shard → worker → builder shard

    // output
    std::uint32_t output_buffers = 0;  ///< per worker
    std::uint32_t output_buffer_bytes = 0;

    config::ReduceMemory reduce;            ///< ordinary memory; what make_plan() cannot know (Run)
    MemoryNeed memory;                      ///< all of it; without that of reducers until Run adds it
    std::uint64_t eal_memory_bytes = 0;     ///< what DPDK takes at the start
    std::uint64_t buffer_memory_bytes = 0;  ///< the same, and pools on demand
    std::vector<std::uint64_t>
        node_memory_bytes;  ///< hugepages to take at the start, by node; empty: without hugepages
    std::vector<std::uint64_t> node_wanted_bytes;  ///< the same, whether or not they are there

    /// Where memory of the stage on this lcore should lie.
    [[nodiscard]] int memory_node(std::uint32_t lcore) const noexcept { return placement.node_of(host, lcore); }
    /// What was decided and why, for the operator.
    [[nodiscard]] std::string text() const;
};

/// The machine that this is, and the nodes of the configuration's devices: `host` and `port_nodes`.
void look_at_machine(const config::RunConfig& config, PlanInput& input);

[[nodiscard]] Plan make_plan(const config::RunConfig& config, const std::vector<stages::SourceGeometry>& geometry,
                             const PlanInput& input);

}  // namespace weir::plan
