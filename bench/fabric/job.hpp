// What a node does in one turn.
#pragma once

#include "board.hpp"
#include "cluster/outlet.hpp"
#include "core/units.hpp"
#include "fabric/deferred_events.hpp"
#include "pieces.hpp"

namespace weir::fabric::bench {

/// Counts what goes to other nodes.
class CountingNetwork final : public cluster::Network {
public:
    CountingNetwork(cluster::Network& network, cluster::NodeId self) : network_(network), self_(self) {}
    void send(cluster::NodeId to, const cluster::Message& message, cluster::Payload payload) override {
        if (to != self_) ++counts.messages[static_cast<std::size_t>(message.kind)];
        network_.send(to, message, payload);
    }
    Counts counts;

private:
    cluster::Network& network_;
    cluster::NodeId self_;
};

class Job {
public:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    virtual ~Job() = default;

    virtual void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) = 0;
    virtual void sent(cluster::NodeId to, cluster::Block block) = 0;
    /// False: there was nothing to do.
    virtual bool work(core::TimeNs now) = 0;
    virtual void go() = 0;
    /// Begins nothing new. Returns what was not begun.
    [[nodiscard]] virtual cluster::Block pause() = 0;
    virtual void finish(cluster::Block last) = 0;
    [[nodiscard]] virtual bool is_done() const = 0;
    [[nodiscard]] virtual Counts counts() const = 0;
};

}  // namespace weir::fabric::bench
