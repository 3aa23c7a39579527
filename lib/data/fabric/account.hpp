// What a node of a cluster has counted, for its report and whoever watches it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/builder.hpp"
#include "cluster/manager.hpp"
#include "cluster/readout.hpp"

namespace weir::fabric {

struct Account {
    cluster::NodeId self = 0;
    std::uint32_t lives = 1;              ///< the cluster took it for dead, and it began anew, so many times less one
    std::vector<std::uint8_t> is_up;      ///< by node
    std::uint64_t callers_refused = 0;    ///< hellos that were not believed, connections that began with something else
    std::vector<std::string> transports;  ///< that UCX has chosen to any of the others: "tcp/eth0"
    cluster::Readout::Stats readout;      ///< of all its lives, as the others
    cluster::Builder::Stats builder;
    cluster::Manager::Stats manager;
    bool manages = false;
    bool has_quorum = true;             ///< see cluster::Quorum
    cluster::Block settled = 0;         ///< what became of all blocks before it is known
    std::vector<cluster::Loss> losses;  ///< blocks that are lost whole, as far as it knows
    // A readout node:
    std::uint64_t events_too_late = 0;  ///< in parts that the others had not waited for, or that a dead life still had
    std::uint64_t events_left = 0;      ///< in parts that were not released when it left
    std::uint64_t memory_bytes = 0;     ///< of parts, now
    std::uint64_t memory_highest = 0;
    std::uint64_t memory_bound = 0;
    std::uint64_t waited_ns = 0;               ///< for room in it
    std::vector<std::uint64_t> waited_for_ns;  ///< of that, while the builder was waited for, by node
    // A builder:
    std::uint64_t malformed_parts = 0;
    std::uint64_t blocks_in_hand = 0;   ///< in the pipeline, or on their way to the disk
    std::uint64_t blocks_given_up = 0;  ///< counted as built, and not written when it left because its sinks failed
};

}  // namespace weir::fabric
