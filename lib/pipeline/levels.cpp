#include "pipeline/levels.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

namespace {

bool full_when_idle(const std::string& ring) {
    return ring.starts_with("free");
}

template <class T>
void add(Levels& levels, const std::vector<std::unique_ptr<port::Ring<T>>>& rings) {
    for (const auto& ring : rings)
        levels.rings.push_back(
            {ring->name(), {ring->count(), ring->capacity(), ring->highest()}, ring->times_full(), ring->dropped()});
}

nlohmann::json level_json(const Level& level) {
    return {{"used", level.used}, {"size", level.size}, {"highest", std::max(level.used, level.highest)}};
}

}  // namespace

const Levels::Ring* Levels::fullest() const noexcept {
    const Ring* fullest = nullptr;
    for (const Ring& ring : rings)
        if (!full_when_idle(ring.name) && ring.level.used > 0 &&
            (fullest == nullptr || ring.level.fraction() > fullest->level.fraction()))
            fullest = &ring;
    return fullest;
}

Levels Pipeline::levels() const {
    Levels levels;
    const Plan& plan = options_.plan;
    levels.buffers.highest = pool_highest_;
    for (const auto& pool : pools_) {
        levels.buffers.used += pool->in_use();
        levels.buffers.size += pool->size();
    }
    for (const auto& rx : rx_) {
        levels.memory.used += rx->buffers_held();
        levels.memory.highest += rx->buffers_highest();
    }
    levels.memory.size = std::uint64_t{plan.buffers_per_rx} * rx_.size();
    levels.open.size = plan.open_max;
    levels.queued.size = plan.queued_max;
    for (const auto& build : build_) {
        levels.open.used += build->open_events();
        levels.queued.used += build->queued_events();
        levels.open.highest += build->open_highest();
        levels.queued.highest += build->queued_highest();
    }
    for (const auto& full : full_rings_) {
        levels.writer.used += full->count();
        levels.writer.size += full->capacity();
        levels.writer.highest += full->highest();
    }
    for (const auto& between : sink_rings_) {  // the same buffers, on their way from one sink to the next
        levels.writer.used = std::min(levels.writer.size, levels.writer.used + between->count());
        levels.writer.highest = std::max<std::uint64_t>(levels.writer.highest, between->highest());
    }
    add(levels, packet_rings_);
    add(levels, descriptor_rings_);
    add(levels, command_rings_);
    add(levels, event_rings_);
    add(levels, released_rings_);
    add(levels, recycle_rings_);
    add(levels, full_rings_);
    add(levels, sink_rings_);
    add(levels, free_rings_);
    return levels;
}

nlohmann::json levels_json(const Levels& levels) {
    nlohmann::json json = {{"buffers", level_json(levels.buffers)}, {"memory", level_json(levels.memory)},
                           {"open", level_json(levels.open)},       {"queued", level_json(levels.queued)},
                           {"writer", level_json(levels.writer)},   {"rings", nlohmann::json::object()}};
    for (const Levels::Ring& ring : levels.rings) {
        nlohmann::json& entry = json["rings"][ring.name] = level_json(ring.level);
        entry["times_full"] = ring.times_full;
        entry["dropped"] = ring.dropped;
    }
    return json;
}

}  // namespace weir::pipeline
