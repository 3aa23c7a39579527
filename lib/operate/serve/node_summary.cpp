#include "serve/node_summary.hpp"

#include <initializer_list>

namespace weir::serve {

namespace {

using nlohmann::json;

json only(const json& object, std::initializer_list<const char*> keys) {
    json kept = json::object();
    if (!object.is_object()) return kept;
    for (const char* key : keys)
        if (const auto found = object.find(key); found != object.end()) kept[key] = *found;
    return kept;
}

/// {"late": 3}: packets.
json lost_packets(const json& losses) {
    json lost = json::object();
    if (!losses.is_array()) return lost;
    for (const json& loss : losses)
        if (const std::string cause = text_at(loss, "/cause"); !cause.empty())
            lost[cause] = number_at(loss, "/packets");
    return lost;
}

/// Names of the nodes that the run is not to miss.
json may_be_absent(const json& nodes) {
    json names = json::array();
    if (!nodes.is_array()) return names;
    for (const json& node : nodes)
        if (part_at(node, "/spare") == true) names.push_back(text_at(node, "/name"));
    return names;
}

json cluster_summary(const json& cluster) {
    json kept = only(cluster, {"node", "role", "lives", "lost_blocks", "has_quorum", "manager", "builder", "readout"});
    kept["may_be_absent"] = may_be_absent(part_at(cluster, "/nodes"));
    if (kept.contains("builder")) kept["builder"] = only(kept["builder"], {"blocks", "readouts"});
    if (kept.contains("readout")) kept["readout"] = only(kept["readout"], {"parts", "builders", "memory"});
    return kept;
}

}  // namespace

const json& part_at(const json& value, const char* pointer) {
    static const json nothing;
    const json::json_pointer where(pointer);
    return value.contains(where) ? value.at(where) : nothing;
}

std::string text_at(const json& value, const char* pointer) {
    const json& found = part_at(value, pointer);
    return found.is_string() ? found.get<std::string>() : "";
}

double number_at(const json& value, const char* pointer) {
    const json& found = part_at(value, pointer);
    return found.is_number() ? found.get<double>() : 0;
}

json node_summary(const json& document) {
    json summary = only(part_at(document, "/status"), {"state", "mode", "since_s", "error", "next_run"});
    for (const char* key : {"host", "version"})
        if (document.contains(key)) summary[key] = document[key];
    summary["run"] = only(part_at(document, "/run"), {"number", "started", "seconds", "stop_reason"});
    summary["rates"] = only(part_at(document, "/rates"), {"packets_per_s", "gbps", "events_per_s"});
    summary["lost"] = lost_packets(part_at(document, "/losses"));
    summary["cluster"] = cluster_summary(part_at(document, "/cluster"));
    summary["last_run"] =
        only(part_at(document, "/runs/0"), {"number", "events", "incomplete", "written", "lost_packets",
                                            "missing_packets", "lossless", "error", "stop_reason"});
    summary["command"] = part_at(document, "/command/last");
    return summary;
}

}  // namespace weir::serve
