#include "pipeline/bottleneck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::pipeline {

namespace {

// An lcore that moves something for so much of its time has none to spare.
constexpr double saturated = 0.9;
// A worker that waits for the writer for so much of its time is held up by it.
constexpr double held_up = 0.1;
constexpr double paced = 0.5;

double part(std::uint64_t of, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
}

double busy_part(const stages::PollCounts::Values& polls) {
    return part(polls.busy_time, polls.time);
}

std::string percent(double fraction) {
    const double value = 100 * fraction;
    return value > 0 && value < 1 ? fmt::format("{:.1f} %", value) : fmt::format("{:.0f} %", value);
}

bool is_worker(const Usage::Stage& stage) {
    return stage.name.starts_with("work");
}

std::vector<const Usage::Stage*> stages_on(const Usage& usage, std::uint32_t lcore) {
    std::vector<const Usage::Stage*> stages;
    for (const Usage::Stage& stage : usage.stages)
        if (stage.lcore == lcore) stages.push_back(&stage);
    return stages;
}

std::string names_of(const std::vector<const Usage::Stage*>& stages) {
    std::string names;
    for (const Usage::Stage* stage : stages) names += (names.empty() ? "" : ", ") + stage->name;
    return names;
}

/// "no idle polls"; or, since idle polls are short and soon many, for how much of the time there was work.
std::string idle_text(const stages::PollCounts::Values& turns) {
    constexpr double few = 0.001;
    const double idle = part(turns.polls() - turns.busy, turns.polls());
    return idle < few ? "no idle polls" : fmt::format("busy {} of the time", percent(busy_part(turns)));
}

/// Workers that wait for output buffers, which all wait for the disk.
std::optional<Bottleneck> writer(const Usage& usage) {
    if (!usage.sink_bytes.has_value()) return {};
    const Usage::Stage* worst = nullptr;
    const auto waiting = [](const Usage::Stage& stage) { return part(stage.polls.blocked_time, stage.polls.time); };
    for (const Usage::Stage& stage : usage.stages)
        if (is_worker(stage) && (worst == nullptr || waiting(stage) > waiting(*worst))) worst = &stage;
    if (worst == nullptr || waiting(*worst) < held_up) return {};
    const double rate = usage.seconds > 0 ? static_cast<double>(*usage.sink_bytes) * 1e-9 / usage.seconds : 0;
    const std::uint64_t blocked = worst->polls.blocked_polls();
    return Bottleneck{"writer",
                      fmt::format("writer: ring full{} full in {} of polls ({} of the time); "
                                  "the disk took {:.2f} GB/s",
                                  worst->name.substr(std::string_view("work").size()),
                                  percent(part(blocked, worst->polls.polls())), percent(waiting(*worst)), rate)};
}

/// The last lcore along the way of the data that has no time to spare: those before it wait for it, or lose.
std::optional<Bottleneck> lcore(const Usage& usage) {
    for (auto stage = usage.stages.rbegin(); stage != usage.stages.rend(); ++stage) {
        const auto on = std::ranges::find(usage.lcores, stage->lcore, &Usage::Lcore::id);
        if (on == usage.lcores.end() || busy_part(on->turns) < saturated) continue;
        const std::vector<const Usage::Stage*> stages = stages_on(usage, on->id);
        const auto most = std::ranges::max_element(stages, {}, [](const auto* s) { return s->polls.busy_time; });
        std::string sentence = fmt::format("{}: {} on lcore {}", (*most)->name, idle_text(on->turns), on->id);
        if (stages.size() > 1)
            sentence += fmt::format(" ({}), and {} of its time went into {}", names_of(stages),
                                    percent(part((*most)->polls.busy_time, on->turns.busy_time)), (*most)->name);
        return Bottleneck{(*most)->name, sentence};
    }
    return {};
}

/// "the busiest lcore (2: rx0) had nothing to do 60 % of the time"
std::string spare_text(const Usage& usage) {
    const auto busiest = std::ranges::max_element(usage.lcores, {}, [](const auto& l) { return busy_part(l.turns); });
    if (busiest == usage.lcores.end()) return "";
    return fmt::format("; the busiest lcore ({}: {}) had nothing to do {} of the time", busiest->id,
                       names_of(stages_on(usage, busiest->id)), percent(1 - std::min(1.0, busy_part(busiest->turns))));
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
    if (stages.empty()) return *this = other;
    seconds += other.seconds;
    for (std::size_t i = 0; i < stages.size(); ++i) stages[i].polls += other.stages[i].polls;
    for (std::size_t i = 0; i < lcores.size(); ++i) lcores[i].turns += other.lcores[i].turns;
    if (sink_bytes.has_value()) *sink_bytes += other.sink_bytes.value_or(0);
    if (reader.has_value() && other.reader.has_value()) {
        reader->waiting_s += other.reader->waiting_s;
        reader->pacing_s += other.reader->pacing_s;
    }
    refused_packets += other.refused_packets;
    evicted_events += other.evicted_events;
    missed_packets += other.missed_packets;
    return *this;
}

Usage& Usage::operator-=(const Usage& other) {
    if (other.stages.empty()) return *this;
    seconds -= other.seconds;
    for (std::size_t i = 0; i < stages.size(); ++i) stages[i].polls -= other.stages[i].polls;
    for (std::size_t i = 0; i < lcores.size(); ++i) lcores[i].turns -= other.lcores[i].turns;
    if (sink_bytes.has_value()) *sink_bytes -= other.sink_bytes.value_or(0);
    if (reader.has_value() && other.reader.has_value()) {
        reader->waiting_s -= other.reader->waiting_s;
        reader->pacing_s -= other.reader->pacing_s;
    }
    refused_packets -= other.refused_packets;
    evicted_events -= other.evicted_events;
    missed_packets -= other.missed_packets;
    return *this;
}

Bottleneck find_bottleneck(const Usage& usage) {
    if (const auto found = writer(usage); found.has_value()) return *found;
    if (const auto found = lcore(usage); found.has_value()) return *found;
    if (usage.refused_packets + usage.evicted_events > 0)
        return {"memory", fmt::format("memory: events were evicted or refused at its limit{}: "
                                      "events stay open for too long, or are larger than was planned for",
                                      spare_text(usage))};
    if (usage.missed_packets > 0)
        return {"queue", fmt::format("receive queue: it was full when an lcore came back to it{}", spare_text(usage))};
    if (!usage.reader.has_value()) return {"sender", "sender: nothing was waiting" + spare_text(usage)};
    if (usage.reader->pacing_s > paced * usage.seconds)
        return {"pace", "pace: nothing was waiting for anything but the time of the next packet" + spare_text(usage)};
    return {"reader",
            fmt::format("capture reader: the pipeline waited for it{}; it waited for room {} of the time",
                        spare_text(usage), percent(usage.seconds > 0 ? usage.reader->waiting_s / usage.seconds : 0))};
}

std::string bottleneck_text(const Usage& usage, double seconds) {
    constexpr double nearly_all = 0.9;
    const std::string when =
        usage.seconds < nearly_all * seconds
            ? fmt::format(" (in the {:.1f} s in which events were refused or evicted)", usage.seconds)
            : "";
    return fmt::format("limit     {}{}\n", find_bottleneck(usage).sentence, when);
}

nlohmann::json bottleneck_json(const Usage& usage) {
    const Bottleneck found = find_bottleneck(usage);
    return {{"part", found.part}, {"sentence", found.sentence}, {"seconds", usage.seconds}};
}

nlohmann::json stages_json(const Usage& usage) {
    nlohmann::json stages = nlohmann::json::object();
    for (const Usage::Stage& stage : usage.stages) {
        nlohmann::json blocked = nlohmann::json::object();
        for (std::size_t i = 1; i < stages::blocked_kinds; ++i)
            if (stage.polls.blocked[i] > 0) blocked[std::string(stages::blocked_names[i])] = stage.polls.blocked[i];
        stages[stage.name] = {
            {"lcore", stage.lcore},
            {"busy", busy_part(stage.polls)},
            {"blocked", part(stage.polls.blocked_time, stage.polls.time)},
            {"polls", {{"busy", stage.polls.busy}, {"idle", stage.polls.idle}, {"blocked", std::move(blocked)}}}};
    }
    return stages;
}

}  // namespace weir::pipeline
