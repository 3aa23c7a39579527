// What the cluster benchmark is to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/settings.hpp"

namespace weir::fabric::bench {

enum class Mode : std::uint8_t {
    n_to_n,          ///< parts alone; the receiver asks for each one
    n_to_n_batched,  ///< the same, and it asks for half a window at a time
    building,        ///< the event-building core
};
inline constexpr std::size_t modes = 3;

struct Options {
    cluster::NodeId pairs = 2;  ///< readout nodes, and as many builders
    std::vector<std::string> transports{"tcp", "tcp,sm"};
    std::vector<std::uint64_t> sizes{1U << 10U, 4U << 10U, 16U << 10U, 64U << 10U, 256U << 10U, 1U << 20U};
    std::uint32_t turns = 5;
    double warm_seconds = 0.15;
    double seconds = 0.5;  ///< that are measured, of each mode in each turn
    std::uint32_t credits = 16;
    std::uint32_t parallel = 4;
    std::uint32_t sends = 0;  ///< cluster::Settings::sends
    bool spins = false;       ///< who has nothing to do looks again at once, because there is a CPU for each process
    std::string json;
    std::string commit = "unknown";

    [[nodiscard]] cluster::NodeId nodes() const noexcept { return static_cast<cluster::NodeId>(2 * pairs); }
    /// Parts on their way from a readout node to a builder: as many as event building has at most.
    [[nodiscard]] std::uint32_t window() const noexcept;
    /// Parts that a readout node has memory for, and that a builder has.
    [[nodiscard]] std::uint32_t held() const noexcept { return credits * pairs * 5 / 4; }
    [[nodiscard]] std::uint32_t taken() const noexcept { return credits * pairs; }
};

/// Readout nodes and builders in turns, so that neighbours begin with different partners.
[[nodiscard]] constexpr bool is_readout(cluster::NodeId node) noexcept {
    return node % 2 == 0;
}
/// Of event building, with the lowest builder as manager.
[[nodiscard]] cluster::Settings settings_of(const Options& options);

/// Throws std::invalid_argument.
[[nodiscard]] Options parse(int count, char** words);
[[nodiscard]] std::string usage();

}  // namespace weir::fabric::bench
