#include "pipeline/levels.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::pipeline {

namespace {

bool full_when_idle(const std::string& ring) {
    return ring.starts_with("free");
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
