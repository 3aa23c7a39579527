// What the rx lcore exchanges with other lcores, once per turn: commands and messages that come back from builders,
// descriptors to them, packets that belong to another rx lcore, and the time up to which nothing more will come.
#include <algorithm>

#include "stages/rx/rx_stage.hpp"

namespace weir::pipeline {

using core::PacketCounter;

std::size_t RxStage::take_commands() noexcept {
    std::size_t work = 0;
    for (port::Ring<assemble::Command>* ring : config_.commands) {
        std::array<assemble::Command, burst> commands;
        const std::uint32_t count = ring->pop(commands);
        for (std::uint32_t i = 0; i < count; ++i) table_.execute(commands[i], time_);
        work += count;
    }
    for (port::Ring<assemble::Message*>* ring : config_.recycle) {
        std::array<assemble::Message*, burst> messages;
        const std::uint32_t returned = ring->pop(messages);
        for (std::uint32_t i = 0; i < returned; ++i)
            table_.execute({assemble::Command::Kind::recycle, 0, 0, messages[i]}, time_);
        work += returned;
    }
    return work;
}

void RxStage::send_descriptors() noexcept {
    if (table_.all_sent()) return;
    for (std::uint32_t shard = 0; shard < table_.shards(); ++shard) {
        const std::span<const assemble::Descriptor> pending = table_.pending(shard);
        if (pending.empty()) continue;
        const std::uint32_t sent = config_.descriptors[shard]->push(pending);
        if (sent > 0) table_.consume_pending(sent, shard);
    }
}

bool RxStage::flush_stashes() noexcept {
    bool empty = true;
    for (std::size_t owner = 0; owner < stashes_.size(); ++owner) {
        Stash& stash = stashes_[owner];
        if (stash.first == stash.count) continue;
        stash.first +=
            config_.steer_out[owner].ring->push({stash.packets.data() + stash.first, stash.count - stash.first});
        if (stash.first == stash.count) {
            stash.first = stash.count = 0;
        } else if (!config_.wait) {
            count_processed(stash.count - stash.first);
            config_.steer_out[owner].ring->count_dropped(stash.count - stash.first);
            for (; stash.first < stash.count; ++stash.first)
                reject(stash.packets[stash.first], PacketCounter::ring_full_steer);
            stash.first = stash.count = 0;
        } else {
            empty = false;
            blocked(Blocked::steer);
        }
    }
    return empty;
}

/// From other rx lcores. What one has promised holds here once everything has been taken that was in its ring when the
/// promise was read: this lcore may have been away for longer than the time-out, with packets waiting there.
std::size_t RxStage::take_steered() noexcept {
    std::size_t work = 0;
    bool ended = true;
    TimeNs* until = until_.data() + config_.ports.size() + config_.rings.size();
    for (std::size_t i = 0; i < config_.steer_in.size(); ++i, ++until) {
        const SteerEdge& edge = config_.steer_in[i];
        SteerPromise& promise = steer_promises_[i];
        if (edge.ring == nullptr) {
            *until = never;
            continue;
        }
        const bool last = edge.signals->steered_all.load(std::memory_order_acquire);
        if (promise.left == 0)
            promise = {edge.signals->steered_until.load(std::memory_order_acquire), edge.ring->count()};
        // Each may be a datagram in many buffers; a replay takes no more than there is room for.
        std::uint32_t wanted = burst;
        while (config_.wait && wanted > 0 && !table_.has_room(wanted * port::IpReassembly::pieces_max)) wanted /= 2;
        const std::uint32_t count = edge.ring->pop({taken_.data(), wanted});
        if (count > 0) {
            // In order of time, as the other lcore took them: nothing from before this one waits after it.
            *until = std::max(*until, taken_[count - 1].time_ns);
            table_.hold_time(until_all_but(*until));
        }
        process({taken_.data(), count}, nullptr);
        count_processed(count);
        if (count > 0 || !last || wanted == 0) ended = false;
        promise.left -= std::min(promise.left, count);
        if (promise.left == 0) *until = last && count < wanted ? never : std::max(*until, promise.until);
        work += count;
    }
    steered_ended_ = ended;
    const auto steered = std::span(until_).subspan(config_.ports.size() + config_.rings.size());
    steered_time_ = steered.empty() ? never : std::ranges::min(steered);
    return work;
}

void RxStage::publish() noexcept {
    const assemble::Fill fill = table_.fill();
    if (own_.fill.load(std::memory_order_relaxed) != fill) own_.fill.store(fill, std::memory_order_relaxed);
    // A promise holds only once everything before it is in the ring that it is about. The two do not wait for each
    // other: the builder may have to go on for the lcore that packets are steered to before it can take more of them.
    if (flush_stashes()) {
        if (own_time_ != never && own_.steered_until.load(std::memory_order_relaxed) != own_time_)
            own_.steered_until.store(own_time_, std::memory_order_release);
        if (own_ended_ && !own_.steered_all.load(std::memory_order_relaxed))
            own_.steered_all.store(true, std::memory_order_release);
    }
    const TimeNs until = std::min(own_time_, steered_time_);
    if (!table_.all_sent() || until == never) return;
    time_ = std::max(time_, until);
    if (own_.watermark.load(std::memory_order_relaxed) < until) own_.watermark.store(until, std::memory_order_release);
}

}  // namespace weir::pipeline
