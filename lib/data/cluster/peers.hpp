// Which nodes of the cluster are there, as one of them sees it.
#pragma once

#include <algorithm>
#include <vector>

#include "cluster/message.hpp"

namespace weir::cluster {

class Peers {
public:
    enum class State : std::uint8_t {
        awaited,  ///< listed, and not seen yet
        up,
        down,
    };
    explicit Peers(std::uint16_t nodes) : peers_(nodes) {}

    void set_up(NodeId node, Incarnation incarnation) {
        peers_[node] = {State::up, incarnation, peers_[node].gone, false};
    }
    /// Lives up to `incarnation` are over for good, also where they were never seen.
    void set_gone(NodeId node, Incarnation incarnation) {
        Peer& peer = peers_[node];
        peer.gone = std::max(peer.gone, incarnation);
        if (peer.incarnation <= peer.gone) peer.state = State::down;
    }
    /// It is about to go. Another life of it is not.
    void set_leaving(NodeId node) { peers_[node].is_leaving = true; }
    /// Lives that are over; of nodes that did not come, 0.
    [[nodiscard]] std::vector<NodeLife> all_gone() const {
        std::vector<NodeLife> gone;
        for (NodeId node = 0; node < count(); ++node)
            if (peers_[node].gone > 0 || peers_[node].state == State::down)
                gone.push_back(life_of(node, peers_[node].gone));
        return gone;
    }
    /// Those that are there.
    [[nodiscard]] std::vector<NodeLife> all_up() const {
        std::vector<NodeLife> up;
        for (NodeId node = 0; node < count(); ++node)
            if (is_up(node)) up.push_back(life_of(node, peers_[node].incarnation));
        return up;
    }
    [[nodiscard]] State state(NodeId node) const noexcept { return peers_[node].state; }
    [[nodiscard]] bool is_up(NodeId node) const noexcept { return peers_[node].state == State::up; }
    [[nodiscard]] bool is_leaving(NodeId node) const noexcept { return peers_[node].is_leaving; }
    [[nodiscard]] Incarnation incarnation(NodeId node) const noexcept { return peers_[node].incarnation; }
    [[nodiscard]] Incarnation gone(NodeId node) const noexcept { return peers_[node].gone; }
    [[nodiscard]] NodeId count() const noexcept { return static_cast<NodeId>(peers_.size()); }

private:
    struct Peer {
        State state = State::awaited;
        Incarnation incarnation = 0;
        Incarnation gone = 0;
        bool is_leaving = false;
    };
    std::vector<Peer> peers_;
};

}  // namespace weir::cluster
