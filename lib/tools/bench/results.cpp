#include "bench/results.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/foreign_json.hpp"

namespace weir::bench {
namespace {

using nlohmann::json;

constexpr int json_version = 1;

template <class T>
json or_null(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

template <class T>
std::optional<T> optional_of(const json& from, const char* key) {
    const auto found = from.find(key);
    return found == from.end() || found->is_null() ? std::nullopt : std::optional<T>(found->get<T>());
}

json json_of(const std::optional<Latency>& latency) {
    if (!latency) return nullptr;
    return {{"p50", latency->p50}, {"p99", latency->p99}, {"p99.9", latency->p999}, {"max", latency->longest}};
}

std::optional<Latency> latency_of(const json& from) {
    const auto found = from.find("latency_s");
    if (found == from.end() || found->is_null()) return std::nullopt;
    return Latency{found->at("p50"), found->at("p99"), found->at("p99.9"), found->at("max")};
}

json json_of(const TrialRecord& trial) {
    const SenderCounts& sender = trial.sender;
    json all{{"intended_gbps", trial.intended_gbps},
             {"ramp", sender.ramp},
             {"intended", sender.intended},
             {"offered", sender.offered},
             {"sent", sender.handed_over},
             {"on_wire", or_null(sender.on_wire)},
             {"planned_s", sender.planned_s},
             {"took_s", sender.took_s},
             {"lag_max_s", sender.lag_max_s},
             {"jitter_s", sender.jitter_s},
             {"latency_s", json_of(trial.latency)},
             {"seconds", trial.seconds},
             {"loss_ratio", trial.loss_ratio},
             {"lost",
              {{"wire", trial.lost.wire},
               {"device", trial.lost.device},
               {"kernel", trial.lost.kernel},
               {"application", trial.lost.application},
               {"unknown", trial.lost.unknown}}},
             {"valid", trial.valid},
             {"why", trial.why}};
    all.update(to_json(trial.receiver));
    all["cpu_s"] = {{"sender", sender.cpu_s}, {"receiver", trial.receiver.cpu_s}};  // in place of the receiver's alone
    return all;
}

TrialRecord trial_of(const json& from) {
    TrialRecord trial;
    SenderCounts& sender = trial.sender;
    trial.intended_gbps = from.at("intended_gbps");
    sender.ramp = from.value("ramp", std::uint64_t{0});
    sender.intended = from.at("intended");
    sender.offered = from.at("offered");
    sender.handed_over = from.at("sent");
    sender.on_wire = optional_of<std::uint64_t>(from, "on_wire");
    sender.planned_s = from.at("planned_s");
    sender.took_s = from.at("took_s");
    sender.lag_max_s = from.at("lag_max_s");
    sender.jitter_s = from.at("jitter_s");
    sender.cpu_s = from.at("cpu_s").at("sender");
    json receiver = from;
    receiver["cpu_s"] = from.at("cpu_s").at("receiver");
    trial.receiver = receiver_counts_from_json(receiver);
    trial.latency = latency_of(from);
    trial.seconds = from.at("seconds");
    trial.loss_ratio = from.at("loss_ratio");
    const json& lost = from.at("lost");
    trial.lost = {lost.at("wire"), lost.at("device"), lost.at("kernel"), lost.at("application"), lost.at("unknown")};
    trial.valid = from.at("valid");
    trial.why = from.at("why");
    return trial;
}

json json_of(const std::vector<TrialRecord>& trials) {
    json all = json::array();
    for (const TrialRecord& trial : trials) all.push_back(json_of(trial));
    return all;
}

std::vector<TrialRecord> trials_of(const json& from) {
    std::vector<TrialRecord> trials;
    for (const json& trial : from) trials.push_back(trial_of(trial));
    return trials;
}

json json_of(const Bursts& bursts) {
    if (bursts.packets.empty()) return nullptr;
    return {{"packets", bursts.packets},
            {"reached_most", bursts.reached_most},
            {"implied_s", bursts.implied_s},
            {"corrected_s", bursts.corrected_s},
            {"trials", json_of(bursts.trials)}};
}

Bursts bursts_of(const json& from) {
    const auto found = from.find("bursts");
    if (found == from.end() || found->is_null()) return {};
    return {found->at("packets").get<std::vector<std::uint64_t>>(), found->at("reached_most"), found->at("implied_s"),
            found->at("corrected_s"), trials_of(found->at("trials"))};
}

json json_of(const Point& point) {
    return {{"transport", point.transport},
            {"sender", point.sender},
            {"depth", point.depth},
            {"bytes", point.bytes},
            {"packets_per_message", point.packets},
            {"sources", point.sources},
            {"addresses", point.addresses},
            {"goal", point.goal},
            {"repeat", point.repeat},
            {"lower_gbps", or_null(point.lower_gbps)},
            {"upper_gbps", or_null(point.upper_gbps)},
            {"conditional_gbps", or_null(point.conditional_gbps)},
            {"bursts", json_of(point.bursts)},
            {"irregular", point.irregular},
            {"remarks", point.remarks},
            {"ceiling_gbps", or_null(point.ceiling_gbps)},
            {"cpu_s_per_gb",
             {{"sender", or_null(point.sender_cpu_s_per_gb)}, {"receiver", or_null(point.receiver_cpu_s_per_gb)}}},
            {"latency_s", json_of(point.latency)},
            {"trials", json_of(point.trials)},
            {"not_available", point.not_available}};
}

Point point_of(const json& from) {
    Point point;
    point.transport = from.at("transport");
    point.sender = from.at("sender");
    point.depth = from.at("depth");
    point.bytes = from.at("bytes");
    point.packets = from.at("packets_per_message");
    point.sources = from.value("sources", 1U);
    point.addresses = from.at("addresses");
    point.goal = from.at("goal");
    point.repeat = from.at("repeat");
    point.lower_gbps = optional_of<double>(from, "lower_gbps");
    point.upper_gbps = optional_of<double>(from, "upper_gbps");
    point.conditional_gbps = optional_of<double>(from, "conditional_gbps");
    point.bursts = bursts_of(from);
    point.irregular = from.at("irregular");
    point.remarks = from.at("remarks");
    point.ceiling_gbps = optional_of<double>(from, "ceiling_gbps");
    point.sender_cpu_s_per_gb = optional_of<double>(from.at("cpu_s_per_gb"), "sender");
    point.receiver_cpu_s_per_gb = optional_of<double>(from.at("cpu_s_per_gb"), "receiver");
    point.latency = latency_of(from);
    point.trials = trials_of(from.at("trials"));
    point.not_available = from.at("not_available");
    return point;
}

json json_of(const HostFacts& host) {
    return {{"role", host.role},
            {"name", host.name},
            {"cpu", host.cpu},
            {"cpus", host.cpus},
            {"memory_bytes", host.memory_bytes},
            {"kernel", host.kernel},
            {"system", host.system},
            {"interface", host.interface},
            {"virtual", host.virtual_by},
            {"weir", host.weir},
            {"remarks", host.remarks}};
}

}  // namespace

HostFacts host_from_json(const json& from) {
    HostFacts host;
    host.role = from.at("role");
    host.name = from.at("name");
    host.cpu = from.at("cpu");
    host.cpus = from.at("cpus");
    host.memory_bytes = from.at("memory_bytes");
    host.kernel = from.at("kernel");
    host.system = from.at("system");
    host.interface = from.at("interface");
    host.virtual_by = from.at("virtual");
    host.weir = from.at("weir");
    host.remarks = from.at("remarks").get<std::vector<std::string>>();
    return host;
}

json to_json(const HostFacts& host) {
    return json_of(host);
}
json to_json(const ReceiverCounts& counts) {
    return {{"ramp_received", counts.ramp},
            {"arrived", or_null(counts.arrived)},
            {"device_dropped", or_null(counts.device_dropped)},
            {"kernel_dropped", or_null(counts.kernel_dropped)},
            {"taken", counts.taken},
            {"received", counts.received},
            {"duplicates", counts.duplicates},
            {"damaged", counts.damaged},
            {"others", counts.others},
            {"assembled", or_null(counts.assembled)},
            {"messages", counts.messages},
            {"settled", counts.settled},
            {"cpu_s", counts.cpu_s}};
}

ReceiverCounts receiver_counts_from_json(const json& from) {
    ReceiverCounts counts;
    counts.ramp = from.value("ramp_received", std::uint64_t{0});
    counts.arrived = optional_of<std::uint64_t>(from, "arrived");
    counts.device_dropped = optional_of<std::uint64_t>(from, "device_dropped");
    counts.kernel_dropped = optional_of<std::uint64_t>(from, "kernel_dropped");
    counts.taken = from.at("taken");
    counts.received = from.at("received");
    counts.duplicates = from.at("duplicates");
    counts.damaged = from.at("damaged");
    counts.others = from.at("others");
    counts.assembled = optional_of<std::uint64_t>(from, "assembled");
    counts.messages = from.at("messages");
    counts.settled = from.at("settled");
    counts.cpu_s = from.at("cpu_s");
    return counts;
}

json to_json(const Results& results) {
    json hosts = json::array();
    for (const HostFacts& host : results.hosts) hosts.push_back(json_of(host));
    json points = json::array();
    for (const Point& point : results.points) points.push_back(json_of(point));
    return {{"version", json_version},     {"title", results.title}, {"started", results.started},
            {"command", results.command},  {"link", results.link},   {"hosts", std::move(hosts)},
            {"results", std::move(points)}};
}

Results results_from_json(const json& from) {
    try {
        if (const int version = from.at("version"); version != json_version)
            throw core::RunError(
                fmt::format("written by another version of weir bench ({}, not {})", version, json_version));
        Results results;
        results.title = from.at("title");
        results.started = from.at("started");
        results.command = from.at("command");
        results.link = from.at("link");
        for (const json& host : from.at("hosts")) results.hosts.push_back(host_from_json(host));
        for (const json& point : from.at("results")) results.points.push_back(point_of(point));
        return results;
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("no results of weir bench: {}", error.what()));
    }
}

Results read_results(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw core::RunError(fmt::format("{}: {}", path, std::strerror(errno)));
    const std::optional<json> read = core::read_json(std::string(std::istreambuf_iterator(file), {}));
    if (!read) throw core::RunError(fmt::format("{}: no JSON", path));
    try {
        return results_from_json(*read);
    } catch (const core::RunError& error) {
        throw core::RunError(fmt::format("{}: {}", path, error.what()));
    }
}

}  // namespace weir::bench
