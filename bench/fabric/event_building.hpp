// The event-building core on the network: readout nodes offer parts as fast as they are released, builders write what
// is built at once.
#pragma once

#include <vector>

#include "cluster/node.hpp"
#include "job.hpp"

namespace weir::fabric::bench {

class EventBuilding final : public Job, private cluster::Application {
public:
    EventBuilding(const Options& options, const Task& task, cluster::NodeId self, cluster::Network& network,
                  Pieces& memory);

    void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) override;
    void sent(cluster::NodeId to, cluster::Block block) override { node_.sent(to, block); }
    bool work(core::TimeNs now) override;
    void go() override;
    cluster::Block pause() override;
    void finish(cluster::Block last) override;
    [[nodiscard]] bool is_done() const override;
    [[nodiscard]] Counts counts() const override;

private:
    void built(cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts) override;
    void release(cluster::Payload payload) override { memory_.give_back(memory_of(payload)); }
    void drop(cluster::Payload payload) override { release(payload); }
    void expelled() override;
    void ended() override { has_ended_ = true; }
    bool offer();
    bool write();

    Task task_;
    cluster::NodeId nodes_;
    cluster::NodeId self_;
    CountingNetwork network_;
    Pieces& memory_;
    cluster::Node node_;
    bool goes_ = false;
    core::TimeNs now_ = 0;
    core::TimeNs looked_ = 0;
    cluster::Block next_ = 0;  ///< to be offered
    cluster::Block end_ = 0;   ///< of what may be offered
    bool closes_ = false;
    std::vector<cluster::Block> written_;  ///< and the core has not been told
    std::uint64_t wrong_ = 0;
    bool has_ended_ = false;
};

}  // namespace weir::fabric::bench
