// What the parts of a node are given, so that they need no network, no threads, no clock: where messages go, and whom
// to tell what has come of it.
#pragma once

#include <span>
#include <stdexcept>
#include <utility>

#include "cluster/message.hpp"

namespace weir::cluster {

/// Carries messages. Those between two nodes may overtake each other; none comes twice.
class Network {
public:
    Network() = default;
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    virtual ~Network() = default;
    /// `payload` goes with a Kind::part that is whole, and is told of by Node::sent() once it has left.
    virtual void send(NodeId to, const Message& message, Payload payload) = 0;
};

/// How a life of another node ended, as the network has seen it.
enum class Ending : std::uint8_t {
    over,    ///< its process has ended, or has said that it goes
    silent,  ///< nothing is heard of it: it may live, and be in another part of the network
};

/// A part of a block as it lies in the builder's memory; without payload if it is missing.
struct BuiltPart {
    Part part = Part::late;
    Payload payload;
};

/// Whose blocks they are.
class Application {
public:
    Application() = default;
    Application(const Application&) = delete;
    Application& operator=(const Application&) = delete;
    virtual ~Application() = default;
    /// A block has all the parts that it will have, by node. With Keep::written it may still be built by somebody else
    /// if this node goes away before Node::written().
    virtual void built(BlockSpan span, std::span<const BuiltPart> parts) = 0;
    /// Nobody needs the payload any more: it was released by its builder, or came for nothing.
    virtual void release(Payload payload) = 0;
    /// The same for a part of this node's that nobody was sent, so that it is in no block.
    virtual void drop(Payload payload) = 0;
    /// A part of this node's becomes two: what it has of numbers before `at`, and of the others. Without a handle where
    /// it has nothing. Only where Settings::block is more than one.
    [[nodiscard]] virtual std::pair<Payload, Payload> split(Payload /*part*/, Block /*at*/) {
        throw std::logic_error("this application has parts of one number");
    }
    /// Two parts of this node's become one. Likewise.
    [[nodiscard]] virtual Payload join(Payload /*first*/, Payload /*second*/) {
        throw std::logic_error("this application has parts of one number");
    }
    /// The cluster takes this node for dead. It has to begin anew, with a higher incarnation.
    virtual void expelled() = 0;
    /// Nothing more will come: all readout nodes have ended, and what became of all blocks is known.
    virtual void ended() = 0;
};

}  // namespace weir::cluster
