#include "observe/telemetry.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "core/error.hpp"
#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/ledger_json.hpp"
#include "observe/run_recorder.hpp"
#include "observe/seen.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

using nlohmann::json;

constexpr const char* prefix = "/weir/";
/// Held while an answer is being made, by as many as make one; alone by who comes and goes.
constinit std::shared_mutex instance_mutex;
Telemetry* instance = nullptr;

struct Command {
    const char* name;
    const char* help;
};
constexpr Command commands[] = {
    {"/weir/ledger", "The account so far, as in the run report. Names have / where the report has a dot."},
    {"/weir/sources",
     "Packets and missing packets of each source. Parameter: the number of a source, for one of them."},
    {"/weir/ports", "What each device says it received and lost."},
    {"/weir/lcores", "What each stage of the pipeline has done, and on which lcore it runs."},
    {"/weir/rings", "How full each ring is, and buffers, memory, open and queued events, and the writer's queue."},
    {"/weir/seen",
     "What comes besides the streams, and from where: for when nothing is coming. Links, ARP, "
     "ports that nobody asked for."},
    {"/weir/recorder", "What the pcapng sink has seen, written and left out, its files, and what made it save them."},
    {"/weir/record", "Saves what the flight recorder has in memory, as SIGUSR2 does; says how it stands."},
    {"/weir/events", "Events opened, complete, incomplete by cause, written, dropped; open and queued."},
};

/// Telemetry accepts letters, digits, _ and / in names.
std::string name_of(const std::string& key) {
    std::string name = key;
    for (char& c : name) {
        if (c == '.') c = '/';
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '/') c = '_';
    }
    return name;
}

/// Objects within objects become names with a slash: telemetry nests no deeper than one level.
void flatten(const json& from, const std::string& path, json& into) {
    for (const auto& [key, value] : from.items()) {
        const std::string name = path.empty() ? key : path + "/" + key;
        if (value.is_object())
            flatten(value, name, into);
        else
            into[name] = value;
    }
}

void add(rte_tel_data* data, const std::string& key, const json& value) {
    const std::string name = name_of(key);
    if (value.is_boolean()) {
        ::rte_tel_data_add_dict_u64(data, name.c_str(), value.get<bool>() ? 1 : 0);
    } else if (value.is_number_integer()) {
        ::rte_tel_data_add_dict_u64(data, name.c_str(), value.get<std::uint64_t>());
    } else if (value.is_number()) {
        ::rte_tel_data_add_dict_string(data, name.c_str(), fmt::format("{:.3f}", value.get<double>()).c_str());
    } else if (value.is_string()) {
        ::rte_tel_data_add_dict_string(data, name.c_str(), value.get_ref<const std::string&>().c_str());
    } else if (value.is_object()) {
        rte_tel_data* inner = ::rte_tel_data_alloc();
        if (inner == nullptr) return;
        ::rte_tel_data_start_dict(inner);
        json flat = json::object();
        flatten(value, "", flat);
        for (const auto& [inner_key, inner_value] : flat.items()) add(inner, inner_key, inner_value);
        if (::rte_tel_data_add_dict_container(data, name.c_str(), inner, 0) != 0) ::rte_tel_data_free(inner);
    }
}

json lcores_json(const pipeline::Pipeline& pipeline) {
    const plan::Plan& plan = pipeline.options().plan;
    json lcores = json::object();
    for (std::size_t i = 0; i < pipeline.rx().size(); ++i) {
        const stages::RxStage& rx = *pipeline.rx()[i];
        lcores[fmt::format("rx{}", i)] = {{"lcore", plan.rx[i]},
                                          {"received_packets", rx.received_packets()},
                                          {"received_bytes", rx.received_bytes()},
                                          {"buffers_held", rx.buffers_held()},
                                          {"cells_held", rx.cells_held()}};
    }
    for (std::size_t i = 0; i < pipeline.build().size(); ++i) {
        const stages::BuildStage& build = *pipeline.build()[i];
        lcores[fmt::format("build{}", i)] = {{"lcore", plan.build[i]},
                                             {"open_events", build.open_events()},
                                             {"queued_events", build.queued_events()},
                                             {"placed_bytes", build.placed_bytes()}};
    }
    for (std::size_t i = 0; i < pipeline.work().size(); ++i)
        lcores[fmt::format("work{}", i)] = {{"lcore", plan.work[i]},
                                            {"raw_bytes", pipeline.work()[i]->raw_bytes()},
                                            {"stored_bytes", pipeline.work()[i]->stored_bytes()}};
    for (std::size_t i = 0; i < pipeline.work().size(); ++i)
        for (const reduce::ReducerCounters& reducer : pipeline.work()[i]->reducers())
            for (std::size_t k = 0; k < reducer.infos.size(); ++k)
                lcores[fmt::format("work{}", i)][std::string(reducer.kind)][std::string(reducer.infos[k].name)] =
                    reducer.get(k);
    // What became of their polls; parts of the time as text, because telemetry has only integers.
    const json stages = stages_json(pipeline.usage(0));
    for (const auto& [name, stage] : stages.items()) {
        lcores[name]["busy"] = stage["busy"];
        lcores[name]["blocked"] = stage["blocked"];
        lcores[name]["polls"] = stage["polls"];
    }
    return lcores;
}

/// Lists become entries with a number: telemetry's dictionaries hold no lists of dictionaries.
json seen_of(const RunMoment& moment, const Ledger& ledger) {
    json seen = seen_json(ledger, moment.watch.observations(moment.pipeline, ledger, moment.seconds));
    json ports = json::object();
    for (json port : seen["ports"]) {
        const auto name = port["port"].get<std::string>();
        port.erase("port");
        ports[name] = std::move(port);
    }
    json others = json::object();
    for (const json& sender : seen["other_senders"])
        others[std::to_string(others.size())] =
            fmt::format("{}: {} packets", sender["to"].get<std::string>(), sender["packets"].get<std::uint64_t>());
    seen["ports"] = std::move(ports);
    seen["other_senders"] = std::move(others);
    return seen;
}

json snapshot_of(const RunMoment& moment, const Ledger& ledger) {
    const pipeline::Pipeline& pipeline = moment.pipeline;
    json account = ledger_json(ledger);
    json snapshot = {{"sources", json::object()}, {"ports", json::object()}};
    for (const json& source : account["sources"]) {
        const std::string id = std::to_string(source["id"].get<std::uint64_t>());
        snapshot["sources"][id] = {{"packets", source["packets"]}, {"missing_packets", source["missing_packets"]}};
    }
    if (account.contains("devices"))
        for (json device : account["devices"]) {
            const auto port = device["port"].get<std::string>();
            device.erase("port");
            snapshot["ports"][port] = std::move(device);
        }
    for (const char* list : {"sources", "devices", "balanced"}) account.erase(list);
    account["seconds"] = moment.seconds;
    snapshot["events"] = account["events"];
    json levels = levels_json(pipeline.levels());
    json flat = json::object();
    flatten(snapshot["events"], "", flat);
    flat["open"] = levels["open"]["used"];
    flat["queued"] = levels["queued"]["used"];
    snapshot["events"] = std::move(flat);
    json rings = std::move(levels["rings"]);
    levels.erase("rings");
    rings.update(levels);
    snapshot["rings"] = std::move(rings);
    snapshot["lcores"] = lcores_json(pipeline);
    snapshot["seen"] = seen_of(moment, ledger);
    snapshot["recorder"] = json::object();
    if (const record::Recorder* recorder = pipeline.options().recorder; recorder != nullptr) {
        json& into = snapshot["recorder"] = recorder_json(recorder->status());
        into.erase("paths");
    }
    snapshot["ledger"] = std::move(account);
    return snapshot;
}

}  // namespace

Telemetry::Telemetry() {
    {
        const std::unique_lock lock(instance_mutex);
        instance = this;
    }
    for (const Command& command : commands)
        if (::rte_telemetry_register_cmd(command.name, &Telemetry::answer, command.help) != 0)
            throw core::RunError(fmt::format("telemetry: {} could not be registered", command.name));
}

Telemetry::~Telemetry() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    published_.notify_all();
    // DPDK has no way to take a command back, and may be about to call one: what is asked from now on finds nothing.
    const std::unique_lock lock(instance_mutex);
    instance = nullptr;
}

void Telemetry::publish(json snapshot, bool final) {
    {
        const std::lock_guard lock(mutex_);
        snapshot_ = std::move(snapshot);
        ++generation_;
        wanted_ = false;
        final_ = final;
    }
    published_.notify_all();
}

void Telemetry::begin(const RunFacts& /*facts*/, const RunMoment& /*moment*/) {
    record_.store(false);  // what was asked for between two runs is of none
    const std::lock_guard lock(mutex_);
    final_ = false;
}

void Telemetry::look(const RunMoment& moment) {
    {
        const std::lock_guard lock(mutex_);
        if (!wanted_) return;
    }
    publish(snapshot_of(moment, collect(moment.pipeline)), false);
}

std::string_view Telemetry::take_record_request() noexcept {
    return record_.exchange(false) ? "/weir/record" : "";
}

void Telemetry::counted(const RunMoment& moment, const Ledger& ledger, const Verdict& /*verdict*/) {
    publish(snapshot_of(moment, ledger), true);
}

int Telemetry::answer_part(const char* part, const char* parameters, rte_tel_data* data) {
    constexpr auto patience = std::chrono::milliseconds(500);
    std::unique_lock lock(mutex_);
    if (!final_) {
        wanted_ = true;
        const std::uint64_t before = generation_;
        published_.wait_for(lock, patience, [&] { return generation_ != before || closing_; });
        if (generation_ == before) return -1;
    }
    const bool record = std::string_view(part) == "record";
    if (record) record_.store(true);
    const json& all = snapshot_[record ? "recorder" : part];
    if (record && all.empty()) return -1;  // the run has no such sink
    const std::string one = parameters == nullptr ? "" : parameters;
    if (!one.empty() && !all.contains(one)) return -1;
    for (const auto& [key, value] : all.items())
        if (one.empty() || key == one) add(data, key, value);
    return 0;
}

/// On DPDK's own thread.
int Telemetry::answer(const char* command, const char* parameters, rte_tel_data* data) {
    const std::shared_lock lock(instance_mutex);
    if (instance == nullptr) return -1;
    ::rte_tel_data_start_dict(data);
    try {
        return instance->answer_part(command + std::char_traits<char>::length(prefix), parameters, data);
    } catch (const std::exception&) {  // no memory: an error for the client, nothing for the run
        return -1;
    }
}

}  // namespace weir::observe
