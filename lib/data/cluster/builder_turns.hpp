// Which builder is given the next block: each gets as many as its weight says, evenly and not in bursts (stride
// scheduling). One that has no credits misses its turns, and does not make up for them later.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "cluster/settings.hpp"

namespace weir::cluster {

class BuilderTurns {
public:
    explicit BuilderTurns(const Settings& settings);

    /// It is there, and has room for so many blocks. Others than builders are given none.
    void add(NodeId node, std::uint32_t credits);
    void remove(NodeId node);
    /// It is about to go: it is given blocks only where all that are there are about to.
    void leaves(NodeId node);
    /// It has room for one more block.
    void give_back(NodeId node);
    /// Nobody can be given a block.
    [[nodiscard]] bool empty() const noexcept { return credits_ == 0; }
    /// The builder of the next block, which costs it a credit; nothing if empty().
    [[nodiscard]] std::optional<NodeId> next();

private:
    struct Builder {
        std::uint64_t stride = 0;  ///< from one of its turns to the next; 0: it is no builder
        std::uint64_t turn = 0;    ///< its next one
        std::uint32_t credits = 0;
        bool is_there = false;
        bool leaves = false;
        bool waits = false;  ///< in its queue
    };
    /// Builders of the same weight, the one whose turn is first in front: after its turn it is the last, so nothing has
    /// to be searched for. Those whose turn came when they had no credits are not in it.
    struct Queue {
        std::uint64_t stride = 0;
        std::deque<NodeId> builders;
    };

    [[nodiscard]] bool has_turns(const Builder& builder) const noexcept {
        return builder.is_there && (!builder.leaves || staying_ == 0);
    }
    [[nodiscard]] Queue& queue_of(const Builder& builder);
    [[nodiscard]] Queue& first_queue();
    void queue_all();

    std::vector<Builder> builders_;  ///< by node
    std::vector<Queue> queues_;      ///< by stride
    std::uint64_t now_ = 0;          ///< the last turn
    std::uint64_t credits_ = 0;      ///< of those that have turns
    std::uint32_t staying_ = 0;      ///< builders that are there, and not about to go
};

}  // namespace weir::cluster
