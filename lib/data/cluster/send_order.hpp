// In which order a node turns to the others: for a builder, whom it asks; for a readout node, to whom it sends.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/message.hpp"
#include "cluster/settings.hpp"

namespace weir::cluster {

class SendOrder {
public:
    /// `alike`: the nodes that do what `self` does, so that each of them begins at another partner.
    SendOrder(const Settings& settings, NodeId self, const NodeSet& alike, const NodeSet& partners);

    /// The partners, in the order for `round`, from 0 on.
    [[nodiscard]] std::vector<NodeId> of(std::uint64_t round) const;
    /// The partner at a place, where the order is the same for all rounds: not Order::random.
    [[nodiscard]] NodeId at(std::size_t place) const { return partners_[place]; }
    /// The place of `partner` in the order for `round`.
    [[nodiscard]] std::uint32_t place_of(std::uint64_t round, NodeId partner) const;

private:
    std::vector<NodeId> partners_;       ///< linear: beginning at the first one
    std::vector<std::uint32_t> places_;  ///< by node
    Order order_;
    std::uint64_t seed_;
};

}  // namespace weir::cluster
