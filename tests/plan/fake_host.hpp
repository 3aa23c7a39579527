// Machines that are not there, numbered as Linux numbers them: first one thread of every core, node by node, then the
// second threads in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "port/host_topology.hpp"

namespace weir::plan::test {

struct FakeHost {
    int nodes = 1;
    std::uint32_t cores_per_node = 4;
    std::uint32_t threads = 1;
    std::vector<std::uint32_t> isolated{};
    std::vector<std::uint32_t> usable{};  ///< empty: all
    double cpu_quota = 0;

    [[nodiscard]] port::HostTopology make() const {
        port::HostTopology host;
        const std::uint32_t cores = static_cast<std::uint32_t>(nodes) * cores_per_node;
        const auto in = [](const std::vector<std::uint32_t>& list, std::uint32_t cpu) {
            return std::ranges::find(list, cpu) != list.end();
        };
        for (std::uint32_t id = 0; id < cores * threads; ++id) {
            const std::uint32_t core = id % cores;
            host.cpus.push_back({.id = id,
                                 .node = static_cast<int>(core / cores_per_node),
                                 .core = core,
                                 .isolated = in(isolated, id),
                                 .tickless = in(isolated, id),
                                 .usable = usable.empty() || in(usable, id)});
        }
        for (int node = 0; node < nodes; ++node)
            host.nodes.push_back({node, std::uint64_t{64} << 30U, std::uint64_t{8} << 30U, std::uint64_t{8} << 30U});
        host.cpu_quota = cpu_quota;
        return host;
    }
};

}  // namespace weir::plan::test
