#include "cluster/send_order.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace weir::cluster {

SendOrder::SendOrder(const Settings& settings, NodeId self, const NodeSet& partners)
    : places_(settings.nodes), order_(settings.order), seed_(settings.seed * 0x9e3779b97f4a7c15U + self) {
    std::vector<NodeId> nodes(settings.nodes);
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    if (order_ == Order::listed) nodes = settings.list;
    const auto own = std::ranges::find(nodes, self);
    std::rotate(nodes.begin(), own == nodes.end() ? own : own + 1, nodes.end());
    for (const NodeId node : nodes) {
        if (!partners.contains(node)) continue;
        places_[node] = static_cast<std::uint32_t>(partners_.size());
        partners_.push_back(node);
    }
}

std::vector<NodeId> SendOrder::of(std::uint64_t round) const {
    std::vector<NodeId> order = partners_;
    if (order_ == Order::random) {
        std::mt19937_64 random(seed_ + round);
        std::ranges::shuffle(order, random);
    }
    return order;
}

std::uint32_t SendOrder::place_of(std::uint64_t round, NodeId partner) const {
    if (order_ != Order::random) return places_[partner];
    const std::vector<NodeId> order = of(round);
    return static_cast<std::uint32_t>(std::ranges::find(order, partner) - order.begin());
}

}  // namespace weir::cluster
