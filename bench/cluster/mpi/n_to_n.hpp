// Every node sends to every other one, in linear order and without events: what the network gives at best.
#pragma once

#include "measured.hpp"
#include "options.hpp"

namespace weir::cluster::bench {

/// In rounds, as many as the blocks of the options are for all nodes together. Mode::lockstep: all wait for each other
/// after each part.
[[nodiscard]] Measured n_to_n(const Options& options, NodeId self);

}  // namespace weir::cluster::bench
