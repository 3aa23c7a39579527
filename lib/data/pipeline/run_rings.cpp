#include "pipeline/run_rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace weir::pipeline {

namespace {

/// What a ring between two lcores is called: as ever where there is one builder, "3.1" (lcore 3, shard 1) otherwise.
std::string edge_name(std::size_t lcore, std::size_t shard, std::size_t shards) {
    return shards == 1 ? fmt::format("{}", lcore) : fmt::format("{}.{}", lcore, shard);
}

template <class T, class... Arguments>
void make(std::vector<std::unique_ptr<port::Ring<T>>>& rings, Arguments&&... arguments) {
    rings.push_back(std::make_unique<port::Ring<T>>(std::forward<Arguments>(arguments)...));
}

std::string stage(const char* kind, std::size_t index) {
    return fmt::format("{}{}", kind, index);
}

}  // namespace

template <class T>
void RunRings::add(Levels& levels, const Rings<T>& rings) const {
    for (const auto& ring : rings) {
        if (ring == nullptr) continue;
        const auto edge = edges_.find(ring->name());
        levels.rings.push_back({ring->name(),
                                {ring->count(), ring->capacity(), ring->highest()},
                                ring->times_full(),
                                ring->dropped(),
                                edge != edges_.end() ? edge->second.from : "",
                                edge != edges_.end() ? edge->second.to : ""});
    }
}

RunRings::RunRings(const plan::Plan& plan, bool capture, std::size_t sinks)
    : rx_count_(plan.rx.size()), shards_(plan.build.size()) {
    make_steer(plan);
    if (capture) {
        make(capture_, "capture", plan.packet_ring);
        edges_["capture"] = {"reader", stage("rx", 0)};
    }
    make_assembly(plan);
    make_output(plan, sinks);
}

void RunRings::make_steer(const plan::Plan& plan) {
    for (std::size_t from = 0; from < rx_count_; ++from)
        for (std::size_t to = 0; to < rx_count_; ++to) {
            if (from == to) {
                steer_.push_back(nullptr);
                continue;
            }
            const std::string name = fmt::format("steer{}.{}", from, to);
            make(steer_, name, plan.steer_ring, plan.memory_node(plan.rx[to]));
            edges_[name] = {stage("rx", from), stage("rx", to)};
        }
}

/// From packets to events, and back.
void RunRings::make_assembly(const plan::Plan& plan) {
    for (std::size_t rx = 0; rx < rx_count_; ++rx)
        for (std::size_t shard = 0; shard < shards_; ++shard) {
            const std::string edge = edge_name(rx, shard, shards_);
            make(descriptors_, "descriptors" + edge, plan.descriptor_ring, plan.memory_node(plan.build[shard]));
            make(commands_, "commands" + edge, plan.descriptor_ring, plan.memory_node(plan.rx[rx]));
            edges_["descriptors" + edge] = {stage("rx", rx), stage("build", shard)};
            edges_["commands" + edge] = {stage("build", shard), stage("rx", rx)};
        }
    for (std::size_t worker = 0; worker < plan.work.size(); ++worker) {
        for (std::size_t shard = 0; shard < shards_; ++shard) {
            const std::string edge = edge_name(worker, shard, shards_);
            make(events_, "events" + edge, plan.event_ring, plan.memory_node(plan.work[worker]));
            make(released_, "released" + edge, plan.event_ring, plan.memory_node(plan.build[shard]));
            edges_["events" + edge] = {stage("build", shard), stage("work", worker)};
            edges_["released" + edge] = {stage("work", worker), stage("build", shard)};
        }
        for (std::size_t rx = 0; rx < rx_count_; ++rx) {
            const std::string name = fmt::format("recycle{}.{}", worker, rx);
            make(recycle_, name, plan.messages_per_rx, plan.memory_node(plan.rx[rx]));
            edges_[name] = {stage("work", worker), stage("rx", rx)};
        }
    }
}

void RunRings::make_output(const plan::Plan& plan, std::size_t sinks) {
    if (sinks == 0) return;
    for (std::size_t worker = 0; worker < plan.work.size(); ++worker) {
        const int node = plan.memory_node(plan.work[worker]);
        make(free_, fmt::format("free{}", worker), plan.output_buffers, node);
        make(full_, fmt::format("full{}", worker), plan.output_buffers, node);
        edges_[stage("full", worker)] = {stage("work", worker), "sink0"};
        edges_[stage("free", worker)] = {stage("sink", sinks - 1), stage("work", worker)};
    }
    const auto all_buffers = static_cast<std::uint32_t>(plan.work.size() * plan.output_buffers);
    for (std::size_t sink = 0; sink + 1 < sinks; ++sink) {
        make(sinks_, fmt::format("sinks{}", sink), all_buffers);
        edges_[stage("sinks", sink)] = {stage("sink", sink), stage("sink", sink + 1)};
    }
}

void RunRings::add_to(Levels& levels) const {
    for (const auto& full : full_) {
        levels.writer.used += full->count();
        levels.writer.size += full->capacity();
        levels.writer.highest += full->highest();
    }
    for (const auto& between : sinks_) {  // the same buffers, on their way from one sink to the next
        levels.writer.used = std::min(levels.writer.size, levels.writer.used + between->count());
        levels.writer.highest = std::max<std::uint64_t>(levels.writer.highest, between->highest());
    }
    add(levels, steer_);
    add(levels, capture_);
    add(levels, descriptors_);
    add(levels, commands_);
    add(levels, events_);
    add(levels, released_);
    add(levels, recycle_);
    add(levels, full_);
    add(levels, sinks_);
    add(levels, free_);
}

}  // namespace weir::pipeline
