#include "observe/pipeline_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "observe/run_recorder.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

using nlohmann::json;

json known_or_null(const std::optional<std::uint64_t>& value) {
    return value ? json(*value) : json(nullptr);
}

json view_ports(const pipeline::Pipeline& pipeline, const Ledger& ledger) {
    json list = json::array();
    for (std::size_t i = 0; i < pipeline.ports().size() && i < ledger.devices.size(); ++i) {
        const port::LivePort& port = *pipeline.ports()[i];
        const port::LivePort::Link link = port.link();
        const Ledger::Device& device = ledger.devices[i];
        list.push_back({{"name", device.port},
                        {"device", pipeline.options().config.ports[i].device},
                        {"driver", device.driver},
                        {"queues", port.queues()},
                        {"link_up", link.up},
                        {"mbps", link.mbps},
                        {"received", device.received},
                        {"missed", known_or_null(device.missed)},
                        {"no_buffer", known_or_null(device.no_buffer)}});
    }
    return list;
}

json view_queues(const pipeline::Pipeline& pipeline) {
    json list = json::array();
    for (const plan::Placement::Queue& queue : pipeline.options().plan.placement.queues)
        list.push_back({{"port", queue.port}, {"queue", queue.queue}, {"stage", fmt::format("rx{}", queue.rx)}});
    return list;
}

/// What kept it from going on most often.
std::string_view blocked_by(const stages::PollCounts::Values& polls) {
    const auto* const most = std::max_element(polls.blocked.begin() + 1, polls.blocked.end());
    return *most == 0 ? std::string_view()
                      : stages::blocked_names[static_cast<std::size_t>(most - polls.blocked.begin())];
}

json view_stages(const pipeline::Usage& usage) {
    json list = json::array();
    const json stages = stages_json(usage);
    for (const pipeline::Usage::Stage& stage : usage.stages) {
        const json& shares = stages[stage.name];
        list.push_back({{"name", stage.name},
                        {"kind", stage.name.substr(0, stage.name.find_first_of("0123456789"))},
                        {"lcore", stage.lcore},
                        {"busy", shares["busy"]},
                        {"blocked", shares["blocked"]},
                        {"blocked_by", blocked_by(stage.polls)}});
    }
    return list;
}

double longest_poll_s(const pipeline::Usage::Lcore& lcore) {
    return static_cast<double>(lcore.longest_pause_ns) * 1e-9;
}

json view_lcores(const pipeline::Usage& usage) {
    json list = json::array();
    for (const pipeline::Usage::Lcore& lcore : usage.lcores) {
        const double time = static_cast<double>(lcore.turns.time);
        list.push_back({{"lcore", lcore.id},
                        {"busy", time > 0 ? static_cast<double>(lcore.turns.busy_time) / time : 0},
                        {"longest_poll_s", longest_poll_s(lcore)}});
    }
    return list;
}

json view_rings(const pipeline::Levels& levels) {
    json list = json::array();
    for (const pipeline::Levels::Ring& ring : levels.rings)
        list.push_back({{"name", ring.name},
                        {"from", ring.from},
                        {"to", ring.to},
                        {"used", ring.level.used},
                        {"size", ring.level.size},
                        {"highest", std::max(ring.level.used, ring.level.highest)},
                        {"times_full", ring.times_full},
                        {"dropped", ring.dropped}});
    return list;
}

json view_sinks(const pipeline::Pipeline& pipeline, const Ledger& ledger) {
    json list = json::array();
    const std::vector<store::EventSink*>& sinks = pipeline.options().sinks;
    for (std::size_t i = 0; i < ledger.sinks.size(); ++i) {
        const Ledger::Sink& sink = ledger.sinks[i];
        constexpr double seconds_of_hour = 3600;
        const auto& left = sink.disk.seconds_left;
        json dropped = json::object();
        for (const auto& [cause, events] : sink.dropped) dropped[std::string(cause)] = events;
        list.push_back({{"kind", sink.kind},
                        {"path", i < sinks.size() ? sinks[i]->path().string() : ""},
                        {"written", sink.written},
                        {"lost", sink.lost},
                        {"synced", sink.synced},
                        {"bytes", sink.bytes},
                        {"error", sink.error},
                        {"free_bytes", known_or_null(sink.disk.free_bytes)},
                        {"hours_left", left ? json(static_cast<double>(*left) / seconds_of_hour) : json(nullptr)},
                        {"interrupted", sink.interrupted},
                        {"dropped", std::move(dropped)}});
    }
    return list;
}

}  // namespace

json pipeline_json(const pipeline::Pipeline& pipeline, const RunSample& sample) {
    json levels = levels_json(sample.levels);
    levels.erase("rings");
    double longest_s = 0;
    for (const pipeline::Usage::Lcore& lcore : sample.usage.lcores)
        longest_s = std::max(longest_s, longest_poll_s(lcore));
    return {{"ports", view_ports(pipeline, sample.ledger)},
            {"queues", view_queues(pipeline)},
            {"stages", view_stages(sample.usage)},
            {"lcores", view_lcores(sample.usage)},
            {"rings", view_rings(sample.levels)},
            {"levels", std::move(levels)},
            {"longest_poll_s", longest_s},
            {"sinks", view_sinks(pipeline, sample.ledger)},
            {"recorder", sample.recorder ? recorder_json(*sample.recorder) : json(nullptr)}};
}

}  // namespace weir::observe
