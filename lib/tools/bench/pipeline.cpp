#include "bench/pipeline.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/control_connection.hpp"
#include "config/device_facts.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

using nlohmann::json;

constexpr double start_patience_s = 20;
constexpr double end_patience_s = 20;
// A packet that the kernel still has is taken within this.
constexpr auto drain = std::chrono::milliseconds(150);
constexpr std::uint16_t udp_port = 19522;  // EJFAT's
constexpr std::uint32_t first_qp = 0x11;

bool is_roce(const PipelineKind& kind) {
    return kind.transport != "udp";
}

std::uint64_t message_bytes(const PipelineKind& kind, const PacketPlan& plan) {
    return std::uint64_t{plan.packets} * (is_roce(kind) ? plan.bytes : plan.payload_bytes());
}

/// A port or a queue pair for each source, as weir send numbers them.
std::string numbered(std::uint32_t first, std::uint32_t count, std::string_view pattern) {
    std::string list;
    for (std::uint32_t i = 0; i < count; ++i)
        list += (i > 0 ? ", " : "") + fmt::format(fmt::runtime(pattern), first + i);
    return list;
}

std::string stream_of(const PipelineKind& kind, std::uint32_t sources) {
    if (!is_roce(kind))
        return fmt::format("transport = \"udp\"\nudp_dst = [{}]\nformat = \"ejfat\"\n",
                           numbered(udp_port, sources, "{}"));
    return fmt::format(
        "transport = \"roce\"\nqp = [{}]\nformat = \"message\"\nevent = \"immediate\"\nservice = \"{}\"\n"
        "region = {{ va = 0x10000000, bytes = \"16MiB\", rkey = 0x1234, count = {}, stride = 0x10000000 }}\n{}",
        numbered(first_qp, sources, "{}"), kind.service, sources,
        kind.service == "rc" ? fmt::format("peer = [{}]\n", numbered(first_qp, sources, "{{ qp = {} }}")) : "");
}

json read_report(const std::string& path) {
    std::ifstream file(path);
    json report = json::parse(file, nullptr, false);
    if (report.is_discarded()) throw core::RunError(fmt::format("{}: no report", path));
    return report;
}

std::uint64_t sum_of(const json& counts) {
    std::uint64_t sum = 0;
    for (const json& count : counts) sum += count.get<std::uint64_t>();
    return sum;
}

std::vector<std::string> send_arguments(const PipelineKind& kind, const PacketPlan& plan, const std::string& device,
                                        const Endpoint& to) {
    const std::string bytes = std::to_string(message_bytes(kind, plan));
    std::vector<std::string> words{
        "send",    "--sources", std::to_string(plan.sources), "--bytes",  bytes,     "--bytes-min", bytes,
        "--quiet", "--to",      "device:" + device,           "--dst-ip", to.address};
    const auto add = [&words](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (is_roce(kind))
        add({"--format", "message", "--transport", std::string(kind.transport), "--service", std::string(kind.service),
             "--mtu", std::to_string(plan.bytes)});
    else
        add({"--format", "ejfat", "--mtu", std::to_string(plan.bytes + pipeline_headers(kind))});
    if (kind.service == "rc") add({"--depth", "64", "--window", "256", "--retry", "100"});
    return words;
}

void add_faults(const SenderFaults& faults, std::vector<std::string>& words) {
    if (!faults.any()) return;
    words.insert(words.end(),
                 {"--drop", fmt::format("{:g}", faults.drop), "--duplicate", fmt::format("{:g}", faults.duplicate),
                  "--reorder", std::to_string(faults.reorder), "--seed", std::to_string(faults.seed)});
}

/// Runs it to its end; its report, and what it took of the CPUs.
json run_sender(std::vector<std::string> arguments, const StopSigns& stop, double patience_s, double& cpu_s) {
    const ScratchFolder folder;
    arguments.insert(arguments.end(), {"--report", folder.file("sent.json")});
    ChildProcess sender(arguments, folder.file("said"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
    while (!sender.wait(0.02)) {
        if (stop || std::chrono::steady_clock::now() > end) sender.signal(SIGINT);
        if (std::chrono::steady_clock::now() > end + std::chrono::seconds(5)) sender.signal(SIGKILL);
    }
    cpu_s = sender.cpu_s();
    if (*sender.status() != 0 && !stop)
        throw RefusedError(fmt::format("weir send: exit status {}: {}", *sender.status(), sender.said()));
    return stop ? json() : read_report(folder.file("sent.json"));
}

}  // namespace

ScratchFolder::ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw core::RunError(fmt::format("{}: cannot be made", name));
    path_ = name;
}

ScratchFolder::~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
}

std::uint32_t pipeline_headers(const PipelineKind& kind) {
    // IPv4 and UDP; with RoCE the BTH, the longest extended header (RETH) with immediate data, padding and the iCRC.
    return is_roce(kind) ? 20 + 8 + 12 + 16 + 4 + 4 + 4 : 20 + 8;
}

std::string pipeline_problem(const PipelineKind& kind, std::uint32_t bytes) {
    if (!is_roce(kind) || (bytes >= 256 && bytes <= 4096 && std::has_single_bit(bytes))) return {};
    return fmt::format("RoCE packets carry 256, 512, 1024, 2048 or 4096 bytes, not {}", bytes);
}

std::string pipeline_config(const PipelineKind& kind, const ReceiverSpec& spec, const TrialSpec& trial,
                            const std::string& out) {
    const std::uint32_t mtu = std::max(1500U, trial.plan.bytes + pipeline_headers(kind));
    const std::string device = config::with_frame_room(
        spec.device.empty() ? "net_af_packet0,iface=" + spec.interface + ",framecnt=4096" : spec.device, mtu);
    const std::string sink =
        trial.depth == Depth::full
            ? fmt::format("[[reduce]]\nkind = \"zstd\"\n[[sink]]\nkind = \"events\"\npath = \"{}\"\n", out)
            : std::string("[[sink]]\nkind = \"null\"\n");
    std::string config = fmt::format(
        "name = \"bench\"\n[[port]]\nname = \"link\"\ndevice = \"{}\"\nmtu = {}\naddress = \"{}/24\"\n[[stream]]\nport = "
        "\"link\"\n{}max_message_bytes = \"16MiB\"\n[events]\nsources = {}\nmemory = \"512MiB\"\ntimeout_ms = 1000\n{}",
        device, mtu, spec.address, stream_of(kind, trial.plan.sources), trial.plan.sources, sink);
    if (spec.cpu)
        config += fmt::format("[lcores]\nrx = [{0}]\nbuild = [{0}]\nwork = [{0}]\nidle = \"spin\"\n", *spec.cpu);
    return config;
}

PipelineReceiving::PipelineReceiving(const PipelineKind& kind, const ReceiverSpec& spec, const TrialSpec& trial)
    : spec_(spec),
      trial_(trial),
      before_(interface_counters(spec.interface)),
      run_(
          [&] {
              std::ofstream(folder_.file("run.toml")) << pipeline_config(kind, spec, trial, folder_.file("run"));
              return std::vector<std::string>{
                  "run",          "--config", folder_.file("run.toml"), "--report", folder_.file("report.json"),
                  "--allow-empty"};
          }(),
          folder_.file("said")) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(start_patience_s);
    while (run_.said().find("running") == std::string::npos) {
        if (run_.status() || std::chrono::steady_clock::now() > end)
            throw core::RunError(fmt::format("weir run did not start: {}", run_.said()));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    cpu_before_s_ = run_.cpu_s();
}

Receiving::Outcome PipelineReceiving::end() {
    std::this_thread::sleep_for(drain);
    const double cpu_s = run_.cpu_s() - cpu_before_s_;
    run_.signal(SIGINT);
    const std::optional<int> status = run_.wait(end_patience_s);
    if (!status || *status != 0) throw core::RunError(fmt::format("weir run failed: {}", run_.said()));
    Receiving::Outcome outcome;
    outcome.counts = counts_of_run(read_report(folder_.file("report.json")), trial_);
    outcome.counts.cpu_s = cpu_s;
    const auto after = interface_counters(spec_.interface);
    if (before_ && after) outcome.counts.arrived = after->received - before_->received;
    return outcome;
}

ReceiverCounts counts_of_run(const json& report, const TrialSpec& trial) {
    try {
        const json& packets = report.at("packets");
        ReceiverCounts counts;
        counts.others = sum_of(packets.at("not_for_us")) + packets.at("unsteered").get<std::uint64_t>();
        counts.taken = packets.at("received").get<std::uint64_t>() - counts.others;
        counts.received = packets.at("placed");
        counts.duplicates = packets.at("dropped").at("duplicate");
        counts.messages = report.at("events").at("complete");
        counts.assembled = counts.messages * trial.plan.event_packets();
        if (const json& missed = report.at("device_missed"); missed.is_number()) counts.kernel_dropped = missed;
        if (!report.at("balanced").get<bool>()) throw core::RunError("the account of weir run does not balance");
        return counts;
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the report of weir run: {}", error.what()));
    }
}

SenderCounts send_by_weir(const PipelineKind& kind, const PacketPlan& plan, const Load& load, const std::string& device,
                          const Endpoint& to, const SenderFaults& faults, const StopSigns& stop) {
    SenderCounts counts;
    counts.intended = load.packets(plan);
    counts.planned_s = load.unpaced ? load.seconds : static_cast<double>(counts.intended) / load.packets_per_s;
    std::vector<std::string> arguments = send_arguments(kind, plan, device, to);
    if (load.unpaced)
        arguments.insert(arguments.end(), {"--duration", fmt::format("{:g}", load.seconds)});
    else
        arguments.insert(arguments.end(),
                         {"--events", std::to_string(counts.intended / plan.event_packets()), "--rate",
                          fmt::format("{:.9g}", load.packets_per_s / static_cast<double>(plan.event_packets()))});
    add_faults(faults, arguments);
    const json report = run_sender(std::move(arguments), stop, 2 * counts.planned_s + start_patience_s, counts.cpu_s);
    if (report.is_null()) {
        counts.stopped = "the trial was stopped";
        return counts;
    }
    const json& packets = report.at("packets");
    counts.offered = packets.at("generated");
    // A reliable connection generates packets again; they are no more of the load.
    if (const auto recovery = report.find("recovery"); recovery != report.end() && recovery->is_object())
        counts.offered -= recovery->at("retransmitted").get<std::uint64_t>();
    // What it drops on purpose is lost on the way.
    counts.handed_over = std::min<std::uint64_t>(
        counts.offered, packets.at("handed_over").get<std::uint64_t>() + packets.at("dropped").get<std::uint64_t>());
    counts.lag_max_s = report.at("schedule").at("lag_ms_max").get<double>() * 1e-3;
    // The schedule moves when the sender cannot follow it: by so much it took longer.
    counts.took_s = counts.planned_s + report.at("schedule").at("slipped_ms").get<double>() * 1e-3;
    if (load.unpaced) {
        counts.intended = counts.offered;
        counts.planned_s = counts.took_s = report.at("seconds");
    }
    return counts;
}

double ceiling_of_weir(const PipelineKind& kind, const PacketPlan& plan, double seconds, const std::string& device,
                       const Endpoint& to, const StopSigns& stop) {
    std::vector<std::string> arguments = send_arguments(kind, plan, device, to);
    arguments.insert(arguments.end(), {"--duration", fmt::format("{:g}", seconds)});
    double cpu_s = 0;
    const json report = run_sender(std::move(arguments), stop, seconds + start_patience_s, cpu_s);
    return report.is_null() ? 0 : report.at("reached").at("packets_per_s").get<double>();
}

}  // namespace weir::bench
