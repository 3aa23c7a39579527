// See run_recorder.hpp.
#include "observe/run_recorder.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/run_report.hpp"
#include "pipeline/pipeline.hpp"
#include "plan/plan.hpp"

namespace weir::observe {

namespace {

constexpr double look_every_s = 0.05;

double steady_s() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

store::PcapngSection section_of(const std::string& version) {
    utsname kernel{};
    ::uname(&kernel);
    store::PcapngSection section;
    section.hardware = cpu_model();
    section.os = fmt::format("{} {}", kernel.sysname, kernel.release);
    section.application = fmt::format("weir {}", version);
    return section;
}

std::vector<store::PcapngInterface> interfaces_of(const config::RunConfig& config, std::uint32_t snap_bytes,
                                                  bool replay) {
    std::vector<store::PcapngInterface> interfaces;
    for (const config::PortConfig& port : config.ports) {
        store::PcapngInterface interface;
        interface.name = port.name;
        interface.description = replay ? "replayed from a capture" : port.device;
        interface.snap_bytes = snap_bytes;
        interfaces.push_back(interface);
    }
    return interfaces;
}

/// "02:00:00:00:00:01", as DPDK writes it.
std::optional<std::array<std::uint8_t, 6>> mac_of(const std::string& text) {
    std::array<std::uint8_t, 6> mac{};
    const int read = std::sscanf(text.c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
                                 &mac[4], &mac[5]);
    return read == 6 ? std::optional(mac) : std::nullopt;
}

}  // namespace

nlohmann::json recorder_json(const record::Recorder::Status& status) {
    nlohmann::json triggers = nlohmann::json::object();
    for (std::size_t i = 0; i < stages::record_reasons; ++i)
        triggers[name_of(static_cast<stages::RecordTrigger::Reason>(i))] = status.triggers[i];
    triggers["unsaved"] = status.triggers_unsaved;
    nlohmann::json out{{"packets", status.mode == config::RecordMode::all ? "all" : "incomplete"},
                       {"seen", status.seen},
                       {"written", status.written},
                       {"left_out", status.left_out},
                       {"files", status.files},
                       {"bytes", status.bytes},
                       {"paths", status.names},
                       {"triggers", std::move(triggers)},
                       {"memory", status.memory_bytes}};
    if (status.mode == config::RecordMode::incomplete) {
        out["seconds_held"] = status.seconds_held;
        if (status.short_of_memory) out["shortest_seconds"] = status.shortest_seconds;
    }
    if (!status.stopped.empty()) out["stopped"] = status.stopped;
    return out;
}

std::unique_ptr<RunRecorder> RunRecorder::open(const config::RunConfig& config, const plan::Plan& plan,
                                               const Options& options) {
    const auto sink = std::ranges::find_if(config.sinks, &config::SinkConfig::as<config::RecorderConfig>);
    if (sink == config.sinks.end()) return nullptr;
    const config::RecorderConfig& record = *sink->as<config::RecorderConfig>();
    const auto limit = [](std::uint64_t value) { return value == 0 ? UINT64_MAX : value; };
    const bool flight = record.packets == config::RecordMode::incomplete;
    record::Recorder::Config out;
    out.record = record;
    out.files.path = options.path;
    out.files.numbered = flight;
    out.files.files_max = flight ? record.files_max : UINT64_MAX;
    out.files.bytes_max = limit(record.bytes_max);
    out.files.segment_bytes = limit(record.segment_bytes);
    out.files.keep_free = record.keep_free;
    out.files.section = section_of(options.version);
    out.files.interfaces = interfaces_of(config, record.snap_bytes, options.replay);
    out.timeout_ns = config.events.timeout_ms * core::ns_per_ms;
    out.replay = options.replay;
    out.builders = static_cast<std::uint32_t>(plan.build.size());
    for (const std::uint32_t lcore : plan.rx) out.nodes.push_back(plan.memory_node(lcore));
    return std::make_unique<RunRecorder>(std::move(out), *sink, options.say);
}

RunRecorder::RunRecorder(record::Recorder::Config config, const config::SinkConfig& sink, Say say)
    : recorder_(std::move(config)),
      drops_(recorder_.config().record.packets == config::RecordMode::incomplete ? recorder_.config().record.drops : 0),
      on_error_(sink.on_error),
      say_(std::move(say)),
      alarm_(sink.full_warning_seconds) {}

void RunRecorder::starting(const RunMoment& moment) {
    const pipeline::Pipeline& pipeline = moment.pipeline;
    std::vector<store::PcapngInterface> interfaces = recorder_.config().files.interfaces;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const port::LivePort& port = *pipeline.ports()[i];
        interfaces[i].bits_per_second = std::uint64_t{port.link().mbps} * 1'000'000;
        interfaces[i].hardware = port.setup().driver;
        interfaces[i].mac = mac_of(port.setup().mac);
    }
    recorder_.set_interfaces(std::move(interfaces));
    recorder_.start();
}

void RunRecorder::check(const RunMoment& moment) {
    if (const double now_s = steady_s(); now_s - looked_s_ >= look_every_s)
        looked_s_ = now_s;
    else
        return;
    std::vector<record::Recorder::Device> devices;
    for (const auto& port : moment.pipeline.ports()) {
        const port::LivePort::DeviceCounters counters = port->counters();
        const std::uint64_t dropped = counters.missed.value_or(0) + counters.no_buffer.value_or(0);
        const bool known = counters.missed || counters.no_buffer;
        devices.push_back({counters.received + dropped, known ? std::optional(dropped) : std::nullopt});
    }
    if (!devices.empty()) recorder_.set_devices(std::move(devices));
    const record::Recorder::Status status = recorder_.status();
    if (status.newest_ns != 0) {
        const Ledger ledger = collect(moment.pipeline);
        if (const auto lost = drops_.update(status.newest_ns, ledger.lost_packets() + ledger.device_missed)) {
            stages::RecordTrigger trigger;
            trigger.reason = stages::RecordTrigger::Reason::drops;
            trigger.number = *lost;
            recorder_.trigger(trigger);
        }
    }
    warn(status);
    if (looked_s_ - disk_looked_s_ < 1 || !status.stopped.empty()) return;
    disk_looked_s_ = looked_s_;
    std::error_code error;
    const std::filesystem::space_info space =
        std::filesystem::space(recorder_.config().files.path.parent_path(), error);
    const std::uint64_t reserve = recorder_.config().record.keep_free;
    std::optional<std::uint64_t> free;
    if (!error) free = space.available - std::min<std::uint64_t>(space.available, reserve);
    disk_.update(static_cast<core::TimeNs>(looked_s_ * 1e9), status.bytes, free);
    if (alarm_.update(disk_.outlook()))
        say_(fmt::format("the disk will soon be too full to record packets ({})", store::disk_text(disk_.outlook())));
}

void RunRecorder::warn(const record::Recorder::Status& status) {
    if (!status.stopped.empty() && !said_stopped_) {
        said_stopped_ = true;
        say_(fmt::format("no more packets are recorded: {}", status.stopped));
    }
    if (status.left_out > 0 && status.stopped.empty() && !said_left_out_) {
        said_left_out_ = true;
        say_("the recorder cannot keep up: packets are left out of the capture (recorder.left_out), not of the run");
    }
    // Once for a second and more, so that the beginning of a run does not count.
    if (status.mode != config::RecordMode::incomplete || said_short_) return;
    if (copied_ns_ == 0) {
        copied_ns_ = status.newest_ns;
        copied_bytes_ = status.copied_bytes;
    }
    const double seconds = static_cast<double>(status.newest_ns - copied_ns_) * 1e-9;
    if (seconds < 1) return;
    const double rate = static_cast<double>(status.copied_bytes - copied_bytes_) / seconds;
    copied_ns_ = 0;
    const double holds = rate > 0 ? static_cast<double>(status.memory_bytes) / rate : 0;
    if (rate > 0 && holds < recorder_.config().record.seconds) {
        said_short_ = true;
        say_(
            fmt::format("the recorder's memory ({} MiB) holds {:.2g} s at the present rate; {:.4g} s were asked for: "
                        "raise sink.memory, or set snap_bytes",
                        status.memory_bytes >> 20U, holds, recorder_.config().record.seconds));
    }
}

std::string RunRecorder::request() {
    const record::Recorder::Status status = recorder_.status();
    if (!status.stopped.empty()) return fmt::format("nothing is saved any more: {}", status.stopped);
    stages::RecordTrigger trigger;
    trigger.reason = stages::RecordTrigger::Reason::request;
    recorder_.trigger(trigger);
    if (status.mode == config::RecordMode::all) return "all packets are recorded; the next one gets a comment";
    return fmt::format("saving the last {:.3g} s of packets, and {:.4g} s more", status.seconds_held,
                       recorder_.config().record.after);
}

void RunRecorder::ended(const RunMoment& moment) {
    looked_s_ = -1;
    check(moment);
    recorder_.finish();
    warn(recorder_.status());
}

std::string RunRecorder::failure() const {
    const record::Recorder::Status status = recorder_.status();
    return status.failed ? status.stopped : std::string();
}

nlohmann::json RunRecorder::json() const {
    return recorder_json(recorder_.status());
}

std::string RunRecorder::text() const {
    const record::Recorder::Status status = recorder_.status();
    std::string text = fmt::format("recorded  {} of {} packets in {} file{}", status.written, status.seen, status.files,
                                   status.files == 1 ? "" : "s");
    if (status.left_out > 0) text += fmt::format(", {} left out", status.left_out);
    if (!status.names.empty()) text += ": " + status.names.front();
    if (status.names.size() > 1) text += fmt::format(" to {}", status.names.back());
    return text + "\n";
}

}  // namespace weir::observe
