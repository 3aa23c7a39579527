// Plain N-to-N: each readout node sends parts to each builder, round robin, and nobody builds anything. A builder lets
// a window of parts come from each readout node, and says by a message that it may send more.
#pragma once

#include <vector>

#include "job.hpp"

namespace weir::fabric::bench {

class NToN final : public Job {
public:
    NToN(const Options& options, const Task& task, cluster::NodeId self, cluster::Network& network, Pieces& memory);

    void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) override;
    void sent(cluster::NodeId to, cluster::Block block) override;
    bool work(core::TimeNs now) override;
    void go() override { goes_ = true; }
    cluster::Block pause() override;
    void finish(cluster::Block last) override;
    [[nodiscard]] bool is_done() const override;
    [[nodiscard]] Counts counts() const override { return network_.counts; }

private:
    [[nodiscard]] bool has_room() const noexcept;
    [[nodiscard]] bool next_builder() noexcept;
    void send_part();
    void take_part(cluster::NodeId from, cluster::Payload payload);
    [[nodiscard]] cluster::Message message_of(cluster::Kind kind, cluster::Block block) const;

    struct Partner {
        bool is_one = false;
        std::uint64_t parts = 0;    ///< that have gone there, or come from there
        std::uint32_t allowed = 0;  ///< more parts that may go there; from there: that it was not told of yet
    };

    Task task_;
    cluster::NodeId self_;
    CountingNetwork network_;
    Pieces& memory_;
    bool goes_ = false;
    std::uint32_t batch_ = 1;        ///< parts that a message allows
    std::vector<Partner> partners_;  ///< by node
    // A readout node.
    cluster::NodeId builder_ = 0;      ///< the last one
    std::vector<std::byte*> leaving_;  ///< by the last digits of their numbers; null: it has left
    std::uint64_t sending_ = 0;
    // A builder.
    std::uint64_t total_ = 0;       ///< that come from all that have said so
    cluster::NodeId finished_ = 0;  ///< readout nodes that have
};

}  // namespace weir::fabric::bench
