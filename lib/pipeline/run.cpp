#include "pipeline/run.hpp"

#include <fmt/format.h>
#include <rte_version.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "pipeline/ledger.hpp"
#include "pipeline/pipeline.hpp"
#include "port/eal.hpp"
#include "store/run_path.hpp"
#include "store/run_writer.hpp"

namespace weir::pipeline {

namespace {

std::atomic<int> stop_signal{0};
std::atomic<TimeNs> stop_signal_ns{0};

/// The first signal asks for a clean end. A second one ends the program where it stands, which is the way out when the
/// sink hangs; not if it comes at once, because `timeout` and terminals may well send the same signal twice.
void on_signal(int number) {
    const TimeNs now = wall_ns();
    if (stop_signal.load() == 0) {
        stop_signal_ns.store(now);
        stop_signal.store(number);
    } else if (now - stop_signal_ns.load() > core::ns_per_s) {
        constexpr std::string_view text =
            "weir: ended by a second signal; what was written so far is in the hidden directory, see weir inspect\n";
        const auto written = ::write(STDERR_FILENO, text.data(), text.size());
        static_cast<void>(written);
        ::signal(number, SIG_DFL);
        ::raise(number);
    }
}

/// SIGINT and SIGTERM end a run cleanly; what was set before is restored. Not after a signal: one that comes again
/// while the program takes its leave must not turn a clean end into a failure.
class SignalGuard {
public:
    SignalGuard() {
        stop_signal.store(0);
        struct sigaction action {};
        action.sa_handler = on_signal;
        ::sigaction(SIGINT, &action, &interrupt_);
        ::sigaction(SIGTERM, &action, &terminate_);
        // A file that may not grow any more is an error of writing, with an account, not a reason to die.
        ::signal(SIGXFSZ, SIG_IGN);
    }
    ~SignalGuard() {
        if (stop_signal.load() != 0) return;
        ::sigaction(SIGINT, &interrupt_, nullptr);
        ::sigaction(SIGTERM, &terminate_, nullptr);
    }
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

private:
    struct sigaction interrupt_ {};
    struct sigaction terminate_ {};
};

std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

nlohmann::json machine_json(const RunOptions& options) {
    utsname kernel{};
    ::uname(&kernel);
    return {{"host", kernel.nodename}, {"kernel", kernel.release},
            {"cpu", cpu_model()},      {"cpus", port::usable_cpus().size()},
            {"dpdk", rte_version()},   {"weir", options.version}};
}

nlohmann::json plan_json(const Plan& plan) {
    return {{"lcores", {{"rx", plan.rx}, {"build", plan.build}, {"work", plan.work}}},
            {"open_events_max", plan.open_max},
            {"open_events_limit", plan.open_limit},
            {"queued_events_max", plan.queued_max},
            {"horizon", plan.horizon},
            {"buffers", plan.pool_buffers},
            {"buffer_bytes", plan.room_bytes},
            {"dpdk_memory_bytes", plan.eal_memory_bytes}};
}

std::uint64_t capture_bytes(const RunOptions& options) {
    std::uint64_t bytes = 0;
    for (const std::string& file : options.capture->files) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        // A pipe has no size; then the memory alone decides how many buffers there are.
        if (error) return std::uint64_t{1} << 50U;
        bytes += size;
    }
    return bytes * options.capture->loop;
}

std::uint32_t port_index(const RunOptions& options) {
    if (options.port.empty()) return 0;
    std::string names;
    for (std::uint32_t i = 0; i < options.config.ports.size(); ++i) {
        if (options.config.ports[i].name == options.port) return i;
        names += (names.empty() ? "" : ", ") + options.config.ports[i].name;
    }
    throw core::UsageError(fmt::format("--port: found '{}'; accepted: {}", options.port, names));
}

port::EalConfig eal_config(const RunOptions& options, const Plan& plan) {
    port::EalConfig eal;
    eal.lcores = plan.lcores();
    eal.pin = plan.pin;
    eal.memory_bytes = plan.eal_memory_bytes;
    if (options.capture.has_value()) return eal;
    for (const PortConfig& port : options.config.ports)
        if (port::is_pci_address(port.device)) eal.pci.push_back(port.devargs());
    return eal;
}

/// The report is opened before anything runs: a path that cannot be written is found then, not at the end. A run that
/// does not get as far as a report leaves no file, rather than an empty one.
class ReportFile {
public:
    explicit ReportFile(const std::string& path) : path_(path) {
        if (path.empty()) return;
        file_ = std::fopen(path.c_str(), "w");
        if (file_ == nullptr) throw core::RunError(fmt::format("--report {}: {}", path, std::strerror(errno)));
    }
    ~ReportFile() {
        if (file_ == nullptr) return;
        std::fclose(file_);
        std::error_code error;  // a device or a pipe stays
        if (!written_ && std::filesystem::is_regular_file(path_, error)) std::filesystem::remove(path_, error);
    }
    ReportFile(const ReportFile&) = delete;
    ReportFile& operator=(const ReportFile&) = delete;

    void write(const nlohmann::json& report) {
        if (file_ == nullptr) return;
        const std::string text = report.dump(2) + "\n";
        const bool ok = std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
        if (!ok) throw core::RunError(fmt::format("--report {}: {}", path_, std::strerror(errno)));
        written_ = true;
    }

private:
    std::string path_;
    std::FILE* file_ = nullptr;
    bool written_ = false;
};

/// Prints a line per second while it runs: rewritten in place on a terminal, one after the other elsewhere.
class Progress {
public:
    explicit Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}
    ~Progress() {
        if (terminal_ && printed_) std::fputc('\n', stderr);
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void say(const std::string& text) {
        if (quiet_) return;
        fmt::print(stderr, "{}{}\n", terminal_ && printed_ ? "\n" : "", text);
        printed_ = false;
    }

    void update(const Pipeline& pipeline, double seconds) {
        if (quiet_ || seconds - last_s_ < 1.0) return;
        const Ledger ledger = collect(pipeline);
        const double step = seconds - last_s_;
        const std::uint64_t closed = ledger.get(core::EventCounter::complete) + ledger.incomplete();
        std::uint64_t missing = 0;
        for (const Ledger::Source& source : ledger.sources) missing += source.missing_packets;
        fmt::print(
            stderr,
            "{}{:6.1f} s  {:9.0f} packets/s  {:6.2f} Gb/s  {} events, {} incomplete, {} open, {} queued; packets: "
            "{} missing, {} dropped{}",
            terminal_ ? "\r" : "", seconds, static_cast<double>(ledger.received - last_packets_) / step,
            static_cast<double>(ledger.received_bytes - last_bytes_) * 8e-9 / step, closed, ledger.incomplete(),
            ledger.events_open, ledger.events_queued, missing, ledger.lost_packets() + ledger.device_missed,
            terminal_ ? "   " : "\n");
        std::fflush(stderr);
        printed_ = true;
        last_s_ = seconds;
        last_packets_ = ledger.received;
        last_bytes_ = ledger.received_bytes;
    }

private:
    bool quiet_;
    bool terminal_;
    bool printed_ = false;
    double last_s_ = 0;
    std::uint64_t last_packets_ = 0;
    std::uint64_t last_bytes_ = 0;
};

class Run {
public:
    explicit Run(RunOptions options) : options_(std::move(options)), report_(options_.report) {}
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    int execute();

private:
    void prepare();
    void open_sink();
    void control();
    void watch_disk(Progress& progress);
    [[nodiscard]] bool should_stop(double seconds);
    [[nodiscard]] nlohmann::json report_json(const Ledger& ledger) const;
    [[nodiscard]] std::string close_sink(const Ledger& ledger);
    int finish();

    RunOptions options_;
    ReportFile report_;
    std::vector<StreamRuntime> streams_;
    std::vector<SourceGeometry> geometry_;
    Plan plan_;
    std::unique_ptr<store::RunWriter> writer_;
    store::DiskAlarm disk_alarm_{0};
    std::vector<std::string> warnings_;  ///< for the report
    std::unique_ptr<Pipeline> pipeline_;
    std::chrono::steady_clock::time_point start_;
    bool started_ = false;
    double seconds_ = 0;
    std::uint64_t idle_packets_ = 0;
    double idle_since_s_ = 0;
    std::string stop_reason_ = "end of input";
};

/// A run that could not start leaves nothing behind that would stand in the way of the next try.
Run::~Run() {
    if (writer_ == nullptr || started_) return;
    pipeline_.reset();
    const std::filesystem::path hidden = writer_->path();
    writer_.reset();
    std::error_code error;
    std::filesystem::remove_all(hidden, error);
}

void Run::open_sink() {
    const auto sink = std::ranges::find(options_.config.sinks, SinkKind::events, &SinkConfig::kind);
    if (sink == options_.config.sinks.end()) return;
    if (!sink->require_mount.empty()) store::require_mount_point(sink->require_mount);
    disk_alarm_ = store::DiskAlarm(sink->full_warning_seconds);
    store::RunWriter::Config config;
    if (options_.out.empty()) {
        const store::RunPath path = store::make_run_path(sink->path, options_.config.name, wall_ns());
        config.path = path.path;
        config.run = path.run;
    } else {
        config.path = options_.out;
    }
    config.name = options_.config.name;
    config.segment_bytes = sink->segment_bytes;
    config.segment_interval_ns = sink->segment_seconds * core::ns_per_s;
    config.sync_bytes = sink->sync_bytes;
    config.sync_interval_ns = sink->sync_ms * core::ns_per_ms;
    config.start_json =
        nlohmann::json{{"config", config_json(options_.config)}, {"machine", machine_json(options_)}}.dump();
    writer_ = std::make_unique<store::RunWriter>(config);
}

/// What the configuration may say and this version does not do: refused, rather than ignored.
void refuse_unsupported(const RunConfig& config) {
    if (config.reduce.size() > 1)
        throw core::UsageError(
            fmt::format("[[reduce]]: found {} reducers; accepted: one in this version", config.reduce.size()));
    if (config.sinks.size() > 1)
        throw core::UsageError(
            fmt::format("[[sink]]: found {} sinks; accepted: one in this version", config.sinks.size()));
    if (config.lcores.build.size() > 1)
        throw core::UsageError(
            fmt::format("lcores.build: found {} lcores; accepted: one in this version", config.lcores.build.size()));
}

void Run::prepare() {
    refuse_unsupported(options_.config);
    streams_ = make_streams(options_.config);
    geometry_ = make_geometry(options_.config, streams_);
    PlanInput input;
    input.replay = options_.capture.has_value();
    if (input.replay) {
        options_.capture->ports.assign(options_.capture->files.size(),
                                       static_cast<std::uint16_t>(port_index(options_)));
        input.capture_bytes = capture_bytes(options_);
    }
    plan_ = make_plan(options_.config, geometry_, input);
    if (input.replay) options_.capture->blocks = plan_.capture_blocks;
}

int Run::execute() {
    prepare();
    if (options_.print_config) {
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
        return 0;
    }
    SignalGuard guard;
    // The captures are opened and the sink's path is taken before DPDK starts: both are where users err most. (A pipe
    // can be opened only once.)
    std::error_code error;
    if (options_.capture.has_value())
        for (const std::string& file : options_.capture->files)
            if (!std::filesystem::exists(file, error) || std::filesystem::is_regular_file(file, error))
                port::CaptureReader probe(file);
    open_sink();
    port::start_eal(eal_config(options_, plan_));
    Pipeline::Options setup;
    setup.config = options_.config;
    setup.plan = plan_;
    setup.streams = streams_;
    setup.geometry = geometry_;
    setup.wait = options_.capture.has_value() && options_.capture->wait;
    setup.capture = options_.capture;
    setup.writer = writer_.get();
    pipeline_ = std::make_unique<Pipeline>(std::move(setup));
    if (!options_.quiet) {
        fmt::print(stderr, "{}", plan_.text());
        for (const std::string& warning : options_.config.warnings) fmt::print(stderr, "warning: {}\n", warning);
        if (writer_ != nullptr)
            fmt::print(stderr, "sink: {}, {}\n", writer_->path().string(),
                       store::disk_text({writer_->free_bytes(), {}, {}}));
        for (const auto& port : pipeline_->ports())
            if (!port->remarks().empty()) fmt::print(stderr, "port: {}\n", port->remarks());
    }
    start_ = std::chrono::steady_clock::now();
    pipeline_->start();
    started_ = true;
    if (!options_.quiet && !options_.capture.has_value())
        fmt::print(stderr, "running: SIGINT (Ctrl-C) or SIGTERM ends the run\n");
    control();
    pipeline_->join();
    return finish();
}

bool Run::should_stop(double seconds) {
    if (const int number = stop_signal.load(); number != 0) {
        stop_reason_ = number == SIGINT ? "SIGINT" : "SIGTERM";
        return true;
    }
    if (pipeline_->writer() != nullptr && pipeline_->writer()->failed()) {
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
    Progress progress(options_.quiet);
    bool stopping = false;
    while (!pipeline_->finished()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        progress.update(*pipeline_, seconds_);
        if (pipeline_->writer() != nullptr) watch_disk(progress);
        if (stopping || !should_stop(seconds_)) continue;
        stopping = true;
        progress.say(fmt::format("{}: closing open events and writing what is left", stop_reason_));
        pipeline_->stop_input();
    }
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Run::watch_disk(Progress& progress) {
    const store::DiskOutlook outlook = pipeline_->writer()->disk();
    if (!disk_alarm_.update(outlook)) return;
    const std::string text =
        fmt::format("the disk will be full soon ({} at {:.1f} MB/s): make room, or end the run",
                    store::disk_text(outlook), static_cast<double>(outlook.bytes_per_second.value_or(0)) * 1e-6);
    progress.say("warning: " + text);
    warnings_.push_back(text);
}

nlohmann::json Run::report_json(const Ledger& ledger) const {
    nlohmann::json report = ledger_json(ledger);
    report["seconds"] = seconds_;
    report["machine"] = machine_json(options_);
    report["config"] = config_json(options_.config);
    report["plan"] = plan_json(plan_);
    report["stopped_by"] = stop_reason_;
    if (writer_ != nullptr) report["path"] = writer_->path().string();
    if (ledger.disk.free_bytes) {
        report["disk"] = {{"free_bytes", *ledger.disk.free_bytes}};
        if (ledger.disk.bytes_per_second) report["disk"]["bytes_per_second"] = *ledger.disk.bytes_per_second;
    }
    return report;
}

/// Empty, or why the run failed and what is left of it.
std::string Run::close_sink(const Ledger& ledger) {
    if (writer_ == nullptr) return {};
    std::string failure;
    if (pipeline_->writer()->failed()) failure = pipeline_->writer()->error();
    const std::filesystem::path hidden = writer_->path();
    try {
        const nlohmann::json report = report_json(ledger);
        nlohmann::json manifest = {{"ledger", ledger_json(ledger)}};
        for (const char* key : {"config", "machine", "plan", "seconds", "stopped_by"}) manifest[key] = report[key];
        writer_->close(manifest);
    } catch (const core::RunError& error) {
        if (failure.empty()) failure = error.what();
    }
    if (failure.empty()) return {};
    failure += fmt::format(". {} events are on the disk, {} are lost", ledger.get(core::EventCounter::written),
                           ledger.get(core::EventCounter::dropped_write_error));
    std::error_code error;
    if (writer_->path() == hidden && std::filesystem::exists(hidden, error))
        failure += fmt::format("; the run could not be closed: `weir inspect {}` reads what is there", hidden.string());
    return failure;
}

int Run::finish() {
    const Ledger ledger = collect(*pipeline_);
    const std::string failure = close_sink(ledger);
    nlohmann::json report = report_json(ledger);
    if (!failure.empty()) report["error"] = failure;
    if (pipeline_->capture() != nullptr)
        for (const std::string& warning : pipeline_->capture()->warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
            warnings_.push_back(warning);
        }
    if (!warnings_.empty()) report["warnings"] = warnings_;
    if (!options_.quiet) {
        fmt::print("{}", ledger_text(ledger, seconds_));
        if (writer_ != nullptr) fmt::print("written to {}\n", writer_->path().string());
        std::fflush(stdout);
    }
    if (!failure.empty()) fmt::print(stderr, "weir: the run failed: {}\n", failure);
    report_.write(report);  // last: it may be on the same full disk
    if (!failure.empty()) return 1;
    if (!ledger.imbalance().empty()) {
        fmt::print(stderr, "weir: the ledger does not balance ({}); this is a defect of weir, please report it\n",
                   ledger.imbalance());
        return 1;
    }
    if (options_.require_lossless && !ledger.lossless()) {
        fmt::print(stderr, "weir: --require-lossless: the run was not lossless\n");
        return 3;
    }
    return 0;
}

}  // namespace

int execute_run(RunOptions options) {
    return Run(std::move(options)).execute();
}

}  // namespace weir::pipeline
