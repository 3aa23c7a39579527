// Which stage runs on which lcore, and which lcore polls which queue: taken from [lcores], or proposed from the queues,
// the NUMA nodes of their devices, physical cores and isolated CPUs. A pure function of the topology, which explains
// what it decided and warns of what costs packets or speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "port/host_topology.hpp"

namespace weir::plan {

struct PlacementInput {
    struct Port {
        std::string name;
        std::uint16_t queues = 1;
        int node = port::any_node;
    };
    std::vector<Port> ports;
    config::LcoresConfig lcores;   ///< what is given; empty lists are proposed
    bool replay = false;           ///< captures instead of ports: one rx lcore takes all, nothing is lost meanwhile
    bool reduces = false;          ///< there is a reducer, which takes most of the time
    bool writes = false;           ///< there is a writer thread
    std::uint32_t build_max = 1;   ///< lcores that can build events together
    std::size_t rings_max = 2000;  ///< as rings_between counts them
    std::uint32_t lcore_ids =
        128;  ///< lcores are numbered as their CPUs, below this number less one for the main thread
};

struct Placement {
    struct Queue {
        std::uint32_t port = 0;
        std::uint32_t queue = 0;
        std::uint32_t rx = 0;  ///< index into `rx`
    };

    // One entry per stage: its lcore. The same number in several places: these stages run fused.
    std::vector<std::uint32_t> rx;
    std::vector<std::uint32_t> build;
    std::vector<std::uint32_t> work;
    bool proposed = false;                         ///< at least one list is weir's choice
    bool pin = true;                               ///< false: lcores float over all CPUs of the process
    std::vector<Queue> queues;                     ///< every queue of every port once; none in a replay
    std::vector<std::vector<std::uint32_t>> near;  ///< by port: rx lcores (indices) on its device's node; empty: all
    std::vector<std::uint32_t> housekeeping;       ///< CPUs for the threads that may block: control, writer, feeders
    std::vector<std::string> lines;                ///< one per lcore, and one for the other threads
    std::vector<std::string> warnings;

    /// Index of the rx lcore that polls this queue of the port at `port` in the configuration; in a replay, where
    /// nobody does, of one that stands for it.
    [[nodiscard]] std::uint32_t rx_of_queue(std::uint32_t port, std::uint32_t queue) const noexcept;
    /// Every lcore once, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> lcores() const;
    /// Of an lcore that is bound to a CPU; otherwise port::any_node.
    [[nodiscard]] int node_of(const port::HostTopology& host, std::uint32_t lcore) const noexcept;
};

/// Rings that so many stages of each kind take between them.
[[nodiscard]] constexpr std::size_t rings_between(std::size_t rx, std::size_t build, std::size_t work) noexcept {
    return 1 + rx * (rx - 1) + 2 * rx * build + rx * work + 2 * build * work + 2 * work;
}

[[nodiscard]] Placement place(const port::HostTopology& host, const PlacementInput& input);

}  // namespace weir::plan
