// Whether a node is in the part of its cluster that goes on building, where a network falls into parts: in two parts,
// both would give out the same blocks, and build them with different content.
#pragma once

#include <vector>

#include "cluster/outlet.hpp"
#include "cluster/peers.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class Quorum {
public:
    struct Count {
        NodeId here = 0;         ///< this node among them, if it counts
        NodeId counted = 0;      ///< all but those that have ended or were not started, and spares
        bool has_first = false;  ///< the first of those that count is here
        [[nodiscard]] bool suffices() const noexcept {
            return counted == 0 || 2 * here > counted || (2 * here == counted && has_first);
        }
    };

    Quorum(const Settings& settings, NodeId self, const Peers& peers)
        : settings_(settings), self_(self), peers_(peers), states_(settings.nodes) {}

    void up(NodeId node) { states_[node] = State::here; }
    void down(NodeId node, Ending ending) { states_[node] = ending == Ending::silent ? State::silent : State::none; }
    /// Nothing has been heard of it for half the time after which it counts as silent.
    void quiet(NodeId node, bool is_quiet) { states_[node] = is_quiet ? State::quiet : State::here; }

    /// Who is quiet is not here: whoever manages stops saying that blocks count before others can take it for silent.
    [[nodiscard]] bool holds() const noexcept { return count(false).suffices(); }
    /// It will not hold again before somebody comes back.
    [[nodiscard]] bool is_lost() const noexcept { return !count(true).suffices(); }
    [[nodiscard]] Count count(bool with_quiet) const noexcept {
        if (settings_.quorum == QuorumOf::none) return {};
        const Count count = count_of(false, with_quiet);
        return count.counted > 0 ? count : count_of(true, with_quiet);
    }

private:
    enum class State : std::uint8_t {
        none,  ///< it does not run, or nothing is known of it yet
        here,
        quiet,
        silent,  ///< also if it has never come
    };
    /// A spare counts neither where it is there nor where it is not: else a part that has one would count fewer nodes
    /// than the other part, and both could go on. Where nobody else counts, spares count as any node.
    [[nodiscard]] Count count_of(bool spares, bool with_quiet) const noexcept {
        Count count;
        for (NodeId node = 0; node < settings_.nodes; ++node) {
            if (settings_.spares.contains(node) != spares) continue;
            const State state = node == self_ ? State::here : states_[node];
            const bool is_up = node == self_ || peers_.is_up(node);
            // Others may have said of one that is here that it has gone: it was expelled, or has ended. Of one that is
            // quiet it may be that nobody here knows.
            if (!counts(node) || state == State::none || (state == State::here && !is_up)) continue;
            const bool is_here = is_up && (state == State::here || (with_quiet && state == State::quiet));
            if (count.counted == 0) count.has_first = is_here;
            ++count.counted;
            if (is_here) ++count.here;
        }
        return count;
    }
    [[nodiscard]] bool counts(NodeId node) const noexcept {
        return settings_.quorum == QuorumOf::nodes ||
               (settings_.quorum == QuorumOf::readouts ? settings_.readouts : settings_.managers).contains(node);
    }

    const Settings& settings_;
    NodeId self_;
    const Peers& peers_;
    std::vector<State> states_;
};

}  // namespace weir::cluster
