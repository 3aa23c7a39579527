#include "run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/device_facts.hpp"
#include "config/reducers/pedestal.hpp"
#include "core/error.hpp"
#include "core/scoped_affinity.hpp"
#include "core/say.hpp"
#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/ledger_json.hpp"
#include "observe/ledger_text.hpp"
#include "observe/port_report.hpp"
#include "observe/run_recorder.hpp"
#include "observe/run_report.hpp"
#include "observe/seen.hpp"
#include "observe/telemetry.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"
#include "port/device_problem.hpp"
#include "port/eal.hpp"
#include "port/free_memory.hpp"
#include "port/pci_devices.hpp"
#include "port/stale_hugepages.hpp"
#include "run/captures.hpp"
#include "run/exchanges.hpp"
#include "run/exit_status.hpp"
#include "run/leftover_runs.hpp"
#include "run/preflight.hpp"
#include "run/privileges.hpp"
#include "run/run_signals.hpp"
#include "run/run_sinks.hpp"
#include "run/service_manager.hpp"
#include "run/stop_condition.hpp"
#include "run/whole_report.hpp"

namespace weir::run {

namespace {

port::EalConfig eal_config(const RunOptions& options, const plan::Plan& plan) {
    port::EalConfig eal;
    eal.lcores = plan.placement.lcores();
    eal.pin = plan.pin;
    eal.cpus = plan.host.usable();
    eal.other_cpus = plan.placement.housekeeping;
    eal.telemetry = options.telemetry;
    eal.memory_bytes = plan.eal_memory_bytes;
    eal.node_memory_bytes = plan.node_memory_bytes;
    if (options.capture.has_value()) return eal;
    for (const config::PortConfig& port : options.config.ports)
        if (config::is_pci_address(port.device)) eal.pci.push_back(port.devargs());
    return eal;
}

/// What DPDK would say in many lines, or not at all.
void check_pci_devices(const config::RunConfig& config) {
    for (const config::PortConfig& port : config.ports)
        if (config::is_pci_address(port.device))
            if (const std::string problem = port::pci_problem(port.device); !problem.empty())
                throw core::RunError(fmt::format("port '{}': {}", port.name, problem));
}

/// In a replay a device is only a name.
void check_device_names(const config::RunConfig& config) {
    for (const config::PortConfig& port : config.ports)
        if (const std::string problem = port::device_name_problem(port.device); !problem.empty())
            throw core::UsageError(fmt::format("{}:{}: port.device: found \"{}\"; accepted: {}", port.place.file,
                                               port.place.line, port.device, problem));
}

class Run {
public:
    explicit Run(RunOptions options)
        : options_(std::move(options)),
          report_(options_.report),
          progress_(options_.print_config ? observe::ProgressOption{} : options_.progress, options_.quiet) {}
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    int execute();

private:
    void prepare();
    void add_reduce_memory();
    void open_sinks();
    void print_plan() const;
    [[nodiscard]] std::filesystem::path snapshot_folder() const;
    void control();
    void watch_sinks();
    void watch_recorder();
    [[nodiscard]] bool recorder_must_stop() const;
    void warn(const std::string& text);
    void watch_flows();
    void say_nothing_came();
    void wait_for_links();
    void drop_privileges();
    void tell_service_manager();
    void say_recovered();
    [[nodiscard]] pipeline::Pipeline::Options pipeline_options() const;
    void say_start() const;
    [[nodiscard]] nlohmann::json report_json(const observe::Ledger& ledger) const;
    void add_warnings();
    [[nodiscard]] std::string close_sinks(const observe::Ledger& ledger, const observe::Verdict& verdict);
    int finish();

    RunOptions options_;
    observe::ReportFile report_;
    observe::Progress progress_;
    observe::Watch watch_;
    std::vector<stages::StreamRuntime> streams_;
    std::vector<stages::SourceGeometry> geometry_;
    std::shared_ptr<stages::ReduceSetup> reduce_;
    std::shared_ptr<stages::PedestalSetup> pedestals_;
    plan::PlanInput plan_input_;
    plan::Plan plan_;
    RunSinks sinks_;
    std::vector<std::string> warnings_;  ///< for the report
    std::unique_ptr<stages::AnswerLog> answers_;
    std::unique_ptr<observe::RunRecorder> recorder_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    std::unique_ptr<observe::Telemetry> telemetry_;
    std::unique_ptr<Exchanges> exchanges_;
    std::unique_ptr<LeftoverRuns> leftovers_;
    ServiceManager service_manager_;
    observe::Progress service_progress_{{observe::ProgressMode::none, ""},
                                        true};  ///< its rates have their own intervals
    std::chrono::steady_clock::time_point start_;
    bool started_ = false;
    bool said_nothing_ = false;
    static constexpr double patience_s = 5;  ///< until a run says by itself that nothing comes
    double seconds_ = 0;
    StopCondition stop_condition_{options_};
    double flows_looked_s_ = 0;
    std::string stop_reason_ = "end of input";
};

/// A run that could not start leaves nothing behind that would stand in the way of the next try.
Run::~Run() {
    if (started_) return;
    pipeline_.reset();
    sinks_.discard();
}

/// What the configuration may say and this version does not do: refused, rather than ignored.
void refuse_unsupported(const config::RunConfig& config) {
    if (config.ports.size() > 256)
        throw core::UsageError(fmt::format("[[port]]: found {} ports; accepted: at most 256", config.ports.size()));
}

void Run::prepare() {
    refuse_unsupported(options_.config);
    if (!options_.capture.has_value()) check_device_names(options_.config);
    streams_ = plan::make_streams(options_.config);
    geometry_ = plan::make_geometry(options_.config, streams_);
    reduce_ = std::make_shared<stages::ReduceSetup>(options_.config);
    plan::PlanInput& input = plan_input_;
    input.output_buffer_bytes = reduce_->output_buffer_bytes();
    input.replay = options_.capture.has_value();
    if (input.replay) {
        options_.capture->ports = port_indices(options_);
        measure_captures(*options_.capture, input);
    }
    look_at_machine(options_.config, input);
    for (const stages::StreamRuntime& stream : streams_)
        input.header_bytes.push_back(std::max(stream.context.header_read_bytes, stream.context.header_bytes));
    input.number_bits = plan::make_number_bits(options_.config, streams_);
    plan_ = make_plan(options_.config, geometry_, input);
    add_reduce_memory();
    if (input.replay) options_.capture->blocks = plan_.capture_blocks;
}

void Run::add_reduce_memory() {
    plan_.reduce = reduce_->memory(static_cast<std::uint32_t>(plan_.work.size()));
    plan_.memory.reduce_bytes = plan_.reduce.sum();
}

void Run::open_sinks() {
    nlohmann::json start{{"config", config_json(options_.config)},
                         {"machine", observe::machine_json(options_.version, plan_)}};
    if (reduce_->needs_version_2()) start["payload"] = reduce_->payload_json();
    {
        // Libraries of sinks start threads, before EAL has moved this one out of the way of lcores.
        const core::ScopedAffinity out_of_the_way(plan_.placement.housekeeping);
        sinks_.open(options_.config, options_.out, start, reduce_->needs_version_2());
    }
    if (sinks_.recorder_path())
        recorder_ = observe::RunRecorder::open(
            options_.config, plan_, {options_.capture.has_value(), *sinks_.recorder_path(), options_.version});
}

/// The effective configuration, and as comments what is planned with it.
void Run::print_plan() const {
    fmt::print("{}\n", print_config(options_.config));
    std::string line;
    const std::string plan_text = plan_.text();
    for (const char c : plan_text) {
        if (line.empty()) line = "# ";
        line += c;
        if (c != '\n') continue;
        fmt::print("{}", line);
        line.clear();
    }
    for (const std::string& warning : plan_.warnings) fmt::print("# warning: {}\n", warning);
    for (const KeptPrivilege& kept : kept_for_devices(options_.config))
        fmt::print("# kept while running: {}, {}\n", capability_name(kept.capability), kept.why);
}

/// Where snapshots of pedestals go: as configured, or with the run, in the folder of the first sink, which has its
/// hidden name until the run is over. Empty where there is none.
std::filesystem::path Run::snapshot_folder() const {
    const auto* pedestal = find_reducer<config::PedestalOptions>(options_.config.reduce);
    if (pedestal == nullptr || !pedestal->snapshots.empty()) return pedestal == nullptr ? "" : pedestal->snapshots;
    const auto events = sinks_.events();
    std::error_code error;
    for (const store::EventSink* sink : events)
        if (std::filesystem::is_directory(sink->path(), error)) return sink->path();
    return {};
}

int Run::execute() {
    if (!options_.print_config) port::remove_stale_hugepages();
    prepare();
    if (options_.print_config) {
        print_plan();
        return 0;
    }
    check_memory(options_.config, plan_, port::free_memory(), [this](std::uint64_t memory_bytes) {
        config::RunConfig other = options_.config;
        other.events.memory_bytes = memory_bytes;
        return make_plan(other, geometry_, plan_input_);
    });
    if (!options_.capture.has_value()) check_host(options_.config, streams_, geometry_, plan_, options_.force);
    catch_signals();
    reduce_->load();
    add_reduce_memory();
    pedestals_ = reduce_->make_pedestals(options_.config);
    // The captures are opened and the sink's path is taken before DPDK starts: both are where users err most.
    if (options_.capture.has_value()) probe_captures(*options_.capture);
    if (!options_.answers.empty()) answers_ = std::make_unique<stages::AnswerLog>(options_.answers, plan_.rx.size());
    open_sinks();
    if (!options_.capture.has_value()) check_pci_devices(options_.config);
    port::start_eal(eal_config(options_, plan_));
    pipeline_ = std::make_unique<pipeline::Pipeline>(pipeline_options());
    if (!options_.quiet) say_start();
    if (!options_.telemetry.empty()) telemetry_ = std::make_unique<observe::Telemetry>();
    if (!options_.capture.has_value())
        exchanges_ = std::make_unique<Exchanges>(*pipeline_, [this](std::string_view text) { progress_.say(text); });
    start_ = std::chrono::steady_clock::now();
    if (answers_ != nullptr) answers_->start();
    if (recorder_ != nullptr) recorder_->start(*pipeline_);
    pipeline_->start();
    started_ = true;
    if (!options_.capture.has_value()) {
        wait_for_links();
        drop_privileges();
        if (!options_.quiet) core::say("running: SIGINT (Ctrl-C) or SIGTERM ends the run\n");
        service_manager_.ready(0);
        leftovers_ = std::make_unique<LeftoverRuns>(options_.config, options_.out);
    }
    control();
    pipeline_->join();
    return finish();
}

pipeline::Pipeline::Options Run::pipeline_options() const {
    pipeline::Pipeline::Options setup;
    setup.config = options_.config;
    setup.plan = plan_;
    setup.streams = streams_;
    setup.geometry = geometry_;
    setup.reduce = reduce_;
    setup.pedestals = pedestals_;
    setup.snapshots = snapshot_folder();
    // With --drop the reader does not wait; whether the pipeline does is then the operator's choice, as with a device.
    setup.wait = options_.config.events.overload == config::OverloadMode::wait ||
                 (options_.capture.has_value() && options_.capture->wait);
    setup.capture = options_.capture;
    setup.sinks = sinks_.events();
    setup.answers = answers_.get();
    setup.recorder = recorder_ != nullptr ? &recorder_->recorder() : nullptr;
    return setup;
}

void Run::say_start() const {
    core::say("{}", plan_.text());
    for (const auto* warnings : {&options_.config.warnings, &plan_.warnings})
        for (const std::string& warning : *warnings) core::say("warning: {}\n", warning);
    if (!pipeline_->unlocked().empty()) core::say("{}\n", pipeline_->unlocked());
    core::say("{}{}", sinks_.start_text(), observe::ports_text(*pipeline_));
    const bool own_rules = !options_.capture.has_value();  // a replay does those of files only
    const bool files = std::ranges::any_of(options_.config.ports, [](const auto& port) { return !port.flows.empty(); });
    if (own_rules || files) core::say("{}", pipeline_->flows().text());
}

/// Packets are taken meanwhile; the time of the run begins when the wait is over.
void Run::wait_for_links() {
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

/// Devices are started and files are open: what is needed from here on is little.
void Run::drop_privileges() {
    if (options_.keep_privileges) return;
    std::vector<std::filesystem::path> folders;
    if (const std::filesystem::path snapshots = snapshot_folder(); !snapshots.empty()) folders.push_back(snapshots);
    for (const std::filesystem::path& path : sinks_.paths())
        if (!path.empty()) folders.insert(folders.end(), {path, path.parent_path()});
    if (sinks_.recorder_path()) folders.push_back(sinks_.recorder_path()->parent_path());
    const bool has_pci = !plan_.node_memory_bytes.empty();
    std::vector<KeptPrivilege> keep = kept_for_devices(options_.config);
    for (KeptPrivilege& more : kept_for_process(has_pci, folders)) keep.push_back(std::move(more));
    const PrivilegesLeft left = give_up_privileges(keep);
    if (!options_.quiet) core::say_text(left.text());
    warnings_.insert(warnings_.end(), left.failures.begin(), left.failures.end());
}

void Run::tell_service_manager() {
    const std::string said = service_manager_.look(
        seconds_, [this] { return pipeline_->usage(seconds_).lcores; },
        [this] { return service_progress_.line(*pipeline_, watch_, seconds_); });
    if (!said.empty()) warn(said);
}

void Run::say_recovered() {
    if (leftovers_ == nullptr) return;
    for (const LeftoverRuns::Line& line : leftovers_->take_lines())
        line.problem ? warn(line.text) : progress_.say(line.text);
}

void Run::control() {
    bool stopping = false;
    while (!pipeline_->finished()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        pipeline_->look();
        watch_.look(*pipeline_, seconds_);
        watch_flows();
        progress_.update(*pipeline_, watch_, seconds_);
        if (telemetry_ != nullptr) telemetry_->serve(*pipeline_, watch_, seconds_);
        if (asked_for_progress()) progress_.answer(*pipeline_, watch_, seconds_);
        if (!options_.capture.has_value() && !said_nothing_ && seconds_ >= patience_s) say_nothing_came();
        if (exchanges_ != nullptr && !stopping) exchanges_->serve(seconds_);
        watch_sinks();
        watch_recorder();
        tell_service_manager();
        say_recovered();
        if (stopping) continue;
        const bool sink_failed = sinks_.must_stop(pipeline_->sinks()) || recorder_must_stop();
        const std::optional<std::string> reason = stop_condition_.ask(*pipeline_, sink_failed, seconds_);
        if (!reason) continue;
        stopping = true;
        stop_reason_ = *reason;
        progress_.say(fmt::format("{}: closing open events and writing what is left", stop_reason_));
        service_manager_.stopping(stop_reason_);
        sinks_.stopping();
        pipeline_->stop_input();
    }
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

/// Whether devices do what they accepted.
void Run::watch_flows() {
    constexpr double interval_s = 0.1;
    if (seconds_ - flows_looked_s_ < interval_s) return;
    flows_looked_s_ = seconds_;
    for (const std::string& warning : pipeline_->flows().update(pipeline_->rx())) {
        progress_.say("warning: " + warning);
        warnings_.push_back(warning);
    }
}

/// Once, for whoever reads the log of a run that nobody watches.
void Run::say_nothing_came() {
    said_nothing_ = true;
    const observe::Ledger ledger = observe::collect(*pipeline_);
    const observe::Observations seen = watch_.observations(*pipeline_, ledger, seconds_);
    if (nothing_for_streams(ledger, seen))
        progress_.say(
            fmt::format("nothing has come for any stream in {:.0f} s: {}", seconds_, seen_text(ledger, seen)));
}

void Run::warn(const std::string& text) {
    progress_.say("warning: " + text);
    warnings_.push_back(text);
}

void Run::watch_sinks() {
    for (const std::string& warning : sinks_.watch(pipeline_->sinks())) warn(warning);
}

/// What is recorded besides, and whether somebody asks for it.
void Run::watch_recorder() {
    if (recorder_ != nullptr) recorder_->look(*pipeline_, [this](const std::string& text) { warn(text); });
    const bool by_telemetry = telemetry_ != nullptr && telemetry_->take_record_request();
    if (!asked_to_record() && !by_telemetry) return;
    progress_.say(fmt::format(
        "{}: {}", by_telemetry ? "/weir/record" : "SIGUSR2",
        recorder_ != nullptr ? recorder_->request() : "the run has no sink of kind \"pcapng\", so nothing is saved"));
}

/// It failed, and the run is not to do without it, or has nothing else that writes.
bool Run::recorder_must_stop() const {
    return recorder_ != nullptr && !recorder_->failure().empty() &&
           (recorder_->on_error() == config::SinkError::stop ||
            (pipeline_->sinks().empty() && recorder_->recorder().config().record.packets == config::RecordMode::all));
}

nlohmann::json Run::report_json(const observe::Ledger& ledger) const {
    return whole_report({options_, plan_, *reduce_, *pipeline_, sinks_, recorder_.get(), exchanges_.get()}, ledger,
                        seconds_, stop_reason_);
}

/// Empty, or why the run failed and what is left of it.
std::string Run::close_sinks(const observe::Ledger& ledger, const observe::Verdict& verdict) {
    const nlohmann::json report = report_json(ledger);
    nlohmann::json manifest = nlohmann::json::object();
    for (const char* key : {"config", "machine", "plan", "seconds", "stopped_by"}) manifest[key] = report[key];
    for (const char* key : {"payload", "reduce", "pedestal"})
        if (report.contains(key)) manifest[key] = report[key];
    return sinks_.close(pipeline_->sinks(), ledger, verdict, manifest, warnings_);
}

/// What is known only at the end, and what was known before the start.
void Run::add_warnings() {
    if (pipeline_->capture() != nullptr)
        for (const std::string& warning : pipeline_->capture()->warnings()) {
            core::say("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto& warnings : {observe::clock_warnings(*pipeline_), observe::interface_warnings(*pipeline_)})
        for (const std::string& warning : warnings) {
            core::say("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto* warnings : {&options_.config.warnings, &plan_.warnings})
        warnings_.insert(warnings_.end(), warnings->begin(), warnings->end());
}

int Run::finish() {
    say_recovered();
    leftovers_.reset();
    if (recorder_ != nullptr) recorder_->finish(*pipeline_, [this](const std::string& text) { warn(text); });
    flows_looked_s_ = -1;
    watch_flows();
    observe::Ledger ledger = observe::collect(*pipeline_);
    ledger.numbers = observe::report_numbers(*pipeline_);
    const observe::Verdict verdict = judge(ledger, options_.expected);
    progress_.finish(*pipeline_, watch_, ledger, seconds_);
    if (telemetry_ != nullptr) telemetry_->finish(*pipeline_, watch_, ledger, seconds_);
    std::vector<pipeline::Finding> findings = diagnose(ledger, watch_.observations(*pipeline_, ledger, seconds_));
    pipeline_->flows().add_findings(findings);
    std::string failure = close_sinks(ledger, verdict);
    if (recorder_must_stop() && failure.empty()) failure = recorder_->failure();
    if (const stages::PedestalKeeper* pedestals = pipeline_->pedestals(); pedestals != nullptr && failure.empty())
        if (const std::string error = pedestals->error(); !error.empty())
            failure = fmt::format("a snapshot of the pedestals could not be saved: {}", error);
    if (answers_ != nullptr) {
        answers_->finish();
        if (!answers_->error().empty() && failure.empty()) failure = fmt::format("--answers: {}", answers_->error());
    }
    nlohmann::json report = report_json(ledger);
    put_verdict(report, verdict);
    report["findings"] = findings_json(findings);
    report["rates"] = rates_json(ledger, seconds_, watch_.active_seconds());
    const pipeline::Usage usage = pipeline_->usage(seconds_);
    const pipeline::Usage decisive = watch_.decisive(usage);
    report["bottleneck"] = bottleneck_json(decisive);
    report["stages"] = stages_json(usage);
    report["levels"] = levels_json(pipeline_->levels());
    if (!failure.empty()) report["error"] = failure;
    add_warnings();
    if (!warnings_.empty()) report["warnings"] = warnings_;
    if (!options_.quiet) {
        // Whoever does not take the summary any more must not keep the report from being written.
        const std::string summary =
            fmt::format("{}{}{}{}{}{}", ledger_text(ledger, seconds_, watch_.active_seconds()), verdict_text(verdict),
                        findings_text(findings), bottleneck_text(decisive, seconds_), sinks_.end_text(),
                        recorder_ != nullptr ? recorder_->text() : "");
        std::fputs(summary.c_str(), stdout);
        std::fflush(stdout);
    }
    if (!failure.empty()) core::say("weir: the run failed: {}\n", failure);
    report_.write(report);  // last: it may be on the same full disk
    if (!failure.empty()) return 1;
    if (!ledger.imbalance().empty()) {
        core::say("weir: the ledger does not balance ({}); this is a defect of weir, please report it\n",
                  ledger.imbalance());
        return 1;
    }
    return exit_status(options_, verdict);
}

}  // namespace

int execute_run(RunOptions options) {
    return Run(std::move(options)).execute();
}

}  // namespace weir::run
