#include "run/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>
#include <utility>

#include "config/reducers/pedestal.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "core/scoped_affinity.hpp"
#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/ledger_json.hpp"
#include "observe/ledger_text.hpp"
#include "observe/port_report.hpp"
#include "observe/seen.hpp"
#include "pipeline/wall_clock.hpp"
#include "run/captures.hpp"
#include "run/exit_status.hpp"
#include "run/run_signals.hpp"
#include "run/whole_report.hpp"
#include "wire/reported_stream.hpp"

namespace weir::run {

namespace {

/// What the messages of all streams are images of, for readers that know no formats.
nlohmann::json image_json(const wire::ImageShape& image) {
    constexpr std::array<std::string_view, 5> types{"", "u8", "u16", "", "u32"};
    return {{"rows", image.rows},
            {"columns", image.columns},
            {"bits", image.bits},
            {"type", types[wire::unpacked_bytes(image.bits)]}};
}

}  // namespace

Session::Session(const Preparation& prepared)
    : prepared_(prepared),
      report_(options().report),
      progress_(options().progress, options().quiet),
      stop_condition_(options()) {}

Session::~Session() {
    exchanges_.reset();
    sinks_.stopping(true);  // nobody is waited for by a run that has failed
    if (cluster_thread_ != nullptr) cluster_thread_->stopping(true);
    if (pipeline_ != nullptr) pipeline_->join();
    if (cluster_thread_ != nullptr) cluster_thread_->join();  // its thread takes from the pipeline
    recorder_.reset();                                        // its thread looks at what the pipeline promises
    pipeline_.reset();
    if (!started_) sinks_.discard();
}

void Session::open(const std::function<bool()>& is_given_up) {
    if (prepared_.is_replay()) probe_captures(*options().capture);
    if (!options().answers.empty())
        answers_ = std::make_unique<stages::AnswerLog>(options().answers, prepared_.plan().rx.size());
    const stages::ReduceSetup& reduce = *prepared_.reduce();
    nlohmann::json start{{"config", config_json(options().config)},
                         {"machine", observe::machine_json(options().version, prepared_.plan())}};
    if (reduce.needs_version_2()) start["payload"] = reduce.payload_json();
    if (const auto image = wire::image_of_streams(start["config"]["stream"])) start["image"] = image_json(*image);
    {
        // Libraries of sinks start threads, before EAL has moved this one out of the way of lcores.
        const core::ScopedAffinity out_of_the_way(prepared_.plan().placement.housekeeping);
        if (options().cluster) cluster_thread_ = make_cluster_thread(*options().cluster, options().run_number);
        const std::function<std::unique_ptr<store::EventSink>()> cluster_sink = [this] {
            return make_part_sink(*options().cluster, prepared_.is_replay(), *cluster_thread_);
        };
        sinks_.set_run_number(options().run_number);
        sinks_.open(options().config, options().out, start, reduce.needs_version_2(), &cluster_sink);
    }
    kept_start_ = std::move(start);
    while (!sinks_.are_ready() && !is_given_up()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (sinks_.recorder_path())
        recorder_ = observe::RunRecorder::open(options().config, prepared_.plan(),
                                               {prepared_.is_replay(), *sinks_.recorder_path(), options().version,
                                                [this](const std::string& text) { warn(text); }});
}

/// As configured, or with the run, in the folder of the first sink, which has its hidden name until the run is over.
std::filesystem::path Session::snapshot_folder() const {
    const auto* pedestal = find_reducer<config::PedestalOptions>(options().config.reduce);
    if (pedestal == nullptr || !pedestal->snapshots.empty()) return pedestal == nullptr ? "" : pedestal->snapshots;
    const auto events = sinks_.events();
    std::error_code error;
    for (const store::EventSink* sink : events)
        if (std::filesystem::is_directory(sink->path(), error)) return sink->path();
    return {};
}

void Session::make(pipeline::RunPorts* ports, const std::vector<observe::RunObserver*>& observers) {
    observers_.add(&progress_);
    for (observe::RunObserver* observer : observers) observers_.add(observer);
    observers_.add(recorder_.get());
    pipeline_ = std::make_unique<pipeline::Pipeline>(pipeline_options(ports));
    if (!options().quiet) say_start();
    if (prepared_.is_live())
        exchanges_ = std::make_unique<Exchanges>(*pipeline_, [this](std::string_view text) { progress_.say(text); });
}

void Session::start() {
    start_ = std::chrono::steady_clock::now();
    if (answers_ != nullptr) answers_->start();
    observers_.starting(moment());
    if (prepared_.is_builder()) cluster_thread_->give_up_when([this] { return sinks_.must_stop(pipeline_->sinks()); });
    if (cluster_thread_ != nullptr) cluster_thread_->start();
    pipeline_->start();
    started_ = true;
    observers_.begin(facts(), moment());
}

observe::RunFacts Session::facts() const {
    observe::RunFacts facts{sinks_.run_number(), sinks_.final_paths(), pipeline::wall_ns()};
    if (cluster_thread_ != nullptr)
        facts.cluster = [this] { return shown_cluster_json(*options().cluster, cluster_thread_->account()); };
    return facts;
}

pipeline::Pipeline::Options Session::pipeline_options(pipeline::RunPorts* ports) {
    pipeline::Pipeline::Options setup;
    setup.config = options().config;
    setup.plan = prepared_.plan();
    setup.streams = prepared_.streams();
    setup.geometry = prepared_.geometry();
    setup.reduce = prepared_.reduce();
    setup.pedestals = prepared_.pedestals();
    setup.snapshots = snapshot_folder();
    // With --drop the reader does not wait; whether the pipeline does is then the operator's choice, as with a device.
    // A builder's memory is bounded by the blocks that it has room for: nothing has to be refused.
    setup.wait = options().config.events.overload == config::OverloadMode::wait || prepared_.is_builder() ||
                 (options().capture.has_value() && options().capture->wait);
    setup.capture = options().capture;
    setup.builder = prepared_.is_builder() ? cluster_thread_.get() : nullptr;
    setup.sinks = sinks_.events();
    setup.answers = answers_.get();
    setup.recorder = recorder_ != nullptr ? &recorder_->recorder() : nullptr;
    setup.ports = ports;
    setup.make_built_in = options().make_built_in;
    setup.latest_event = observers_.watch_events(kept_start_);
    return setup;
}

void Session::say_start() const {
    core::print_stderr("{}", prepared_.plan().text());
    for (const auto* warnings : {&options().config.warnings, &prepared_.plan().warnings})
        for (const std::string& warning : *warnings) core::print_stderr("warning: {}\n", warning);
    if (!pipeline_->unlocked().empty()) core::print_stderr("{}\n", pipeline_->unlocked());
    core::print_stderr("{}{}", sinks_.start_text(), observe::ports_text(*pipeline_));
    if (cluster_thread_ != nullptr) core::say_text(cluster_start_text(*options().cluster, *cluster_thread_));
    if (prepared_.is_builder()) return;
    const bool own_rules = !prepared_.is_replay();  // a replay does those of files only
    const bool files =
        std::ranges::any_of(options().config.ports, [](const auto& port) { return !port.flows.empty(); });
    if (own_rules || files) core::print_stderr("{}", pipeline_->flows().text());
}

/// Packets are taken meanwhile.
void Session::wait_for_links() {
    const auto stop = [this] {
        pipeline_->look();
        return stop_signal() != 0;
    };
    for (const std::string& text :
         observe::wait_for_links(*pipeline_, stop, [this](const std::string& what) { progress_.say(what); })) {
        progress_.say("warning: " + text);
        warnings_.push_back(text);
    }
    start_ = std::chrono::steady_clock::now();
}

void Session::stop(const std::string& reason) {
    if (std::exchange(stopping_, true)) return;
    stop_reason_ = reason;
    progress_.say(fmt::format("{}: closing open events and writing what is left", stop_reason_));
    pipeline_->stop_input();
    sinks_.stopping(false);
    if (prepared_.is_builder()) cluster_thread_->stopping(false);
}

void Session::abort() {
    stop("aborted");
    sinks_.stopping(true);
    if (prepared_.is_builder()) cluster_thread_->stopping(true);
}

bool Session::turn() {
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (pipeline_->finished()) return false;
    pipeline_->look();
    watch_.look(*pipeline_, seconds_);
    watch_flows();
    observers_.look(moment());
    if (asked_for_progress()) progress_.answer(moment());
    if (prepared_.is_live() && !said_nothing_ && seconds_ >= patience_s) say_nothing_came();
    if (exchanges_ != nullptr && !stopping_) exchanges_->serve(seconds_);
    watch_sinks();
    observers_.check(moment());
    serve_record_requests();
    watch_cluster();
    if (stopping_) return true;
    const bool sink_failed = sinks_.must_stop(pipeline_->sinks()) || recorder_must_stop();
    if (const auto reason = stop_condition_.ask(*pipeline_, sink_failed, seconds_)) stop(*reason);
    return true;
}

std::string Session::line() {
    return line_progress_.line(moment());
}

/// Whether devices do what they accepted.
void Session::watch_flows() {
    constexpr double interval_s = 0.1;
    if (seconds_ - flows_looked_s_ < interval_s) return;
    flows_looked_s_ = seconds_;
    for (const std::string& warning : pipeline_->flows().update(pipeline_->rx())) {
        progress_.say("warning: " + warning);
        warnings_.push_back(warning);
    }
}

/// Once, for whoever reads the log of a run that nobody watches.
void Session::say_nothing_came() {
    said_nothing_ = true;
    const observe::Ledger ledger = observe::collect(*pipeline_);
    const observe::Observations seen = watch_.observations(*pipeline_, ledger, seconds_);
    if (nothing_for_streams(ledger, seen))
        progress_.say(
            fmt::format("nothing has come for any stream in {:.0f} s: {}", seconds_, seen_text(ledger, seen)));
}

void Session::warn(const std::string& text) {
    progress_.say("warning: " + text);
    warnings_.push_back(text);
}

void Session::watch_sinks() {
    for (const std::string& warning : sinks_.watch(pipeline_->sinks())) warn(warning);
}

void Session::watch_cluster() {
    if (cluster_thread_ == nullptr) return;
    for (const std::string& text : cluster_thread_->take_said()) warn("cluster: " + text);
    // A detector goes on, and the overload policy decides.
    if (stopping_ || prepared_.is_live() || !cluster_thread_->is_alone()) return;
    left_alone_ = alone_text(*options().cluster);
    stop(left_alone_);
}

/// What was built is written: the others are told, for as long as that takes.
void Session::leave_cluster() {
    if (cluster_thread_ == nullptr) return;
    const auto patience = std::chrono::seconds(2) + std::chrono::nanoseconds(cluster_thread_->config().leave_ns);
    const auto begin = std::chrono::steady_clock::now();
    if (prepared_.is_builder() && !cluster_thread_->has_given_up())
        while ((cluster_thread_->blocks_in_hand() > 0 || !cluster_thread_->is_done()) &&
               std::chrono::steady_clock::now() - begin < patience)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cluster_thread_->join();
    watch_cluster();
}

std::string Session::save_recording() {
    return recorder_ != nullptr ? recorder_->request() : "the run has no sink of kind \"pcapng\", so nothing is saved";
}

/// Somebody may ask for what is recorded besides.
void Session::serve_record_requests() {
    const std::string_view observer = observers_.take_record_request();
    if (!asked_to_record() && observer.empty()) return;
    progress_.say(fmt::format("{}: {}", observer.empty() ? "SIGUSR2" : observer, save_recording()));
}

/// It failed, and the run is not to do without it, or has nothing else that writes.
bool Session::recorder_must_stop() const {
    return recorder_ != nullptr && !recorder_->failure().empty() &&
           (recorder_->on_error() == config::SinkError::stop ||
            (pipeline_->sinks().empty() && recorder_->recorder().config().record.packets == config::RecordMode::all));
}

nlohmann::json Session::report_json(const observe::Ledger& ledger) const {
    return whole_report(
        {options(), prepared_.plan(), *prepared_.reduce(), *pipeline_, sinks_, recorder_.get(), exchanges_.get()},
        ledger, seconds_, stop_reason_);
}

/// Empty, or why the run failed and what is left of it.
std::string Session::close_sinks(const observe::Ledger& ledger, const observe::Verdict& verdict) {
    const nlohmann::json report = report_json(ledger);
    nlohmann::json manifest = nlohmann::json::object();
    for (const char* key : {"config", "machine", "plan", "seconds", "stopped_by"}) manifest[key] = report[key];
    if (!options().comment.empty()) manifest["comment"] = options().comment;
    if (cluster_thread_ != nullptr) manifest["cluster"] = cluster_json(*options().cluster, cluster_thread_->account());
    for (const char* key : {"payload", "reduce", "pedestal"})
        if (report.contains(key)) manifest[key] = report[key];
    if (kept_start_.contains("image")) manifest["image"] = kept_start_["image"];
    return sinks_.close(pipeline_->sinks(), ledger, verdict, manifest, warnings_);
}

/// What is known only at the end, and what was known before the start.
void Session::add_warnings() {
    if (pipeline_->capture() != nullptr)
        for (const std::string& warning : pipeline_->capture()->warnings()) {
            core::print_stderr("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto& warnings : {observe::clock_warnings(*pipeline_), observe::interface_warnings(*pipeline_)})
        for (const std::string& warning : warnings) {
            core::print_stderr("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto* warnings : {&options().config.warnings, &prepared_.plan().warnings})
        warnings_.insert(warnings_.end(), warnings->begin(), warnings->end());
}

/// Empty, or why the run failed.
std::string Session::close_everything(const observe::Ledger& ledger, const observe::Verdict& verdict) {
    std::string failure = close_sinks(ledger, verdict);
    if (failure.empty()) failure = left_alone_;
    if (recorder_must_stop() && failure.empty()) failure = recorder_->failure();
    if (const stages::PedestalKeeper* pedestals = pipeline_->pedestals(); pedestals != nullptr && failure.empty())
        if (const std::string error = pedestals->error(); !error.empty())
            failure = fmt::format("a snapshot of the pedestals could not be saved: {}", error);
    if (answers_ == nullptr) return failure;
    answers_->finish();
    if (!answers_->error().empty() && failure.empty()) failure = fmt::format("--answers: {}", answers_->error());
    return failure;
}

void Session::print_summary(const observe::Ledger& ledger, const observe::Verdict& verdict,
                            const std::vector<pipeline::Finding>& findings, const pipeline::Usage& decisive) const {
    // Whoever does not take the summary any more must not keep the report from being written.
    const std::string summary =
        fmt::format("{}{}{}{}{}{}{}", ledger_text(ledger, seconds_, watch_.active_seconds()), verdict_text(verdict),
                    findings_text(findings), bottleneck_text(decisive, seconds_), sinks_.end_text(),
                    cluster_thread_ != nullptr ? cluster_text(*options().cluster, cluster_thread_->account()) : "",
                    recorder_ != nullptr ? recorder_->text() : "");
    std::fputs(summary.c_str(), stdout);
    std::fflush(stdout);
}

int Session::judge_status(const observe::Ledger& ledger, const observe::Verdict& verdict,
                          const std::string& failure) const {
    if (!failure.empty()) return 1;
    if (!ledger.imbalance().empty()) {
        core::print_stderr("weir: the ledger does not balance ({}); this is a defect of weir, please report it\n",
                           ledger.imbalance());
        return 1;
    }
    return exit_status(options(), verdict);
}

ControlledRun::Result Session::finish() {
    pipeline_->join();
    leave_cluster();
    observers_.ended(moment());
    flows_looked_s_ = -1;
    watch_flows();
    observe::Ledger ledger = observe::collect(*pipeline_);
    ledger.numbers = observe::report_numbers(*pipeline_);
    const observe::Verdict verdict = judge(ledger, options().expected);
    observers_.counted(moment(), ledger, verdict);
    std::vector<pipeline::Finding> findings = diagnose(ledger, watch_.observations(*pipeline_, ledger, seconds_));
    pipeline_->flows().add_findings(findings);
    if (cluster_thread_ != nullptr) add_cluster_findings(*options().cluster, cluster_thread_->account(), findings);
    Result result;
    result.lost_packets = ledger.lost_packets();
    result.missing_packets = ledger.missing_packets();
    result.failure = close_everything(ledger, verdict);
    observers_.closed(moment(), ledger, verdict, findings);
    result.report = report_json(ledger);
    put_verdict(result.report, verdict);
    result.report["findings"] = findings_json(findings);
    result.report["rates"] = rates_json(ledger, seconds_, watch_.active_seconds());
    const pipeline::Usage usage = observe::usage_of(*pipeline_, ledger, seconds_);
    const pipeline::Usage decisive = watch_.decisive(usage);
    result.report["bottleneck"] = bottleneck_json(decisive);
    result.report["stages"] = stages_json(usage);
    result.report["levels"] = levels_json(pipeline_->levels());
    if (cluster_thread_ != nullptr)
        result.report["cluster"] = cluster_json(*options().cluster, cluster_thread_->account());
    if (!options().comment.empty()) result.report["comment"] = options().comment;
    if (!result.failure.empty()) result.report["error"] = result.failure;
    add_warnings();
    if (!warnings_.empty()) result.report["warnings"] = warnings_;
    if (!options().quiet) print_summary(ledger, verdict, findings, decisive);
    if (!result.failure.empty()) core::print_stderr("weir: the run failed: {}\n", result.failure);
    report_.write(result.report);  // last: it may be on the same full disk
    result.status = judge_status(ledger, verdict, result.failure);
    return result;
}

nlohmann::json Session::account() {
    return report_json(observe::collect(*pipeline_));
}

}  // namespace weir::run
