// The events of all run directories of a cluster together: what each run holds and whether it is intact, and whether an
// event is there more than once. 16 bytes of memory for an event.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/cluster_run.hpp"
#include "store/format.hpp"
#include "store/run_check.hpp"

namespace weir::store {

struct ClusterEvents {
    /// Sorts as a number within an epoch does.
    struct Place {
        std::uint64_t id = 0;
        std::uint32_t epoch = 0;
        std::uint32_t run = 0;  ///< its place in ClusterRun::runs
    };
    struct Twice {
        std::uint64_t id = 0;
        std::uint32_t epoch = 0;
        std::vector<std::size_t> runs;
    };
    static constexpr std::size_t twice_listed_max = 20;

    std::vector<Verification> runs;  ///< each run by itself
    Verification all;                ///< the sum of these; problems with the run's name before them
    std::array<std::uint64_t, cause_names.size()> causes{};  ///< incomplete ones
    std::optional<Place> lowest;
    std::optional<Place> highest;
    std::uint64_t distinct = 0;         ///< numbers of which there is an event
    std::uint64_t twice = 0;            ///< numbers of which there is more than one event
    std::vector<Twice> twice_listed;    ///< the first ones
    std::uint64_t lost_found = 0;       ///< events of blocks that the nodes list as lost
    std::uint64_t lost_found_left = 0;  ///< of these, in runs of builders that were ended by force
    /// Blocks of which there are events in runs only whose builder has not left an account, and that are not listed as
    /// lost.
    std::uint64_t unaccounted_blocks = 0;
};

/// Reads all runs, or all but the payload. The hooks see the events on the way, as those of ClusterRun::reader().
[[nodiscard]] ClusterEvents read_cluster_events(const ClusterRun& cluster, const LostBlocks& lost, bool quick,
                                                const ScanHooks& hooks);

}  // namespace weir::store
