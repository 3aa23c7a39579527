#include "probe/proposal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>

#include "config/commented.hpp"
#include "config/device_facts.hpp"
#include "config/sinks/events.hpp"
#include "options/text.hpp"

namespace weir::probe {
namespace {

using config::EventBy;
using config::RunConfig;
using config::SourceBy;

constexpr std::uint16_t mtu_usual = 9000;
constexpr std::uint64_t mebi = 1U << 20U;

/// Of an event from its first packet to its last, with room for what a busy network adds.
std::uint32_t timeout_ms(core::TimeNs longest_ns) {
    constexpr std::uint32_t usual = 500;
    constexpr core::TimeNs ms = 1'000'000;
    constexpr std::uint64_t longest = 60'000;
    const auto wanted = static_cast<std::uint64_t>(std::max<core::TimeNs>(0, longest_ns) / ms * 4);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_ceil(wanted), usual, longest));
}

/// Of messages whose size is declared.
std::uint32_t message_bytes_of(const FoundStream& found) {
    if (!found.spec) return found.stream.message_bytes.value_or(0);
    return std::max(found.spec->total_bytes.value_or(0),
                    found.spec->packets.value_or(0) * found.spec->payload_bytes.value_or(0));
}

/// What was taken off the packets of the streams.
wire::Tunnels tunnels_of(const Findings& findings) {
    wire::Tunnels out;
    for (const FoundStream& found : findings.streams)
        for (const std::uint32_t flow : found.flows)
            if (found.left_out.empty()) out.add(findings.flows[flow].tunnels);
    return out;
}

/// The one address that everything was sent to, if it is a host's: weir answers for it. Its network is not in packets.
std::string address_of(const Findings& findings) {
    std::set<std::string> all;
    for (const FoundStream& found : findings.streams)
        for (const std::uint32_t flow : found.flows)
            if (found.left_out.empty()) all.insert(findings.flows[flow].dst);
    if (all.size() != 1) return "";
    const auto address = config::parse_ip_address(*all.begin());
    constexpr std::uint8_t groups = 224;  // IPv4 multicast, and above it what is reserved, and broadcast
    constexpr std::uint8_t groups_v6 = 0xff;
    if (!address || address->bytes[0] >= (address->v6 ? groups_v6 : groups) || address->bytes[0] == 0) return "";
    return address->text + (address->v6 ? "/64" : "/24");
}

/// As it has to be for the largest packet of the streams.
std::uint16_t mtu_of(const Findings& findings, const std::string& device) {
    std::uint32_t largest = mtu_usual;
    for (const FoundStream& found : findings.streams)
        for (const std::uint32_t flow : found.flows)
            if (found.left_out.empty()) largest = std::max(largest, findings.flows[flow].ip_bytes_max);
    const auto mtu = static_cast<std::uint16_t>(std::min<std::uint32_t>(largest, 65535));
    return config::frame_room_problem(device, mtu).empty() ? mtu : mtu_usual;
}

RunConfig run_of(const Findings& findings, const std::string& device) {
    const std::span<const FoundStream> streams = std::span(findings.streams).first(findings.proposed());
    RunConfig run;
    run.name = streams.front().stream.format;
    config::PortConfig port;
    port.name = "det0";
    port.device = device.empty() ? "net_null0" : device;
    port.mtu = mtu_of(findings, port.device);
    port.decapsulate = tunnels_of(findings);
    // What a mirror shows was sent to somebody else, and its own packets are larger.
    constexpr std::uint16_t outer_headers = 100;
    if (!device.empty() && port.decapsulate.empty()) port.address = address_of(findings);
    const auto with_headers = static_cast<std::uint16_t>(std::min(port.mtu + outer_headers, 65535));
    if (!port.decapsulate.empty() && config::frame_room_problem(port.device, with_headers).empty())
        port.mtu = with_headers;
    std::uint64_t memory = 256 * mebi;
    std::uint64_t event_bytes = 0;
    std::uint64_t frames = 0;
    core::TimeNs longest = 0;
    run.events.sources = 0;
    std::set<std::string> formats;
    for (const FoundStream& found : streams) {
        run.streams.push_back(found.stream);
        config::StreamConfig& stream = run.streams.back();
        // What the description of the key would fill in.
        if (stream.max_message_bytes == 0)
            stream.max_message_bytes = std::max(wire::message_bytes_max_default, message_bytes_of(found));
        run.events.sources += static_cast<std::uint32_t>(found.sources.size());
        if (found.spec && formats.insert(found.spec->name).second) run.formats.push_back(*found.spec);
        longest = std::max(longest, found.longest_event_ns);
        event_bytes += std::max(found.event_bytes, std::uint64_t{found.stream.max_message_bytes});
        for (const config::RoceConfig::Region& at : found.stream.roce.regions)
            frames += at.region.bytes * at.region.count * (at.qp ? 1 : found.stream.qp.size());
    }
    constexpr std::uint64_t events_open = 16;
    constexpr std::uint64_t memory_most = std::uint64_t{64} << 30U;
    memory = std::max({memory, std::bit_ceil(std::min(event_bytes * events_open, memory_most)),
                       frames == 0 ? 0 : std::bit_ceil(frames * 2)});
    run.events.sources = findings.sources_needed.value_or(run.events.sources);
    run.events.memory_bytes = memory;
    run.events.timeout_ms = timeout_ms(longest);
    run.ports.push_back(port);
    config::SinkConfig sink;
    sink.path = "runs/{name}-{run:06}";
    sink.options = config::EventsSinkConfig{};
    run.sinks.push_back(sink);
    return run;
}

std::string list_of(const std::vector<std::string>& texts, std::string_view head) {
    std::string out;
    for (const std::string& text : texts) out += fmt::format("{}{}\n", head, text);
    return out;
}

std::string stream_remark(const FoundStream& found) {
    std::string out = fmt::format("{}: {}, confidence {:.0f} %\n", found.stream.format, basis_text(found.basis),
                                  100 * found.confidence);
    out += list_of(found.evidence, "- ");
    out += list_of(found.doubts, "- not sure: ");
    return out;
}

std::string sources_remark(const FoundStream& found) {
    std::string out;
    for (const FoundSource& source : found.sources) {
        out += (out.empty() ? "" : ", ") + source.label;
        if (out.size() > 60) return fmt::format("{} sources: {}, ...", found.sources.size(), out);
    }
    return found.sources.size() == 1 ? "one source" : fmt::format("{} sources, in this order", found.sources.size());
}

std::string key_remark(const FoundStream& found, std::string_view key) {
    const SourceBy by = found.stream.source_by;
    const bool udp = found.stream.transport == config::Transport::udp;
    if (key == "udp_dst") return by == SourceBy::port ? sources_remark(found) : "of all sources";
    if (key == "source_by" && udp && by == SourceBy::address) return "what tells the sources apart in these packets";
    if (key == "source_by" && udp && by == SourceBy::header) return "the id in the header tells the sources apart";
    if (key == "source_ids" && by == SourceBy::header) return sources_remark(found);
    if (key == "src" && by == SourceBy::address) return sources_remark(found);
    if (key == "qp") return sources_remark(found);
    if (key == "dst" && !udp) return "queue pair numbers are those of one receiver";
    if (key == "event" && found.stream.event == EventBy::immediate) return "each message brings its event number";
    if (key == "event" && found.stream.event == EventBy::count) return "messages are numbered as they were sent";
    if (key == "event" && found.stream.event == EventBy::arrival) return "each datagram is an event";
    return "";
}

/// The comment at the top: what was looked at.
std::string headline(const Findings& findings) {
    std::string out =
        fmt::format("# Proposed by `weir probe` from {}: {} packets, {:.3g} s{}.\n", findings.input, findings.packets,
                    findings.seconds(), findings.sample_only ? ", the beginning of it" : "");
    return out;
}

/// Streams that are there and not part of the run, as comments.
std::string left_out_text(const Findings& findings) {
    std::string out;
    for (const FoundStream& found : findings.streams) {
        if (found.left_out.empty()) continue;
        out += fmt::format("\n# Not proposed: {} ({}).\n", found.stream.format, found.left_out);
        out += list_of(found.evidence, "#   - ");
        if (found.stream.transport == config::Transport::udp)
            out += fmt::format("#   udp_dst = [{}]\n", fmt::join(found.stream.udp_dst, ", "));
        else
            out += fmt::format("#   qp = [{:#x}]\n", fmt::join(found.stream.qp, ", "));
    }
    return out;
}

std::string event_remark(std::span<const FoundStream> streams, const Trial& trial) {
    if (trial.gives_nothing())
        return fmt::format("tried: NOT ONE of {} events is whole in what was looked at", trial.events);
    if (trial.done)
        return fmt::format("tried: {} of {} events whole in what was looked at{}", trial.complete, trial.events,
                           trial.cut_packets > 0 ? ", by the headers: packets were cut" : "");
    std::string out;
    for (const FoundStream& found : streams)
        out += fmt::format("{}{} of {} events whole", out.empty() ? "" : "; ", found.complete, found.events);
    return out + " in what was looked at";
}

}  // namespace

std::string propose(const Findings& findings, const std::string& device) {
    const std::span<const FoundStream> streams = std::span(findings.streams).first(findings.proposed());
    const RunConfig run = run_of(findings, device);
    const auto remarks = [&](std::string_view table, std::size_t index, std::string_view key) -> std::string {
        if (table == "stream") return key.empty() ? stream_remark(streams[index]) : key_remark(streams[index], key);
        if (table == "format" && key.empty())
            for (const FoundStream& found : streams)
                if (found.spec && found.spec->name == run.formats[index].name && found.basis == Basis::guess)
                    return "A GUESS, from what is constant and what counts in the packets: compare it with the "
                           "detector's manual.";
        if (table == "port" && key == "device" && device.empty())
            return "replay ignores it; for a run: the NIC's PCI address, or \"kernel,iface=eth1\"";
        if (table == "port" && key == "mtu" && run.ports.front().mtu != mtu_usual)
            return run.ports.front().decapsulate.empty() ? "as large as the largest packet here"
                                                         : "with room for what the mirror puts around packets";
        if (table == "port" && key == "decapsulate")
            return "the packets came inside of others. A mirror that needs an address to send to: set `address`";
        if (table == "port" && key == "address" && !run.ports.front().address.empty())
            return "everything was sent to it, and weir answers ARP and ping for it; the prefix length is a guess";
        if (table == "events" && key == "sources") return event_remark(streams, findings.trial);
        if (table == "events" && key == "memory") return "for open events; more lets slow sources fall further behind";
        return "";
    };
    std::string text = headline(findings) + config::print_commented(run, remarks) + left_out_text(findings);
    // What is proposed has to be what it says it is.
    const RunConfig back = config::parse_config(text, "proposed.toml");
    if (back.events.sources != findings.sources_needed.value_or(static_cast<std::uint32_t>(back.sources.size())) ||
        back.streams.size() != streams.size())
        throw std::logic_error("the proposed configuration does not have the sources that were found");
    return text;
}

}  // namespace weir::probe
