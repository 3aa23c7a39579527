// A node: a process with a network, which does what the board says.
#pragma once

#include <memory>
#include <string>

#include "board.hpp"
#include "fabric/ucx_network.hpp"
#include "job.hpp"

namespace weir::fabric::bench {

class Station final : private Receiver {
public:
    Station(const Options& options, const UcxNetwork::Config& config, Board& board);
    /// Until the board says to leave.
    void run();

private:
    void up(cluster::NodeId node, cluster::Incarnation incarnation) override;
    void down(cluster::NodeId node, cluster::Incarnation incarnation, cluster::Ending ending) override;
    void absent(cluster::NodeId /*node*/, cluster::Ending /*why*/) override {}
    void quiet(cluster::NodeId /*node*/, bool /*is_quiet*/) override {}
    void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) override;
    void sent(cluster::NodeId to, cluster::Block block) override;
    std::byte* room(std::uint64_t bytes) override;
    void give_back(std::byte* memory, std::uint64_t bytes) override;
    void say(const std::string& text) override;

    void enter(std::uint32_t step);
    void prepare();
    [[nodiscard]] bool has_reached() const;
    void tell_reached();
    void wait();

    const Options& options_;
    cluster::NodeId self_;
    Board& board_;
    Seat& seat_;
    cluster::NodeId others_ = 0;  ///< that are there
    std::uint32_t step_ = 0;
    bool told_ = false;  ///< that it was reached
    Task task_;
    // In the order of their making: a job holds pieces, and what the network still has is given back at its end.
    std::unique_ptr<Pieces> pieces_;
    std::unique_ptr<UcxNetwork> network_;
    std::unique_ptr<Job> job_;
};

}  // namespace weir::fabric::bench
