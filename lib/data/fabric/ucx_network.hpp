// Carries a cluster's messages over a network by UCX, which chooses the transport (TCP, RDMA) and moves payload: active
// messages, eager or by rendezvous. This class knows who is who: each node listens at its address, and each pair of
// nodes has a TCP connection, on which they say hello, which node and which life of it they are, and that they are
// still there. Who says nothing for a while counts as gone, whatever the transport believes.
//
// No threads: one thread calls everything, and everything it is told of is told within progress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/node_set.hpp"
#include "cluster/outlet.hpp"
#include "core/units.hpp"

namespace weir::fabric {

/// Whom a UcxNetwork tells. It may call UcxNetwork::send() from there.
class Receiver {
public:
    Receiver() = default;
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    virtual ~Receiver() = default;
    /// As cluster::Node::peer_up and peer_down.
    virtual void up(cluster::NodeId node, cluster::Incarnation incarnation) = 0;
    virtual void down(cluster::NodeId node, cluster::Incarnation incarnation, cluster::Ending ending) = 0;
    /// As cluster::Node::peer_absent, and peer_quiet.
    virtual void absent(cluster::NodeId node, cluster::Ending why) = 0;
    virtual void quiet(cluster::NodeId node, bool is_quiet) = 0;
    /// Payload::handle is the address of memory that room() gave, which is the receiver's again.
    virtual void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) = 0;
    /// As cluster::Node::sent.
    virtual void sent(cluster::NodeId to, cluster::Block block) = 0;
    /// Memory for a payload that is on its way, at a multiple of 64. Never null.
    [[nodiscard]] virtual std::byte* room(std::uint64_t bytes) = 0;
    /// It did not come after all.
    virtual void give_back(std::byte* memory, std::uint64_t bytes) = 0;
    /// Something that the operator should hear of: a node of another cluster or configuration, an address that nobody
    /// answers at. A sentence; each once.
    virtual void say(const std::string& text) = 0;
};

class UcxNetwork final : public cluster::Network {
public:
    struct Config {
        std::vector<std::string> addresses;  ///< by node: "10.0.0.1:7471", "[fd00::1]:7471" or "HOST:PORT"
        std::vector<std::string> names;      ///< by node, for what is said
        cluster::NodeId self = 0;
        cluster::Incarnation incarnation = 1;
        /// Nodes talk to each other only if this is the same: what they have to agree on, as a number.
        std::uint64_t agreement = 0;
        std::uint32_t run = 0;  ///< only nodes of the same run work together; 0: it has no number that all know
        /// Nor do they without the same secret, which never crosses the network. Empty: none is asked for.
        std::string secret;
        std::string transports = "all";                ///< UCX_TLS: "all", "tcp", "rc,tcp", …
        core::TimeNs silence_ns = 2 * core::ns_per_s;  ///< after which a node counts as gone
        /// Between a readout node and any other node it is so much longer: it holds what nobody else has.
        core::TimeNs return_ns = 0;
        cluster::NodeSet readouts;
        cluster::NodeSet may_be_absent{};                   ///< of these it is not said
        core::TimeNs reconnect_ns = 200 * core::ns_per_ms;  ///< between tries to reach a node
    };

    /// Loads UCX and listens. Throws core::RunError: UCX is not installed, or the address is not this host's, or taken.
    UcxNetwork(const Config& config, Receiver& receiver);
    /// Peers see this node go away at once, after what was sent, for which it takes up to half a second. The receiver
    /// is told nothing any more, but memory of payload that was on its way is given back.
    ~UcxNetwork() override;

    /// To this node itself, too. Message::to and from are filled in already. A payload (its handle is its address) is
    /// not changed or freed before Receiver::sent. Messages without payload leave with the next progress() or arm(),
    /// those to the same node together.
    void send(cluster::NodeId to, const cluster::Message& message, cluster::Payload payload) override;

    /// See cluster::Quorum. Of two nodes that take each other for dead that lives on which has it; who has not expels
    /// nobody.
    void set_quorum(bool has_quorum) noexcept;
    /// Moves what can be moved, and tells the receiver. `now`: any clock that only rises. False: nothing was done.
    bool progress(core::TimeNs now);
    /// Becomes readable when there is something to do; before waiting for it, arm() has to have said yes. (Silence and
    /// new tries to connect are seen by progress() alone: do not wait longer than some milliseconds.)
    [[nodiscard]] int wait_fd() const noexcept;
    [[nodiscard]] bool arm();
    /// Everything that was sent has left, or its receiver is gone.
    [[nodiscard]] bool is_flushed() const noexcept;

    /// Hellos that were not believed, and connections that began with something else.
    [[nodiscard]] std::uint64_t refused() const noexcept;
    /// Those that UCX has chosen so far, to all other nodes: "tcp/eth0".
    [[nodiscard]] std::vector<std::string> transports() const;
    /// What UCX is, and these, in a few words.
    [[nodiscard]] std::string text() const;

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace weir::fabric
