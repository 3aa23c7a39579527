#include "fat_tree.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace weir::cluster::bench {

namespace {

constexpr core::TimeNs link_latency_ns = 200;

}  // namespace

FatTree::FatTree(NodeId nodes, NodeId nodes_per_leaf, const std::vector<NodeId>& places)
    : nodes_(nodes), per_leaf_(nodes_per_leaf), places_(places) {
    if (per_leaf_ == 0 || nodes_ % per_leaf_ != 0) throw std::invalid_argument("--leaf does not divide the nodes");
    std::vector<NodeId> all(nodes);
    std::iota(all.begin(), all.end(), NodeId{0});
    if (places_.empty()) places_ = all;
    if (!std::ranges::is_permutation(places_, all)) throw std::invalid_argument("--places does not have each once");
}

/// The switch above is chosen by the destination: what goes to one node comes down one way. Nodes that follow each
/// other by less than a leaf's worth use different ones.
Route FatTree::route(NodeId from, NodeId to) const noexcept {
    const LinkId here = places_[from];
    const LinkId there = places_[to];
    const LinkId above = there % per_leaf_;
    const LinkId up = here;
    const LinkId down = LinkId{nodes_} + there;
    if (here / per_leaf_ == there / per_leaf_) return {{up, down}, 2};
    const LinkId leaf_up = LinkId{2} * nodes_ + here / per_leaf_ * per_leaf_ + above;
    const LinkId leaf_down = LinkId{3} * nodes_ + there / per_leaf_ * per_leaf_ + above;
    return {{up, leaf_up, leaf_down, down}, 4};
}

core::TimeNs FatTree::latency(NodeId from, NodeId to) const noexcept {
    return from == to ? 0 : static_cast<core::TimeNs>(route(from, to).count) * link_latency_ns;
}

}  // namespace weir::cluster::bench
