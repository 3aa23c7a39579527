#include "n_to_n.hpp"

#include <algorithm>
#include <utility>

namespace weir::fabric::bench {

using cluster::Block;
using cluster::Kind;
using cluster::Message;
using cluster::NodeId;

NToN::NToN(const Options& options, const Task& task, NodeId self, cluster::Network& network, Pieces& memory)
    : task_(task),
      self_(self),
      network_(network, self),
      memory_(memory),
      partners_(options.nodes()),
      builder_(self),
      leaving_(options.held(), nullptr) {
    if (task.mode == Mode::n_to_n_batched) batch_ = std::max(1U, options.window() / 2);
    for (NodeId node = 0; node < options.nodes(); ++node)
        if (is_readout(node) != is_readout(self))
            partners_[node] = {.is_one = true, .parts = 0, .allowed = is_readout(self) ? options.window() : 0};
}

Message NToN::message_of(Kind kind, Block block) const {
    return {.kind = kind, .from = task_.number, .to = task_.number, .block = block, .end = block + 1};
}

// A readout node.

bool NToN::has_room() const noexcept {
    return !memory_.empty() && leaving_[network_.counts.handed_over % leaving_.size()] == nullptr;
}

bool NToN::next_builder() noexcept {
    for (std::size_t step = 0; step < partners_.size(); ++step) {
        builder_ = static_cast<NodeId>((builder_ + 1U) % partners_.size());
        if (partners_[builder_].is_one && partners_[builder_].allowed > 0) return true;
    }
    return false;
}

void NToN::send_part() {
    const Block number = network_.counts.handed_over++;
    std::byte* const part = memory_.take();
    leaving_[number % leaving_.size()] = part;
    ++sending_;
    --partners_[builder_].allowed;
    ++partners_[builder_].parts;
    network_.send(builder_, message_of(Kind::part, number), {task_.part_bytes, handle_of(part)});
}

void NToN::sent(NodeId /*to*/, Block block) {
    memory_.give_back(std::exchange(leaving_[block % leaving_.size()], nullptr));
    --sending_;
}

bool NToN::work(core::TimeNs /*now*/) {
    if (!goes_ || !is_readout(self_)) return false;
    bool worked = false;
    while (has_room() && next_builder()) {
        send_part();
        worked = true;
    }
    return worked;
}

Block NToN::pause() {
    goes_ = false;
    return network_.counts.handed_over;
}

/// Builders hear how many parts there were.
void NToN::finish(Block /*last*/) {
    if (!is_readout(self_)) return;
    for (NodeId node = 0; node < partners_.size(); ++node)
        if (partners_[node].is_one) network_.send(node, message_of(Kind::ready, partners_[node].parts), {});
}

// A builder.

void NToN::received(NodeId from, const Message& message, cluster::Payload payload) {
    if (message.kind == Kind::request) {
        partners_.at(from).allowed += static_cast<std::uint32_t>(message.block);
    } else if (message.kind == Kind::ready) {
        total_ += message.block;
        ++finished_;
    } else {
        take_part(from, payload);
    }
}

void NToN::take_part(NodeId from, cluster::Payload payload) {
    Partner& partner = partners_.at(from);
    if (payload.bytes != task_.part_bytes || !partner.is_one) ++network_.counts.wrong;
    ++network_.counts.received;
    memory_.give_back(memory_of(payload));
    ++partner.parts;
    if (++partner.allowed < batch_) return;
    network_.send(from, message_of(Kind::request, std::exchange(partner.allowed, 0U)), {});
}

bool NToN::is_done() const {
    if (is_readout(self_)) return sending_ == 0;
    return finished_ * 2U == partners_.size() && network_.counts.received == total_;
}

}  // namespace weir::fabric::bench
