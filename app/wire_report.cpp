#include "wire_report.hpp"

#include <fmt/core.h>

#include <bit>

#include "core/latency_histogram.hpp"
#include "version.hpp"

namespace weir::app {

using nlohmann::json;
using resend::Resender;
using resend::TimedSender;

namespace {

/// [from, to, packets] for each power of two in which there are any: from <= ns < to.
json power_of_two_buckets(const core::LatencyHistogram& histogram) {
    std::array<std::uint64_t, 64> counts{};
    for (std::size_t bucket = 0; bucket < core::LatencyHistogram::buckets; ++bucket)
        counts[std::bit_width(core::LatencyHistogram::end_of(bucket))] += histogram.count(bucket);
    json rows = json::array();
    for (std::size_t power = 0; power < counts.size(); ++power)
        if (counts[power] > 0)
            rows.push_back(
                {power == 0 ? 0 : std::uint64_t{1} << (power - 1), std::uint64_t{1} << power, counts[power]});
    return rows;
}

/// Null without a pace: nothing was due at any time.
json timing_json(const TimedSender::Result& timing, bool paced) {
    if (!paced) return nullptr;
    core::Latencies late;
    late.add(timing.late_ns);
    return {{"error_ns",
             {{"min", timing.late_ns_min},
              {"median", late.quantile_ns(0.5)},
              {"p99", late.quantile_ns(0.99)},
              {"p99.9", late.quantile_ns(0.999)},
              {"max", late.longest_ns()}}},
            {"histogram_ns", power_of_two_buckets(timing.late_ns)},
            {"over_1ms", timing.late_over_1ms},
            {"last_error_ns", timing.last_late_ns}};
}

json wait_json(const TimedSender::Wait& wait) {
    return {{"times", wait.times}, {"seconds", static_cast<double>(wait.ns) * 1e-9}};
}

json not_sent_json(const Resender::Account& account) {
    json object = json::object();
    for (std::size_t i = 0; i < account.not_sent.size(); ++i)
        object[std::string(resend::not_sent_reasons[i].name)] = account.not_sent[i];
    return object;
}

json rewritten_json(const resend::ReadAhead::RewriteCounts& counts) {
    return {{"changed", counts.changed},
            {"icrc_made_again", counts.icrc},
            {"icrc_left_wrong", counts.icrc_wrong},
            {"unreadable", counts.unreadable}};
}

}  // namespace

json wire_report(const Resender& resender, const Resender::Config& config, const WireRequest& request) {
    const Resender::Account& account = resender.account();
    const TimedSender::Result& timing = resender.timing();
    const simulate::NetworkErrors errors = resender.network_errors();
    const double seconds = static_cast<double>(timing.actual_ns) * 1e-9;
    const double per_second = seconds > 0 ? 1 / seconds : 0;
    const bool paced = config.speed > 0;
    json report;
    report["to"] = request.to;
    report["captures"] = {{"files", config.source.files},
                          {"passes", resender.passes()},
                          {"skipped", account.skipped},
                          {"bytes", account.read_bytes},
                          {"warnings", resender.warnings()}};
    report["packets"] = {{"read", account.read},
                         {"sent", account.sent},
                         {"not_sent", not_sent_json(account)},
                         {"lost_by_target", account.lost_by_target}};
    report["balanced"] = account.balanced();
    report["bytes"] = {{"sent", account.sent_bytes}, {"of", config.to.is_socket() ? "payload" : "frames"}};
    report["network_errors"] = {{"host_unreachable", errors.host}, {"port_unreachable", errors.port}};
    report["rewritten"] =
        request.rewrite.empty() || config.to.is_socket() ? json() : rewritten_json(resender.rewritten());
    report["pace"] = request.pace;
    report["seconds"] = {{"intended", paced ? json(static_cast<double>(timing.intended_ns) * 1e-9) : json()},
                         {"actual", seconds}};
    report["rate"] = {{"packets_per_s", static_cast<double>(account.sent) * per_second},
                      {"gbps", static_cast<double>(account.sent_bytes) * 8e-9 * per_second}};
    report["timing"] = timing_json(timing, paced);
    report["waited"] = {{"for_file", wait_json(timing.for_file)}, {"for_target", wait_json(timing.for_target)}};
    report["way_opened_after_s"] = static_cast<double>(timing.settled_ns) * 1e-9;
    report["interrupted"] = timing.interrupted;
    report["error"] = timing.error.empty() ? json() : json(timing.error);
    report["version"] = version();
    return report;
}

namespace {

std::string duration_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} us", ns * 1e-3);
    if (ns < 1e9) return fmt::format("{:.2f} ms", ns * 1e-6);
    return fmt::format("{:.3f} s", ns * 1e-9);
}

void print_not_sent(const json& packets) {
    std::string lines;
    std::uint64_t all = 0;
    for (const resend::NotSentReason& reason : resend::not_sent_reasons) {
        const auto count = packets["not_sent"][std::string(reason.name)].get<std::uint64_t>();
        all += count;
        if (count > 0) lines += fmt::format("    {} {}: {}\n", reason.name, count, reason.why);
    }
    fmt::print("  read {} = sent {} + not sent {}\n{}", packets["read"].get<std::uint64_t>(),
               packets["sent"].get<std::uint64_t>(), all, lines);
    if (const auto lost = packets["lost_by_target"].get<std::uint64_t>(); lost > 0)
        fmt::print("  LOST BY THE TARGET: {} of those sent\n", lost);
}

/// Whose fault it was that packets went out more than a millisecond late.
void print_lateness(const json& report) {
    const json& timing = report["timing"];
    const auto late = timing["over_1ms"].get<std::uint64_t>();
    if (late == 0) return;
    const double file_s = report["waited"]["for_file"]["seconds"];
    const double target_s = report["waited"]["for_target"]["seconds"];
    constexpr double noticed_s = 1e-3;
    std::string why;
    if (file_s > noticed_s) why += fmt::format("; it waited {:.3f} s for the capture to be read", file_s);
    if (target_s > noticed_s) why += fmt::format("; it waited {:.3f} s for the target to take packets", target_s);
    if (why.empty())
        why = "; neither file nor target held it up: it lacked the CPU, or the pace is more than it can do";
    fmt::print("  THE SENDER FELL BEHIND: {} packets were more than 1 ms late, the last one {}{}\n", late,
               duration_text(timing["last_error_ns"].get<double>()), why);
}

void print_timing(const json& report) {
    const json& timing = report["timing"];
    if (timing.is_null()) return;
    const json& error = timing["error_ns"];
    const auto text = [&](const char* key) { return duration_text(error[key].get<double>()); };
    fmt::print("  after their time: median {}, 99 % within {}, 99.9 % within {}, at most {}\n", text("median"),
               text("p99"), text("p99.9"), text("max"));
    print_lateness(report);
}

void print_rewritten(const json& rewritten) {
    if (rewritten.is_null()) return;
    fmt::print("  rewritten: {} packets", rewritten["changed"].get<std::uint64_t>());
    if (const auto icrc = rewritten["icrc_made_again"].get<std::uint64_t>(); icrc > 0)
        fmt::print(", the iCRC of {} made again", icrc);
    if (const auto wrong = rewritten["icrc_left_wrong"].get<std::uint64_t>(); wrong > 0)
        fmt::print(", {} with an iCRC that was wrong before", wrong);
    if (const auto unreadable = rewritten["unreadable"].get<std::uint64_t>(); unreadable > 0)
        fmt::print(", {} with IP headers that contradict themselves: only MAC addresses", unreadable);
    fmt::print("\n");
}

}  // namespace

void print_wire_summary(const json& report) {
    const json& seconds = report["seconds"];
    fmt::print("sent {} packets to {} in {:.3f} s", report["packets"]["sent"].get<std::uint64_t>(),
               report["to"].get<std::string>(), seconds["actual"].get<double>());
    if (!seconds["intended"].is_null()) fmt::print(", intended {:.3f} s", seconds["intended"].get<double>());
    fmt::print("{}\n", report["interrupted"].get<bool>() ? " (interrupted)" : "");
    fmt::print("  {:.0f} packets/s, {:.3f} Gb/s of {}\n", report["rate"]["packets_per_s"].get<double>(),
               report["rate"]["gbps"].get<double>(), report["bytes"]["of"].get<std::string>());
    print_not_sent(report["packets"]);
    print_timing(report);
    print_rewritten(report["rewritten"]);
    const json& errors = report["network_errors"];
    if (const auto host = errors["host_unreachable"].get<std::uint64_t>(); host > 0)
        fmt::print("  NOT RECEIVED: the network says at least {} times that the host cannot be reached\n", host);
    if (const auto port = errors["port_unreachable"].get<std::uint64_t>(); port > 0)
        fmt::print(
            "  the host says at least {} times that no socket is at the port: right where weir takes the packets before "
            "the kernel (af_packet, AF_XDP), otherwise they were NOT RECEIVED\n",
            port);
}

}  // namespace weir::app
