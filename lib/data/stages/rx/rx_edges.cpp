#include "stages/rx/rx_edges.hpp"

#include <algorithm>
#include <array>

#include "stages/rx/packet_chain.hpp"

namespace weir::stages {

RxEdges::RxEdges(Config config, RxSignals& own, assemble::MessageTable& table, InputTimes& times,
                 std::size_t first_input, RxPasses& passes)
    : config_(std::move(config)),
      own_(own),
      table_(table),
      times_(times),
      first_input_(first_input),
      passes_(passes),
      stashes_(config_.steer_out.size()) {
    for (const SteerEdge& edge : config_.steer_in) {
        inputs_.push_back({.edge = edge, .ended = edge.ring == nullptr});
        if (edge.ring == nullptr) times_.end(first_input + inputs_.size() - 1);
    }
}

std::size_t RxEdges::take_commands(TimeNs now) noexcept {
    std::size_t work = 0;
    for (port::Ring<assemble::Command>* ring : config_.commands) {
        std::array<assemble::Command, burst> commands;
        const std::uint32_t count = ring->pop(commands);
        for (std::uint32_t i = 0; i < count; ++i) table_.execute(commands[i], now);
        work += count;
    }
    for (port::Ring<assemble::Message*>* ring : config_.recycle) {
        std::array<assemble::Message*, burst> messages;
        const std::uint32_t returned = ring->pop(messages);
        for (std::uint32_t i = 0; i < returned; ++i)
            table_.execute({assemble::Command::Kind::recycle, 0, 0, messages[i]}, now);
        work += returned;
    }
    return work;
}

void RxEdges::send_descriptors() noexcept {
    if (table_.all_sent()) return;
    for (std::uint32_t shard = 0; shard < table_.shards(); ++shard) {
        const std::span<const assemble::Descriptor> pending = table_.pending(shard);
        if (pending.empty()) continue;
        const std::uint32_t sent = config_.descriptors[shard]->push(pending);
        if (sent > 0) table_.consume_pending(sent, shard);
    }
}

bool RxEdges::flush() noexcept {
    bool empty = true;
    for (std::size_t owner = 0; owner < stashes_.size(); ++owner) {
        port::PacketBatch& stash = stashes_[owner];
        if (stash.empty()) continue;
        port::Ring<port::Packet>& ring = *config_.steer_out[owner].ring;
        stash.push_to(ring);
        if (stash.empty()) continue;
        if (config_.wait) {
            empty = false;
            continue;
        }
        passes_.count_processed(stash.size());
        ring.count_dropped(stash.size());
        for (const port::Packet& packet : stash.take()) reject(table_, packet, wire::PacketCounter::ring_full_steer);
    }
    return empty;
}

/// What an rx lcore has promised holds here once everything has been taken that was in its ring when the promise was
/// read: this lcore may have been away for longer than the time-out, with packets waiting there.
void RxEdges::take_steered(std::size_t input, port::PacketBatch& batch) noexcept {
    Input& from = inputs_[input];
    if (from.edge.ring == nullptr) return;
    const bool last = from.edge.signals->steered_all.load(std::memory_order_acquire);
    if (from.left == 0) {
        from.promise = from.edge.signals->steered_until.load(std::memory_order_acquire);
        from.left = from.edge.ring->count();
    }
    // Each may be a datagram in many buffers; a replay takes no more than there is room for.
    std::uint32_t buffers = 0;
    bool refused = false;
    const auto has_room = [&](const port::Packet& packet) {
        buffers += std::max(1U, packet.pieces());
        refused = !table_.has_room(buffers);
        return !refused;
    };
    const std::uint32_t count =
        config_.wait ? batch.pull_while(*from.edge.ring, has_room) : batch.pull_from(*from.edge.ring);
    const std::size_t index = first_input_ + input;
    if (count > 0) {
        // In order of time, as the other lcore took them: nothing from before this one waits after it.
        times_.advance(index, batch.packets().back().time_ns);
        table_.hold_time(times_.all_but(index));
    }
    from.ended = last && count == 0 && !refused;
    from.left -= std::min(from.left, count);
    if (from.left > 0) return;
    if (last && count < burst && !refused)
        times_.end(index);
    else
        times_.advance(index, from.promise);
}

bool RxEdges::all_taken() const noexcept {
    return std::ranges::all_of(inputs_, &Input::ended);
}

void RxEdges::ask_for_room(bool needed) noexcept {
    if (own_.need_room.load(std::memory_order_relaxed) != needed)
        own_.need_room.store(needed, std::memory_order_relaxed);
}

TimeNs RxEdges::publish(bool own_ended) noexcept {
    const assemble::Fill fill = table_.fill();
    if (own_.fill.load(std::memory_order_relaxed) != fill) own_.fill.store(fill, std::memory_order_relaxed);
    // A promise holds only once everything before it is in the ring that it is about. The two do not wait for each
    // other: the builder may have to go on for the lcore that packets are steered to before it can take more of them.
    if (flush()) {
        const TimeNs steered = times_.own();
        if (steered != never && own_.steered_until.load(std::memory_order_relaxed) != steered)
            own_.steered_until.store(steered, std::memory_order_release);
        if (own_ended && !own_.steered_all.load(std::memory_order_relaxed))
            own_.steered_all.store(true, std::memory_order_release);
    }
    const TimeNs until = times_.all();
    if (!table_.all_sent() || until == never) return InputTimes::nothing_yet;
    if (own_.watermark.load(std::memory_order_relaxed) < until) own_.watermark.store(until, std::memory_order_release);
    return until;
}

void RxEdges::publish_end(TimeNs last) noexcept {
    if (own_.finished.load(std::memory_order_relaxed)) return;
    // What was due by the last packet timed out, whether or not this lcore came to promise that time before.
    if (own_.watermark.load(std::memory_order_relaxed) < last) own_.watermark.store(last, std::memory_order_release);
    own_.finished.store(true, std::memory_order_release);
}

}  // namespace weir::stages
