// A node that builds events over MPI: its loop.
#pragma once

#include "event_building.hpp"
#include "mpi_network.hpp"

namespace weir::cluster::bench {

class Building {
public:
    Building(const Options& options, NodeId self);
    [[nodiscard]] Measured run();

private:
    void meet_all();
    [[nodiscard]] std::uint32_t tick();

    const Options& options_;
    NodeId self_;
    MpiNetwork network_;
    EventBuilding node_;
};

}  // namespace weir::cluster::bench
