#include "observe/run_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnosis.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/ledger_json.hpp"
#include "observe/loss_places.hpp"
#include "observe/pipeline_view.hpp"
#include "observe/run_observer.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"
#include "store/latest_event.hpp"

namespace weir::observe {

namespace {

using nlohmann::json;

/// How long a run may see nothing before that is a finding.
constexpr double nothing_came_s = 5;

json picture_json(const pipeline::Pipeline& pipeline, const store::LatestEvent* latest) {
    if (latest == nullptr || pipeline.sinks().empty())
        return {{"available", false}, {"why", "the run writes no events, so there is nothing to show"}};
    const store::LatestEvent::Facts facts = latest->facts();
    json picture{{"available", facts.why_not.empty()}, {"why", facts.why_not}, {"generation", facts.generation}};
    if (facts.generation == 0) return picture;
    picture.update({{"epoch", facts.epoch},
                    {"event", facts.event},
                    {"width", facts.width},
                    {"height", facts.height},
                    {"type", facts.type},
                    {"seconds_ago", facts.seconds_ago}});
    return picture;
}

json limit_json(const pipeline::Usage& usage) {
    const pipeline::Bottleneck found = find_bottleneck(usage);
    return {{"part", found.part}, {"sentence", found.sentence}};
}

std::string_view severity_of(const pipeline::Finding& finding) {
    if (finding.loss) return "error";
    return finding.possible ? "warning" : "note";
}

}  // namespace

json shown_findings_json(const std::vector<pipeline::Finding>& findings) {
    json list = json::array();
    for (const pipeline::Finding& finding : findings)
        list.push_back({{"severity", severity_of(finding)},
                        {"text", finding.packets > 0 ? fmt::format("{}: {}", finding.packets, finding.sentence)
                                                     : finding.sentence},
                        {"page", finding.page},
                        {"counter", finding.counter},
                        {"packets", finding.packets}});
    return list;
}

/// Once a second: that is soon enough for a sentence, and with many sources it is not for nothing.
void RunView::look_for_findings(const pipeline::Pipeline& pipeline, const Watch& watch, const Ledger& ledger,
                                double seconds) {
    if (diagnosed_s_ && seconds - *diagnosed_s_ < 1) return;
    diagnosed_s_ = seconds;
    if (ledger.stream_packets() == 0 && seconds < nothing_came_s) return;
    Observations seen = watch.observations(pipeline, ledger, seconds);
    seen.going_on = true;
    std::vector<pipeline::Finding> findings = diagnose(ledger, seen);
    pipeline.flows().add_findings(findings);
    findings_ = shown_findings_json(findings);
}

json RunView::losses(const Ledger& ledger, double step_s) {
    json list = json::array();
    for (const Ledger::Loss& loss : ledger.losses()) {
        std::uint64_t& before = lost_by_cause_[loss.cause];
        const std::uint64_t more = loss.packets - std::min(loss.packets, before);
        before = loss.packets;
        list.push_back({{"cause", loss.cause},
                        {"packets", loss.packets},
                        {"place", core::name_of(loss.place)},
                        {"per_s", step_s > 0 ? static_cast<double>(more) / step_s : 0}});
    }
    return list;
}

/// Of all places, as far as they are known; each packet once.
double RunView::lost_per_s(const json& where, double step_s) {
    std::uint64_t lost = 0;
    for (const json& place : where)
        if (!place["packets"].is_null()) lost += place["packets"].get<std::uint64_t>();
    const std::uint64_t more = lost - std::min(lost, lost_);
    lost_ = lost;
    return step_s > 0 ? static_cast<double>(more) / step_s : 0;
}

json RunView::make(const pipeline::Pipeline& pipeline, const Watch& watch, const RunSample& sample, double step_s) {
    if (!sources_) sources_.emplace(pipeline);
    history_.look(sample.ledger, sample.seconds);
    json where = loss_places_json(loss_places(sample.ledger));
    json document;
    document["rates"] = {{"packets_per_s", sample.packets_per_s},
                         {"gbps", sample.gbps},
                         {"events_per_s", sample.events_per_s},
                         {"sink_bytes_per_s", sample.sink_bytes_per_s},
                         {"lost_per_s", lost_per_s(where, step_s)}};
    document["ledger"] = account_json(sample.ledger);
    document["where"] = std::move(where);
    document["losses"] = losses(sample.ledger, step_s);
    document["sources"] = sources_->update(sample.ledger, watch, sample.seconds);
    document["pipeline"] = pipeline_json(pipeline, sample);
    document["bottleneck"] = limit_json(sample.usage);
    document["findings"] = findings_;
    document["history"] = history_.json();
    document["picture"] = picture_json(pipeline, options_.latest_event);
    return document;
}

std::optional<json> RunView::update(const RunMoment& moment) {
    const auto& [pipeline, watch, seconds] = moment;
    const double interval_s = 1.0 / std::max(1U, options_.updates_per_s);
    if (made_s_ && seconds - *made_s_ < interval_s) return std::nullopt;
    const double step_s = seconds - made_s_.value_or(0);
    made_s_ = seconds;
    Ledger ledger = collect(pipeline);
    ledger.numbers_so_far = report_settled_numbers(pipeline);
    const RunSample sample = sampler_.take(moment, std::move(ledger));
    look_for_findings(pipeline, watch, sample.ledger, seconds);
    json document = make(pipeline, watch, sample, step_s);
    document["ledger"].erase("balanced");  // what is on its way between two lcores is not counted yet
    return document;
}

json RunView::finish(const RunMoment& moment, const Ledger& ledger, const std::vector<pipeline::Finding>& findings) {
    const auto& [pipeline, watch, seconds] = moment;
    findings_ = shown_findings_json(findings);
    const double step_s = seconds - made_s_.value_or(0);
    json document = make(pipeline, watch, sampler_.take(moment, ledger), step_s);
    document["bottleneck"] =
        limit_json(watch.decisive(usage_of(pipeline, ledger, seconds)));  // of the run, as the report has it
    return document;
}

}  // namespace weir::observe
