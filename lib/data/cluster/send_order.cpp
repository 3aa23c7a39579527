#include "cluster/send_order.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

namespace weir::cluster {

SendOrder::SendOrder(const Settings& settings, NodeId self, const NodeSet& alike, const NodeSet& partners)
    : places_(settings.nodes), order_(settings.order), seed_(settings.seed * 0x9e3779b97f4a7c15U + self) {
    std::vector<NodeId> nodes(settings.nodes);
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    if (order_ == Order::listed) nodes = settings.list;
    std::ranges::copy_if(nodes, std::back_inserter(partners_), [&](NodeId node) { return partners.contains(node); });
    if (partners_.empty()) return;
    // Who is no partner itself begins at one of its own as well: the third of its kind with the third.
    const auto own = std::ranges::find(partners_, self);
    const auto before =
        std::count_if(nodes.begin(), std::ranges::find(nodes, self), [&](NodeId node) { return alike.contains(node); });
    const auto first = own != partners_.end() ? own + 1 : partners_.begin() + before % std::ssize(partners_);
    std::rotate(partners_.begin(), first, partners_.end());
    for (std::uint32_t place = 0; place < partners_.size(); ++place) places_[partners_[place]] = place;
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
