// The books of a cluster: what nodes say of each other, held side by side, and what follows of losses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/cluster_run.hpp"
#include "store/cluster_run_events.hpp"

namespace weir::store {

struct ClusterLedger {
    /// What a readout node says that a builder was sent, and what that says that it got.
    struct Pair {
        std::string readout;
        std::string builder;
        std::optional<std::uint64_t> handed_over;
        std::optional<std::uint64_t> received;
        std::optional<std::uint64_t> received_late;
        /// Nothing: one of the two does not say.
        [[nodiscard]] std::optional<bool> is_equal() const {
            if (!handed_over || !received) return {};
            return *handed_over == *received + received_late.value_or(0);
        }
    };
    struct Blocks {
        std::optional<std::uint64_t> assigned;  ///< nothing: who managed has left no account
        bool assigned_is_all = true;            ///< false: a node that may have managed has left no account
        std::uint64_t assigned_again = 0;
        std::uint64_t complete = 0;
        std::uint64_t incomplete = 0;
        std::uint64_t empty = 0;
        std::uint64_t given_up = 0;     ///< counted as built by a builder that has not written them
        std::uint64_t lost = 0;         ///< whole, and not counted by a builder as built or empty
        std::uint64_t unaccounted = 0;  ///< found in runs whose builders have left no account
        std::optional<bool> balanced;   ///< nothing: it cannot be known
        std::vector<std::string> why;   ///< it cannot be known, or does not balance
        [[nodiscard]] std::uint64_t known() const { return complete + incomplete + empty + lost + unaccounted; }
    };

    LostBlocks lost;                                   ///< that some node lists
    std::map<std::string, std::uint64_t> lost_counts;  ///< by cause, those that no list has room for included
    std::vector<Pair> pairs;
    std::map<std::string, std::map<std::string, std::uint64_t>> missing;  ///< parts by readout node, by cause
    Blocks blocks;
    std::string lossless;               ///< "yes", "no" or "unknown"
    std::vector<std::string> evidence;  ///< what that rests on

    [[nodiscard]] std::uint64_t lost_total() const;
};

/// The blocks that any node lists as lost: what read_cluster_events() wants.
[[nodiscard]] LostBlocks lost_cluster_blocks(const ClusterRun& cluster);
/// Adds what is wrong of the runs together to the problems of `events`.
[[nodiscard]] ClusterLedger make_cluster_ledger(const ClusterRun& cluster, ClusterEvents& events);

}  // namespace weir::store
