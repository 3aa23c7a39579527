#include "station.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "core/clock_ns.hpp"
#include "event_building.hpp"
#include "n_to_n.hpp"

namespace weir::fabric::bench {

using cluster::NodeId;

Station::Station(const Options& options, const UcxNetwork::Config& config, Board& board)
    : options_(options),
      self_(config.self),
      board_(board),
      seat_(board.seats.at(config.self)),
      network_(std::make_unique<UcxNetwork>(config, static_cast<Receiver&>(*this))) {}

void Station::run() {
    while (true) {
        const std::uint32_t step = board_.step.load(std::memory_order_acquire);
        if (step != step_) enter(step);
        if (stage_of(step_) == Stage::leave) break;
        const core::TimeNs now = core::monotonic_ns();
        bool worked = network_->progress(now);
        if (job_) worked |= job_->work(now);
        if (!told_ && has_reached()) tell_reached();
        if (!worked && !options_.spins) wait();
    }
    network_.reset();
}

void Station::enter(std::uint32_t step) {
    step_ = step;
    told_ = false;
    switch (stage_of(step)) {
        case Stage::prepare:
            prepare();
            break;
        case Stage::go:
            job_->go();
            break;
        case Stage::pause:
            seat_.next.store(job_->pause(), std::memory_order_relaxed);
            break;
        case Stage::finish:
            job_->finish(board_.last.load(std::memory_order_relaxed));
            break;
        case Stage::nothing:
        case Stage::connect:
        case Stage::leave:
            break;
    }
}

void Station::prepare() {
    task_ = board_.task;
    job_.reset();
    pieces_ = std::make_unique<Pieces>(task_.part_bytes, is_readout(self_) ? options_.held() : options_.taken());
    if (task_.mode == Mode::building)
        job_ = std::make_unique<EventBuilding>(options_, task_, self_, *network_, *pieces_);
    else
        job_ = std::make_unique<NToN>(options_, task_, self_, *network_, *pieces_);
}

bool Station::has_reached() const {
    if (stage_of(step_) == Stage::connect) return others_ + 1 == options_.nodes();
    return stage_of(step_) != Stage::finish || job_->is_done();
}

void Station::tell_reached() {
    told_ = true;
    if (stage_of(step_) == Stage::connect)
        std::strncpy(seat_.network, network_->text().c_str(), sizeof seat_.network - 1);
    if (stage_of(step_) == Stage::finish) seat_.counts = job_->counts();
    seat_.reached.store(step_, std::memory_order_release);
}

void Station::wait() {
    if (!network_->arm()) return;
    pollfd wanted{network_->wait_fd(), POLLIN, 0};
    ::poll(&wanted, 1, 1);
}

void Station::up(NodeId /*node*/, cluster::Incarnation /*incarnation*/) {
    ++others_;
}

void Station::down(NodeId node, cluster::Incarnation /*incarnation*/, cluster::Ending /*ending*/) {
    --others_;
    if (stage_of(board_.step.load(std::memory_order_acquire)) != Stage::leave)
        throw std::runtime_error("node " + std::to_string(node) + " went away");
}

/// What is of an earlier turn is nobody's.
void Station::received(NodeId from, const cluster::Message& message, cluster::Payload payload) {
    const bool is_of_turn = job_ && message.to == task_.number;
    if (has_payload(message)) {
        if (!is_of_turn) throw std::logic_error("a part has come after its turn");
        seat_.received_bytes.fetch_add(payload.bytes, std::memory_order_relaxed);
    }
    if (is_of_turn) job_->received(from, message, payload);
}

void Station::sent(cluster::NodeId to, cluster::Block block) {
    job_->sent(to, block);
}

std::byte* Station::room(std::uint64_t bytes) {
    if (!pieces_ || bytes != task_.part_bytes) throw std::logic_error("a part has another size");
    return pieces_->take();
}

void Station::give_back(std::byte* memory, std::uint64_t /*bytes*/) {
    pieces_->give_back(memory);
}

void Station::say(const std::string& text) {
    fmt::print(stderr, "node {}: {}\n", self_, text);
}

}  // namespace weir::fabric::bench
