#include "probe/findings_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::probe {
namespace {

double per_second(std::uint64_t count, core::TimeNs from, core::TimeNs to) {
    return to > from ? static_cast<double>(count) * 1e9 / static_cast<double>(to - from) : 0;
}

std::string range(std::uint64_t from, std::uint64_t to) {
    return from == to ? fmt::format("{}", from) : fmt::format("{}..{}", from, to);
}

std::string flows_table(const Findings& findings) {
    constexpr std::size_t shown = 24;
    std::string out = "\nflows\n";
    for (std::size_t i = 0; i < std::min(shown, findings.flows.size()); ++i) {
        const FoundFlow& flow = findings.flows[i];
        std::string extras;
        if (flow.vlan) extras += fmt::format(", VLAN {}", *flow.vlan);
        for (std::size_t tunnel = 0; tunnel < wire::tunnel_count; ++tunnel)
            if (flow.tunnels.has(wire::tunnel_at(tunnel)))
                extras += fmt::format(", in {}", wire::tunnel_counters[tunnel].name);
        if (flow.fragments > 0) extras += fmt::format(", {} IP fragments", flow.fragments);
        if (flow.sports > 1) extras += ", several source ports";
        if (flow.reversed) extras += ", and back";
        out += fmt::format("  {} -> {} port {}: {} datagrams of {} bytes{}: {}\n", flow.src, flow.dst, flow.dport,
                           flow.datagrams, range(flow.payload_min, flow.payload_max), extras,
                           flow.what.empty() ? "nothing that is known" : flow.what);
    }
    if (findings.flows.size() > shown) out += fmt::format("  and {} more\n", findings.flows.size() - shown);
    for (const auto& [name, count] : findings.others) out += fmt::format("  {}: {} packets\n", name, count);
    return out;
}

std::string losses_text(const FoundSource& source) {
    std::string out;
    if (source.messages != source.whole) out += fmt::format(", {} not whole", source.messages - source.whole);
    if (source.missing_packets.value_or(0) > 0) out += fmt::format(", {} packets missing", *source.missing_packets);
    if (source.duplicates > 0) out += fmt::format(", {} packets twice", source.duplicates);
    if (source.disordered > 0) out += fmt::format(", {} out of order", source.disordered);
    return out;
}

std::string numbers_text(const FoundStream& found) {
    if (found.stream.event == config::EventBy::arrival) return "by arrival";
    std::string out = range(found.numbers.first, found.numbers.last);
    if (found.numbers.distinct < 2) return out;
    if (found.numbers.stride == 0) return out + ", not evenly apart";
    out += fmt::format(", in steps of {}", found.numbers.stride);
    if (found.numbers.missing > 0) out += fmt::format(", {} left out", found.numbers.missing);
    return out;
}

std::string stream_text(const FoundStream& found) {
    std::string out =
        fmt::format("\n{}: {}, confidence {:.0f} %{}\n", found.stream.format, basis_text(found.basis),
                    100 * found.confidence, found.left_out.empty() ? "" : "; NOT PROPOSED: " + found.left_out);
    for (const std::string& text : found.evidence) out += fmt::format("  + {}\n", text);
    for (const std::string& text : found.doubts) out += fmt::format("  ? {}\n", text);
    out += fmt::format("  {} packets, {:.4g} packets/s, {:.4g} Gb/s on the wire, {:.4g} events/s\n", found.packets,
                       per_second(found.packets, found.first_ns, found.last_ns),
                       per_second(found.bytes * 8, found.first_ns, found.last_ns) * 1e-9,
                       per_second(found.events, found.first_ns, found.last_ns));
    out += fmt::format("  event numbers {}\n", numbers_text(found));
    out += fmt::format("  {} of {} events whole, messages of {} bytes in up to {} packets\n", found.complete,
                       found.events, range(found.message_bytes_min, found.message_bytes_max), found.message_packets);
    if (found.rejected > 0) out += fmt::format("  {} packets that the format refuses\n", found.rejected);
    if (found.control > 0) out += fmt::format("  {} packets without event data (heartbeats, control)\n", found.control);
    constexpr std::size_t shown = 32;
    for (std::size_t i = 0; i < std::min(shown, found.sources.size()); ++i)
        out += fmt::format("  source {} ({}): {} packets, {} messages{}\n", i, found.sources[i].label,
                           found.sources[i].packets, found.sources[i].messages, losses_text(found.sources[i]));
    if (found.sources.size() > shown) out += fmt::format("  and {} more sources\n", found.sources.size() - shown);
    return out;
}

std::string lost_text(const Trial& trial) {
    std::string out;
    for (const auto& [name, count] : trial.lost)
        out += fmt::format("{}{} {}", out.empty() ? "; packets: " : ", ", count, name);
    return out;
}

/// What the proposal does with these packets.
std::string trial_text(const Findings& findings) {
    const Trial& trial = findings.trial;
    if (!findings.recognised()) return "";
    if (!trial.done)
        return trial.why_not.empty() ? "" : fmt::format("\nthe configuration was not tried: {}\n", trial.why_not);
    std::string out = "\nthe configuration, tried on these packets: ";
    if (trial.gives_nothing())
        out += fmt::format("NOTHING COMES OUT WHOLE: of {} events none is complete", trial.events);
    else
        out += fmt::format("{} of {} events whole", trial.complete, trial.events);
    out += lost_text(trial) + "\n";
    if (trial.cut_packets > 0)
        out +=
            fmt::format("their headers say so: of this capture a replay gives less, since {} packets were cut in it\n",
                        trial.cut_packets);
    return out;
}

nlohmann::json stream_json(const FoundStream& found) {
    nlohmann::json stream{{"format", found.stream.format},
                          {"basis", basis_text(found.basis)},
                          {"confidence", found.confidence},
                          {"evidence", found.evidence},
                          {"doubts", found.doubts},
                          {"proposed", found.left_out.empty()},
                          {"left_out", found.left_out},
                          {"packets", found.packets},
                          {"bytes", found.bytes},
                          {"rejected", found.rejected},
                          {"control", found.control},
                          {"events", found.events},
                          {"complete", found.complete},
                          {"event_bytes", found.event_bytes},
                          {"message_packets", found.message_packets},
                          {"packets_per_second", per_second(found.packets, found.first_ns, found.last_ns)},
                          {"gbps", per_second(found.bytes * 8, found.first_ns, found.last_ns) * 1e-9},
                          {"events_per_second", per_second(found.events, found.first_ns, found.last_ns)},
                          {"numbers",
                           {{"first", found.numbers.first},
                            {"last", found.numbers.last},
                            {"distinct", found.numbers.distinct},
                            {"stride", found.numbers.stride},
                            {"missing", found.numbers.missing}}}};
    stream["sources"] = nlohmann::json::array();
    for (const FoundSource& source : found.sources)
        stream["sources"].push_back(
            {{"label", source.label},
             {"packets", source.packets},
             {"bytes", source.bytes},
             {"messages", source.messages},
             {"whole", source.whole},
             {"duplicates", source.duplicates},
             {"disordered", source.disordered},
             {"missing_packets", source.missing_packets ? nlohmann::json(*source.missing_packets) : nlohmann::json()}});
    return stream;
}

nlohmann::json trial_json(const Trial& trial) {
    nlohmann::json out{
        {"done", trial.done},         {"why_not", trial.why_not},         {"events", trial.events},
        {"complete", trial.complete}, {"cut_packets", trial.cut_packets}, {"lost", nlohmann::json::object()}};
    for (const auto& [name, count] : trial.lost) out["lost"][name] = count;
    return out;
}

}  // namespace

std::string findings_text(const Findings& findings) {
    std::string out = fmt::format("{}: {} packets, {} bytes on the wire, {:.4g} s{}\n", findings.input,
                                  findings.packets, findings.bytes, findings.seconds(),
                                  findings.sample_only ? " (there is more; this much is looked at)" : "");
    if (!findings.cut_off.empty()) out += findings.cut_off + "\n";
    out += flows_table(findings);
    for (const FoundStream& found : findings.streams) out += stream_text(found);
    out += trial_text(findings);
    if (!findings.remarks.empty()) out += "\n";
    for (const std::string& remark : findings.remarks) out += remark + "\n";
    if (!findings.recognised())
        out += fmt::format(
            "\n{}: there is no configuration to propose\n",
            findings.streams.empty() ? "nothing was recognised" : "nothing was recognised that gives whole events");
    return out;
}

nlohmann::json findings_json(const Findings& findings) {
    nlohmann::json out{{"input", findings.input},
                       {"sample_only", findings.sample_only},
                       {"cut_off", findings.cut_off},
                       {"packets", findings.packets},
                       {"bytes", findings.bytes},
                       {"seconds", findings.seconds()},
                       {"cut_frames", findings.cut_frames},
                       {"broken_datagrams", findings.broken_datagrams},
                       {"recognised", findings.recognised()},
                       {"remarks", findings.remarks}};
    out["others"] = nlohmann::json::object();
    for (const auto& [name, count] : findings.others) out["others"][name] = count;
    out["flows"] = nlohmann::json::array();
    for (const FoundFlow& flow : findings.flows) {
        out["flows"].push_back({{"src", flow.src},
                                {"dst", flow.dst},
                                {"udp_dst", flow.dport},
                                {"vlan", flow.vlan ? nlohmann::json(*flow.vlan) : nlohmann::json()},
                                {"datagrams", flow.datagrams},
                                {"ip_fragments", flow.fragments},
                                {"payload_bytes", flow.bytes},
                                {"payload_min", flow.payload_min},
                                {"payload_max", flow.payload_max},
                                {"what", flow.what}});
        for (std::size_t i = 0; i < wire::tunnel_count; ++i)
            if (flow.tunnels.has(wire::tunnel_at(i)))
                out["flows"].back()["decapsulated"].push_back(wire::tunnel_counters[i].name);
    }
    out["trial"] = trial_json(findings.trial);
    out["streams"] = nlohmann::json::array();
    for (const FoundStream& found : findings.streams) out["streams"].push_back(stream_json(found));
    return out;
}

}  // namespace weir::probe
