#include "run/run.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "core/say.hpp"
#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/port_report.hpp"
#include "observe/run_recorder.hpp"
#include "observe/run_report.hpp"
#include "observe/seen.hpp"
#include "observe/telemetry.hpp"
#include "pipeline/pipeline.hpp"
#include "port/device_problem.hpp"
#include "port/eal.hpp"
#include "port/free_memory.hpp"
#include "port/pci_devices.hpp"
#include "run/exchanges.hpp"
#include "run/run_signals.hpp"
#include "run/run_sinks.hpp"

namespace weir::pipeline {

namespace {

/// Size of the captures, and how many packets they have. Small ones are counted, which takes milliseconds; otherwise
/// the packets are as many as there can be in so many bytes.
void measure_captures(const RunOptions& options, PlanInput& input) {
    constexpr std::uint64_t counted_bytes_max = std::uint64_t{64} << 20U;
    constexpr std::uint64_t unknown = std::uint64_t{1} << 50U;
    // A record header, Ethernet, IPv4 and UDP headers and a byte. Smaller records end at once.
    constexpr std::uint64_t record_bytes_min = 16 + 14 + 20 + 8 + 1;
    for (const std::string& file : options.capture->files) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        // A pipe has no size, and that of a compressed file says little; then the memory alone decides how many
        // buffers there are.
        const bool known = !error && !port::is_compressed(file);
        input.capture_bytes += known ? size : unknown;
        std::uint64_t packets = known ? size / record_bytes_min : unknown;
        if (known && input.capture_bytes <= counted_bytes_max) {
            try {
                port::CaptureReader reader(file);
                port::CaptureReader::Record record;
                while (reader.next(record)) {
                }
                packets = reader.records();
            } catch (const core::RunError&) {
                // Said when it is opened to be replayed.
            }
        }
        input.capture_packets += packets;
    }
    input.capture_bytes *= options.capture->loop;
    input.capture_packets *= options.capture->loop;
}

std::uint16_t port_index(const RunConfig& config, const std::string& name) {
    std::string names;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        if (config.ports[i].name == name) return static_cast<std::uint16_t>(i);
        names += (names.empty() ? "" : ", ") + config.ports[i].name;
    }
    throw core::UsageError(fmt::format("--port: found '{}'; accepted: {}", name, names));
}

/// The port of each capture: one for all of them, or one for each in order.
std::vector<std::uint16_t> port_indices(const RunOptions& options) {
    const std::size_t files = options.capture->files.size();
    if (options.ports.empty()) return std::vector<std::uint16_t>(files, 0);
    if (options.ports.size() != 1 && options.ports.size() != files)
        throw core::UsageError(fmt::format(
            "--port: found {} names for {} captures; accepted: one for all, or one for each in the same order",
            options.ports.size(), files));
    std::vector<std::uint16_t> ports;
    for (const std::string& name : options.ports) ports.push_back(port_index(options.config, name));
    ports.resize(files, ports.front());
    return ports;
}

port::EalConfig eal_config(const RunOptions& options, const Plan& plan) {
    port::EalConfig eal;
    eal.lcores = plan.placement.lcores();
    eal.pin = plan.pin;
    eal.cpus = plan.host.usable();
    eal.other_cpus = plan.placement.housekeeping;
    eal.telemetry = options.telemetry;
    eal.memory_bytes = plan.eal_memory_bytes;
    eal.node_memory_bytes = plan.node_memory_bytes;
    if (options.capture.has_value()) return eal;
    for (const PortConfig& port : options.config.ports)
        if (port::is_pci_address(port.device)) eal.pci.push_back(port.devargs());
    return eal;
}

/// What DPDK would say in many lines, or not at all.
void check_pci_devices(const RunConfig& config) {
    for (const PortConfig& port : config.ports)
        if (port::is_pci_address(port.device))
            if (const std::string problem = port::pci_problem(port.device); !problem.empty())
                throw core::RunError(fmt::format("port '{}': {}", port.name, problem));
}

/// In a replay a device is only a name.
void check_device_names(const RunConfig& config) {
    for (const PortConfig& port : config.ports)
        if (const std::string problem = port::device_name_problem(port.device); !problem.empty())
            throw core::UsageError(fmt::format("{}:{}: port.device: found \"{}\"; accepted: {}", port.place.file,
                                               port.place.line, port.device, problem));
}

class Run {
public:
    explicit Run(RunOptions options)
        : options_(std::move(options)),
          report_(options_.report),
          progress_(options_.print_config ? ProgressOption{} : options_.progress, options_.quiet) {}
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
    [[nodiscard]] bool should_stop(double seconds);
    [[nodiscard]] nlohmann::json report_json(const Ledger& ledger) const;
    [[nodiscard]] std::string close_sinks(const Ledger& ledger, const Verdict& verdict);
    [[nodiscard]] int status_of(const Verdict& verdict) const;
    int finish();

    RunOptions options_;
    ReportFile report_;
    Progress progress_;
    Watch watch_;
    std::vector<StreamRuntime> streams_;
    std::vector<SourceGeometry> geometry_;
    std::shared_ptr<ReduceSetup> reduce_;
    PlanInput plan_input_;
    Plan plan_;
    RunSinks sinks_;
    std::vector<std::string> warnings_;  ///< for the report
    std::unique_ptr<AnswerLog> answers_;
    std::unique_ptr<RunRecorder> recorder_;
    std::unique_ptr<Pipeline> pipeline_;
    std::unique_ptr<Telemetry> telemetry_;
    std::unique_ptr<Exchanges> exchanges_;
    std::chrono::steady_clock::time_point start_;
    bool started_ = false;
    bool said_nothing_ = false;
    static constexpr double patience_s = 5;  ///< until a run says by itself that nothing comes
    double seconds_ = 0;
    std::uint64_t idle_packets_ = 0;
    double idle_since_s_ = 0;
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
void refuse_unsupported(const RunConfig& config) {
    if (config.ports.size() > 256)
        throw core::UsageError(fmt::format("[[port]]: found {} ports; accepted: at most 256", config.ports.size()));
}

void Run::prepare() {
    refuse_unsupported(options_.config);
    if (!options_.capture.has_value()) check_device_names(options_.config);
    streams_ = make_streams(options_.config);
    geometry_ = make_geometry(options_.config, streams_);
    reduce_ = std::make_shared<ReduceSetup>(options_.config);
    PlanInput& input = plan_input_;
    input.output_buffer_bytes = reduce_->output_buffer_bytes();
    input.replay = options_.capture.has_value();
    if (input.replay) {
        options_.capture->ports = port_indices(options_);
        measure_captures(options_, input);
    }
    look_at_machine(options_.config, input);
    for (const StreamRuntime& stream : streams_)
        input.header_bytes.push_back(std::max(stream.context.header_read_bytes, stream.context.header_bytes));
    input.number_bits = make_number_bits(options_.config, streams_);
    plan_ = make_plan(options_.config, geometry_, input);
    add_reduce_memory();
    if (input.replay) options_.capture->blocks = plan_.capture_blocks;
}

void Run::add_reduce_memory() {
    plan_.reduce = reduce_->memory(static_cast<std::uint32_t>(plan_.work.size()));
    plan_.memory.reduce_bytes = plan_.reduce.sum();
}

void Run::open_sinks() {
    nlohmann::json start{{"config", config_json(options_.config)}, {"machine", machine_json(options_.version, plan_)}};
    if (reduce_->needs_version_2()) start["payload"] = reduce_->payload_json();
    sinks_.open(options_.config, options_.out, start, reduce_->needs_version_2());
    if (sinks_.recorder_path())
        recorder_ = RunRecorder::open(options_.config, plan_,
                                      {options_.capture.has_value(), *sinks_.recorder_path(), options_.version});
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
}

/// Where snapshots of pedestals go: as configured, or with the run, in the folder of the first sink, which has its
/// hidden name until the run is over. Empty where there is none.
std::filesystem::path Run::snapshot_folder() const {
    const auto* pedestal = find_reducer<PedestalOptions>(options_.config.reduce);
    if (pedestal == nullptr || !pedestal->snapshots.empty()) return pedestal == nullptr ? "" : pedestal->snapshots;
    const auto events = sinks_.events();
    std::error_code error;
    if (events.empty() || !std::filesystem::is_directory(events.front()->path(), error)) return {};
    return events.front()->path();
}

int Run::execute() {
    prepare();
    if (options_.print_config) {
        print_plan();
        return 0;
    }
    check_memory(options_.config, plan_, port::free_memory(), [this](std::uint64_t memory_bytes) {
        RunConfig other = options_.config;
        other.events.memory_bytes = memory_bytes;
        return make_plan(other, geometry_, plan_input_);
    });
    SignalGuard guard;
    reduce_->load();
    add_reduce_memory();
    const std::shared_ptr<PedestalSetup> pedestals = reduce_->make_pedestals(options_.config);
    // The captures are opened and the sink's path is taken before DPDK starts: both are where users err most. (A pipe
    // can be opened only once.)
    std::error_code error;
    if (options_.capture.has_value())
        for (const std::string& file : options_.capture->files)
            if (file != "-" && (!std::filesystem::exists(file, error) || std::filesystem::is_regular_file(file, error)))
                port::CaptureReader probe(file);
    if (!options_.answers.empty()) answers_ = std::make_unique<AnswerLog>(options_.answers, plan_.rx.size());
    open_sinks();
    if (!options_.capture.has_value()) check_pci_devices(options_.config);
    port::start_eal(eal_config(options_, plan_));
    Pipeline::Options setup;
    setup.config = options_.config;
    setup.plan = plan_;
    setup.streams = streams_;
    setup.geometry = geometry_;
    setup.reduce = reduce_;
    setup.pedestals = pedestals;
    setup.snapshots = snapshot_folder();
    // With --drop the reader does not wait; whether the pipeline does is then the operator's choice, as with a device.
    setup.wait = options_.config.events.overload == OverloadMode::wait ||
                 (options_.capture.has_value() && options_.capture->wait);
    setup.capture = options_.capture;
    setup.sinks = sinks_.events();
    setup.answers = answers_.get();
    setup.recorder = recorder_ != nullptr ? &recorder_->recorder() : nullptr;
    pipeline_ = std::make_unique<Pipeline>(std::move(setup));
    if (!options_.quiet) {
        core::say("{}", plan_.text());
        for (const auto* warnings : {&options_.config.warnings, &plan_.warnings})
            for (const std::string& warning : *warnings) core::say("warning: {}\n", warning);
        if (!pipeline_->unlocked().empty()) core::say("{}\n", pipeline_->unlocked());
        core::say("{}{}", sinks_.start_text(), ports_text(*pipeline_));
    }
    const bool own_rules = !options_.capture.has_value();  // a replay does those of files only
    const bool files = std::ranges::any_of(options_.config.ports, [](const auto& port) { return !port.flows.empty(); });
    if (!options_.quiet && (own_rules || files)) core::say("{}", pipeline_->flows().text());
    if (!options_.telemetry.empty()) telemetry_ = std::make_unique<Telemetry>();
    if (!options_.capture.has_value())
        exchanges_ = std::make_unique<Exchanges>(*pipeline_, [this](std::string_view text) { progress_.say(text); });
    start_ = std::chrono::steady_clock::now();
    if (answers_ != nullptr) answers_->start();
    if (recorder_ != nullptr) recorder_->start(*pipeline_);
    pipeline_->start();
    started_ = true;
    if (!options_.capture.has_value()) wait_for_links();
    if (!options_.quiet && !options_.capture.has_value())
        core::say("running: SIGINT (Ctrl-C) or SIGTERM ends the run\n");
    control();
    pipeline_->join();
    return finish();
}

/// Packets are taken meanwhile; the time of the run begins when the wait is over.
void Run::wait_for_links() {
    const auto stop = [this] {
        pipeline_->look();
        return SignalGuard::received() != 0;
    };
    for (const std::string& text :
         pipeline::wait_for_links(*pipeline_, stop, [this](const std::string& what) { progress_.say(what); })) {
        progress_.say("warning: " + text);
        warnings_.push_back(text);
    }
    start_ = std::chrono::steady_clock::now();
}

bool Run::should_stop(double seconds) {
    if (const int number = SignalGuard::received(); number != 0) {
        stop_reason_ = fmt::format("SIG{}", ::sigabbrev_np(number));
        return true;
    }
    if (sinks_.must_stop(pipeline_->sinks()) || recorder_must_stop()) {
        stop_reason_ = "the sink failed";
        return true;
    }
    if (options_.capture.has_value()) return false;  // ends by itself
    if (options_.duration_s.has_value() && seconds >= *options_.duration_s) {
        stop_reason_ = "--duration";
        return true;
    }
    if (pipeline_->input_exhausted()) {
        stop_reason_ = "the simulated detector has sent everything";
        return true;
    }
    if (!options_.events.has_value() && !options_.idle_exit_s.has_value()) return false;
    const Ledger ledger = collect(*pipeline_);
    if (options_.events.has_value() &&
        ledger.get(core::EventCounter::complete) + ledger.incomplete() >= *options_.events) {
        stop_reason_ = "--events";
        return true;
    }
    if (!options_.idle_exit_s.has_value()) return false;
    if (const std::uint64_t packets = ledger.stream_packets(); packets != idle_packets_) {
        idle_packets_ = packets;
        idle_since_s_ = seconds;
    }
    if (seconds - idle_since_s_ >= *options_.idle_exit_s) {
        stop_reason_ = "--idle-exit";
        return true;
    }
    return false;
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
        if (SignalGuard::asked()) progress_.answer(*pipeline_, watch_, seconds_);
        if (!options_.capture.has_value() && !said_nothing_ && seconds_ >= patience_s) say_nothing_came();
        if (exchanges_ != nullptr && !stopping) exchanges_->serve(seconds_);
        watch_sinks();
        watch_recorder();
        if (stopping || !should_stop(seconds_)) continue;
        stopping = true;
        progress_.say(fmt::format("{}: closing open events and writing what is left", stop_reason_));
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
    const Ledger ledger = collect(*pipeline_);
    const Observations seen = watch_.observations(*pipeline_, ledger, seconds_);
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
    if (!SignalGuard::asked_to_record() && !by_telemetry) return;
    progress_.say(fmt::format(
        "{}: {}", by_telemetry ? "/weir/record" : "SIGUSR2",
        recorder_ != nullptr ? recorder_->request() : "the run has no sink of kind \"pcapng\", so nothing is saved"));
}

/// It failed, and the run is not to do without it, or has nothing else that writes.
bool Run::recorder_must_stop() const {
    return recorder_ != nullptr && !recorder_->failure().empty() &&
           (recorder_->on_error() == SinkError::stop ||
            (pipeline_->sinks().empty() && recorder_->recorder().config().record.packets == RecordMode::all));
}

nlohmann::json Run::report_json(const Ledger& ledger) const {
    nlohmann::json report = ledger_json(ledger);
    report["seconds"] = seconds_;
    report["machine"] = machine_json(options_.version, plan_);
    if (pipeline_->clock() != nullptr) {
        report["machine"]["clock"] = clock_json(*pipeline_);
        report["ports"] = ports_json(*pipeline_);
        report["latency_ns"] = {{"events", ledger.latency.count()},
                                {"p50", ledger.latency.quantile_ns(0.5)},
                                {"p99", ledger.latency.quantile_ns(0.99)},
                                {"p99.9", ledger.latency.quantile_ns(0.999)},
                                {"longest", ledger.latency.longest_ns()}};
    }
    report["config"] = config_json(options_.config);
    report["plan"] = plan_json(plan_);
    if (pipeline_->pedestals() != nullptr) report["pedestal"] = pipeline_->pedestals()->json();
    if (reduce_->needs_version_2()) report["payload"] = reduce_->payload_json();
    report["stopped_by"] = stop_reason_;
    report["flows"] = pipeline_->flows().json();
    if (exchanges_ != nullptr)
        if (nlohmann::json exchanges = exchanges_->report(); !exchanges.empty())
            report["exchanges"] = std::move(exchanges);
    if (const CaptureFeeder* capture = pipeline_->capture(); capture != nullptr)
        report["capture"] = {{"files", options_.capture->files}, {"records", capture->records() + capture->skipped()},
                             {"skipped", capture->skipped()},    {"bytes", capture->record_bytes()},
                             {"passes", capture->passes()},      {"numbers_per_pass", pipeline_->numbers_per_pass()}};
    if (recorder_ != nullptr) report["recorder"] = recorder_->json();
    const std::vector<std::filesystem::path> paths = sinks_.paths();
    if (!paths.empty()) report["path"] = paths.front().string();
    const std::vector<nlohmann::json> how = sinks_.how();
    for (std::size_t i = 0; i < paths.size(); ++i) {
        report["sinks"][i]["path"] = paths[i].string();
        report["sinks"][i].update(how[i]);
    }
    if (ledger.disk.free_bytes) {
        report["disk"] = {{"free_bytes", *ledger.disk.free_bytes}};
        if (ledger.disk.bytes_per_second) report["disk"]["bytes_per_second"] = *ledger.disk.bytes_per_second;
    }
    return report;
}

/// Empty, or why the run failed and what is left of it.
std::string Run::close_sinks(const Ledger& ledger, const Verdict& verdict) {
    const nlohmann::json report = report_json(ledger);
    nlohmann::json manifest = nlohmann::json::object();
    for (const char* key : {"config", "machine", "plan", "seconds", "stopped_by"}) manifest[key] = report[key];
    for (const char* key : {"payload", "reduce", "pedestal"})
        if (report.contains(key)) manifest[key] = report[key];
    return sinks_.close(pipeline_->sinks(), ledger, verdict, manifest, warnings_);
}

int Run::finish() {
    if (recorder_ != nullptr) recorder_->finish(*pipeline_, [this](const std::string& text) { warn(text); });
    flows_looked_s_ = -1;
    watch_flows();
    Ledger ledger = collect(*pipeline_);
    ledger.numbers = report_numbers(*pipeline_);
    const Verdict verdict = judge(ledger, options_.expected);
    progress_.finish(*pipeline_, watch_, ledger, seconds_);
    if (telemetry_ != nullptr) telemetry_->finish(*pipeline_, watch_, ledger, seconds_);
    std::vector<Finding> findings = diagnose(ledger, watch_.observations(*pipeline_, ledger, seconds_));
    pipeline_->flows().add_findings(findings);
    std::string failure = close_sinks(ledger, verdict);
    if (recorder_must_stop() && failure.empty()) failure = recorder_->failure();
    if (const PedestalKeeper* pedestals = pipeline_->pedestals(); pedestals != nullptr && failure.empty())
        if (const std::string error = pedestals->error(); !error.empty())
            failure = fmt::format("a snapshot of the pedestals could not be saved: {}", error);
    if (answers_ != nullptr)
        if (const std::string error = answers_->finish(); !error.empty() && failure.empty())
            failure = fmt::format("--answers: {}", error);
    nlohmann::json report = report_json(ledger);
    put_verdict(report, verdict);
    report["findings"] = findings_json(findings);
    report["rates"] = rates_json(ledger, seconds_, watch_.active_seconds());
    const Usage usage = pipeline_->usage(seconds_);
    const Usage decisive = watch_.decisive(usage);
    report["bottleneck"] = bottleneck_json(decisive);
    report["stages"] = stages_json(usage);
    report["levels"] = levels_json(pipeline_->levels());
    if (!failure.empty()) report["error"] = failure;
    if (pipeline_->capture() != nullptr)
        for (const std::string& warning : pipeline_->capture()->warnings()) {
            core::say("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto& warnings : {clock_warnings(*pipeline_), interface_warnings(*pipeline_)})
        for (const std::string& warning : warnings) {
            core::say("warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    for (const auto* warnings : {&options_.config.warnings, &plan_.warnings})
        warnings_.insert(warnings_.end(), warnings->begin(), warnings->end());
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
    return status_of(verdict);
}

/// Of a run that worked.
int Run::status_of(const Verdict& verdict) const {
    if (!verdict.came && !options_.allow_empty) {
        core::say("weir: nothing came for any stream ({}); if that is as it should be: --allow-empty\n",
                  verdict.evidence.front());
        return 1;
    }
    if (options_.require == RunOptions::Require::nothing || verdict.lossless == Lossless::yes) return 0;
    const bool accepted = verdict.lossless == Lossless::unknown && options_.require == RunOptions::Require::not_lossy;
    core::say(
        "weir: {}--require-lossless: {} ({})\n", accepted ? "warning: " : "",
        verdict.lossless == Lossless::no ? "the run was not lossless" : "whether the run was lossless is not known",
        verdict.evidence.front());
    return accepted ? 0 : 3;
}

}  // namespace

int execute_run(RunOptions options) {
    return Run(std::move(options)).execute();
}

}  // namespace weir::pipeline
