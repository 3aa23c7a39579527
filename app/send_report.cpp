#include "send_report.hpp"

#include <fmt/core.h>

#include <fstream>

#include "core/error.hpp"
#include "core/sha256.hpp"

namespace weir::app {

using nlohmann::json;
using simulate::SimulatedTransport;

json send_report(const SendOptions& options, const simulate::Simulator& simulator,
                 const simulate::PacedSender::Result& run, const simulate::FrameTarget& target) {
    const simulate::SimulatorConfig& config = simulator.config();
    const simulate::SimulatorAccount& account = simulator.account();
    const std::uint64_t lost = target.lost();
    const simulate::NetworkErrors errors = target.network_errors();
    const simulate::SimulatorAccount::Source total = account.total();
    const double seconds = run.seconds > 0 ? run.seconds : 1e-9;
    const bool roce = config.transport != SimulatedTransport::udp;
    json report;
    report["packets"] = {{"generated", total.generated},
                         {"dropped", total.dropped},
                         {"duplicated", total.duplicated},
                         {"truncated", total.truncated},
                         {"corrupted", total.corrupted},
                         {"refused", run.refused},
                         {"lost_by_target", lost},
                         {"sent", total.emitted - run.refused},
                         {"handed_over", total.emitted - run.refused - lost}};
    report["bytes"] = {{"frames", total.frame_bytes}, {"messages", account.message_bytes}};
    report["events"] = {{"first", config.first_event},   {"sent", account.events},
                        {"whole", account.events_whole}, {"damaged", account.events_damaged},
                        {"empty", account.events_empty}, {"known_received", nullptr}};  // nobody acknowledges them
    report["network_errors"] = {
        {"host_unreachable", errors.host}, {"port_unreachable", errors.port}, {"by", errors.by}};
    report["seconds"] = run.seconds;
    report["clock"] = options.live() ? "real" : "stamps";
    report["interrupted"] = run.interrupted;
    report["asked"] = {{"events_per_s", options.pace.events_per_s}, {"gbps", options.pace.gbps}};
    report["reached"] = {{"events_per_s", static_cast<double>(account.events) / seconds},
                         {"packets_per_s", static_cast<double>(total.emitted) / seconds},
                         {"gbps", static_cast<double>(total.frame_bytes) * 8e-9 / seconds}};
    report["schedule"] = {{"lag_ms_max", static_cast<double>(run.pacer.lag_ns_max()) * 1e-6},
                          {"slipped_ms", static_cast<double>(run.pacer.slipped_ns()) * 1e-6}};
    for (std::uint32_t id = 0; id < config.sources; ++id) {
        const simulate::SimulatorAccount::Source& source = account.sources[id];
        report["sources"].push_back({{"id", id},
                                     {roce ? "qp" : "port", simulator.endpoint(id)},
                                     {"generated", source.generated},
                                     {"dropped", source.dropped},
                                     {"duplicated", source.duplicated},
                                     {"truncated", source.truncated},
                                     {"corrupted", source.corrupted},
                                     {"emitted", source.emitted},
                                     {"bytes", source.frame_bytes}});
    }
    report["config"] = {{"to", options.to},
                        {"seed", config.seed},
                        {"sources", config.sources},
                        {"mtu", config.mtu},
                        {"reorder", config.reorder}};
    return report;
}

namespace {

/// Of one queue pair, or of all.
json messages_of(const roce::Initiator::Account& account) {
    return {{"posted", account.posted}, {"acknowledged", account.acknowledged}, {"failed", account.failed}};
}

json recovery_of(const simulate::RcSender::Source& source) {
    const roce::Initiator::Account& account = source.account;
    return {{"retransmitted", account.retransmitted},
            {"timeouts", account.timeouts},
            {"sequence_naks", account.sequence_naks},
            {"rnr_waits", account.rnr_waits},
            {"fatal_naks", account.fatal_naks},
            {"credit_waits", account.credit_waits},
            {"answers", source.answers},
            {"answers_dropped", source.answers_dropped},
            {"stale_answers", account.stale_answers},
            {"ghost_answers", account.ghost_answers},
            {"notifications", source.notifications}};
}

/// [first, last] of `count` events from `first` on; nothing if there is none.
json range_of(std::uint64_t first, std::uint64_t count) {
    return count == 0 ? json::array() : json::array({first, first + count - 1});
}

json packets_of(const simulate::RcSender::Source& source) {
    return {{"generated", source.account.packets}, {"dropped", source.dropped},     {"duplicated", source.duplicated},
            {"truncated", source.truncated},       {"corrupted", source.corrupted}, {"emitted", source.emitted},
            {"bytes", source.frame_bytes}};
}

/// What `weir inspect --digest sha256` says of an event that is complete.
std::string digest_of(simulate::Simulator& simulator, std::uint64_t event) {
    core::Sha256 digest;
    std::vector<std::byte> content;
    for (std::uint32_t source = 0; source < simulator.config().sources; ++source) {
        content.resize(simulator.message_bytes(event, source));
        simulator.message_content(event, source, 0, content);
        digest.update(content);
    }
    return digest.hex();
}

}  // namespace

json rc_send_report(const SendOptions& options, simulate::Simulator& simulator, const simulate::RcSender::Result& run,
                    std::uint64_t lost) {
    const simulate::SimulatorConfig& config = simulator.config();
    const simulate::RcSender::Source total = run.total();
    const double seconds = run.seconds > 0 ? run.seconds : 1e-9;
    const std::uint64_t packets = total.account.packets;
    json report;
    report["packets"] = {
        {"generated", packets},         {"dropped", total.dropped},     {"duplicated", total.duplicated},
        {"truncated", total.truncated}, {"corrupted", total.corrupted}, {"refused", 0},
        {"lost_by_target", lost},       {"sent", total.emitted},        {"handed_over", total.emitted - lost}};
    report["bytes"] = {{"frames", total.frame_bytes}, {"messages", run.message_bytes}};
    report["events"] = {{"first", config.first_event},
                        {"sent", run.events},
                        {"whole", run.events_acknowledged},
                        {"acknowledged", range_of(config.first_event, run.events_acknowledged)},
                        {"known_received", run.events_acknowledged},
                        {"damaged", run.events - run.events_acknowledged}};
    report["messages"] = messages_of(total.account);
    report["recovery"] = recovery_of(total);
    report["recovery"]["bad_answers"] = run.bad_answers;
    report["recovery"]["stray_answers"] = run.stray_answers;
    if (run.stray_answers > 0) report["recovery"]["stray_qp"] = run.stray_qp;
    report["other_frames"] = run.other_frames;
    report["seconds"] = run.seconds;
    report["cpu_seconds"] = run.cpu_seconds;
    report["clock"] = "real";
    report["interrupted"] = run.interrupted;
    report["asked"] = {{"events_per_s", options.pace.events_per_s}, {"gbps", options.pace.gbps}};
    report["reached"] = {{"events_per_s", static_cast<double>(run.events_acknowledged) / seconds},
                         {"packets_per_s", static_cast<double>(total.emitted) / seconds},
                         {"gbps", static_cast<double>(total.frame_bytes) * 8e-9 / seconds}};
    report["schedule"] = {{"lag_ms_max", static_cast<double>(run.pacer.lag_ns_max()) * 1e-6},
                          {"slipped_ms", static_cast<double>(run.pacer.slipped_ns()) * 1e-6}};
    for (std::uint32_t id = 0; id < config.sources; ++id) {
        const simulate::RcSender::Source& source = run.sources[id];
        json one = packets_of(source);
        one.update(
            {{"id", id},
             {"qp", simulator.endpoint(id)},
             {"local_qp", run.local_qp + id},
             {"next_psn", source.next_psn},
             {"messages", messages_of(source.account)},
             {"acknowledged", range_of(config.first_event, source.acknowledged / simulator.messages_per_event())},
             {"failed_by", source.status == roce::SendStatus::acknowledged ? "" : to_string(source.status)},
             {"recovery", recovery_of(source)}});
        report["sources"].push_back(one);
    }
    if (options.digests)
        for (std::uint64_t event = config.first_event; event < config.first_event + run.events_acknowledged; ++event)
            report["digests"][std::to_string(event)] = digest_of(simulator, event);
    report["config"] = {{"to", options.to},
                        {"seed", config.seed},
                        {"sources", config.sources},
                        {"mtu", config.mtu},
                        {"reorder", config.reorder}};
    return report;
}

namespace {

void print_messages(const json& report) {
    const json& messages = report["messages"];
    const json& recovery = report["recovery"];
    fmt::print("  messages: {} sent, {} acknowledged, {} failed; {} events acknowledged\n",
               messages["posted"].get<std::uint64_t>(), messages["acknowledged"].get<std::uint64_t>(),
               messages["failed"].get<std::uint64_t>(), report["events"]["whole"].get<std::uint64_t>());
    fmt::print("  packets sent again: {}; time-outs {}, sequence NAKs {}, waits for a receiver that was not ready {}\n",
               recovery["retransmitted"].get<std::uint64_t>(), recovery["timeouts"].get<std::uint64_t>(),
               recovery["sequence_naks"].get<std::uint64_t>(), recovery["rnr_waits"].get<std::uint64_t>());
    if (const auto strays = recovery["stray_answers"].get<std::uint64_t>(); strays > 0)
        fmt::print(
            "  {} ANSWERS CAME FOR QUEUE PAIR {:#x}, which nobody has here: ours begin with {:#x}. "
            "Correct `peer` of the receiver, or --local-qp\n",
            strays, recovery["stray_qp"].get<std::uint32_t>(), report["sources"][0]["local_qp"].get<std::uint32_t>());
    for (const json& source : report["sources"])
        if (const std::string why = source["failed_by"]; !why.empty())
            fmt::print("  QUEUE PAIR {:#x} FAILED: {} after {} messages\n", source["qp"].get<std::uint32_t>(), why,
                       source["messages"]["acknowledged"].get<std::uint64_t>());
}

/// What was handed over, and that this is all that is known.
void print_events(const json& report) {
    const json& events = report["events"];
    const bool live = report["clock"] == "real";
    fmt::print("  events: {} whole{}, {} damaged on purpose ({} of them empty)\n", events["whole"].get<std::uint64_t>(),
               live ? " when handed over" : "", events["damaged"].get<std::uint64_t>(),
               events["empty"].get<std::uint64_t>());
    if (live)
        fmt::print("  received: not known, because nobody acknowledges such packets: the receiver's report says it\n");
    const json& errors = report["network_errors"];
    const auto host = errors["host_unreachable"].get<std::uint64_t>();
    const auto port = errors["port_unreachable"].get<std::uint64_t>();
    if (host > 0)
        fmt::print("  NOT RECEIVED: {} says at least {} times that the host cannot be reached\n",
                   errors["by"].get<std::string>(), host);
    if (port > 0)
        fmt::print(
            "  {} says at least {} times that no socket is at the port: "
            "right where weir takes the packets before the kernel (af_packet, AF_XDP), "
            "otherwise they were NOT RECEIVED\n",
            errors["by"].get<std::string>(), port);
}

}  // namespace

void print_send_summary(const json& report) {
    const json& packets = report["packets"];
    const json& events = report["events"];
    fmt::print("sent {} packets of {} events in {:.3f} s{}\n", packets["sent"].get<std::uint64_t>(),
               events["sent"].get<std::uint64_t>(), report["seconds"].get<double>(),
               report["clock"] == "stamps" ? " (as the capture's time stamps say)" : "");
    fmt::print("  {:.1f} events/s, {:.0f} packets/s, {:.3f} Gb/s of frames\n",
               report["reached"]["events_per_s"].get<double>(), report["reached"]["packets_per_s"].get<double>(),
               report["reached"]["gbps"].get<double>());
    fmt::print("  generated {} - dropped {} + duplicated {} = {}; {} of them truncated\n",
               packets["generated"].get<std::uint64_t>(), packets["dropped"].get<std::uint64_t>(),
               packets["duplicated"].get<std::uint64_t>(),
               packets["sent"].get<std::uint64_t>() + packets["refused"].get<std::uint64_t>(),
               packets["truncated"].get<std::uint64_t>());
    if (report.contains("messages"))
        print_messages(report);
    else
        print_events(report);
    if (packets["refused"] != 0 || packets["lost_by_target"] != 0) {
        fmt::print("  NOT SENT: {} refused by the target, {} lost by it\n", packets["refused"].get<std::uint64_t>(),
                   packets["lost_by_target"].get<std::uint64_t>());
    }
    const double slipped_ms = report["schedule"]["slipped_ms"];
    constexpr double tolerated = 0.005;  // of the run; the report has it in any case
    if (slipped_ms * 1e-3 > tolerated * report["seconds"].get<double>()) {
        const double rate = report["asked"]["events_per_s"];
        const std::string asked =
            rate > 0 ? fmt::format("{:g} events/s, sent {:.1f}", rate, report["reached"]["events_per_s"].get<double>())
                     : fmt::format("{:g} Gb/s, sent {:.3f}", report["asked"]["gbps"].get<double>(),
                                   report["reached"]["gbps"].get<double>());
        fmt::print("  THE SENDER FELL BEHIND: asked {}; up to {:.1f} ms late, {:.1f} ms never caught up\n", asked,
                   report["schedule"]["lag_ms_max"].get<double>(), slipped_ms);
    }
}

void write_send_report(const std::string& path, const json& report) {
    std::ofstream file(path);
    file << report.dump(2) << '\n';
    if (!file.flush()) {
        throw core::RunError(fmt::format("send: cannot write the report {}", path));
    }
}

}  // namespace weir::app
