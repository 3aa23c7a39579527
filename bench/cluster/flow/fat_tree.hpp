// A network of two levels of switches with full bisection and fixed routes, and who is where in it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cluster/node_set.hpp"
#include "core/units.hpp"

namespace weir::cluster::bench {

using LinkId = std::uint32_t;

/// The links that a part crosses, one direction of each.
struct Route {
    std::array<LinkId, 4> links{};
    std::uint32_t count = 0;
};

class FatTree {
public:
    /// `places`: by node, where in the network it is; empty: each at its own place. Throws std::invalid_argument.
    FatTree(NodeId nodes, NodeId nodes_per_leaf, const std::vector<NodeId>& places);

    [[nodiscard]] std::size_t links() const noexcept { return std::size_t{4} * nodes_; }
    [[nodiscard]] Route route(NodeId from, NodeId to) const noexcept;
    /// Of a word.
    [[nodiscard]] core::TimeNs latency(NodeId from, NodeId to) const noexcept;

private:
    NodeId nodes_;
    NodeId per_leaf_;  ///< nodes, and so switches above
    std::vector<NodeId> places_;
};

}  // namespace weir::cluster::bench
