#include "probe/proposal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>

#include "config/commented.hpp"
#include "config/sinks/events.hpp"
#include "options/text.hpp"

namespace weir::probe {
namespace {

using config::EventBy;
using config::RunConfig;
using config::SourceBy;

constexpr std::uint32_t mtu_usual = 9000;
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

RunConfig run_of(std::span<const FoundStream> streams, const std::string& device) {
    RunConfig run;
    run.name = streams.front().stream.format;
    config::PortConfig port;
    port.name = "det0";
    port.device = device.empty() ? "net_null0" : device;
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

std::string event_remark(std::span<const FoundStream> streams) {
    std::string out;
    for (const FoundStream& found : streams)
        out += fmt::format("{}{} of {} events whole", out.empty() ? "" : "; ", found.complete, found.events);
    return out + " in what was looked at";
}

}  // namespace

std::string propose(const Findings& findings, const std::string& device) {
    const auto end = std::ranges::find_if(findings.streams, [](const auto& found) { return !found.left_out.empty(); });
    const std::span<const FoundStream> streams(findings.streams.begin(), end);
    const RunConfig run = run_of(streams, device);
    const auto remarks = [&](std::string_view table, std::size_t index, std::string_view key) -> std::string {
        if (table == "stream") return key.empty() ? stream_remark(streams[index]) : key_remark(streams[index], key);
        if (table == "format" && key.empty())
            for (const FoundStream& found : streams)
                if (found.spec && found.spec->name == run.formats[index].name && found.basis == Basis::guess)
                    return "A GUESS, from what is constant and what counts in the packets: compare it with the "
                           "detector's manual.";
        if (table == "port" && key == "device" && device.empty())
            return "replay ignores it; for a run: the NIC's PCI address, or \"kernel,iface=eth1\"";
        if (table == "events" && key == "sources") return event_remark(streams);
        if (table == "events" && key == "memory") return "for open events; more lets slow sources fall further behind";
        return "";
    };
    std::string text = headline(findings) + config::print_commented(run, remarks) + left_out_text(findings);
    // What is proposed has to be what it says it is.
    const RunConfig back = config::parse_config(text, "proposed.toml");
    if (back.events.sources != back.sources.size() || back.streams.size() != streams.size())
        throw std::logic_error("the proposed configuration does not have the sources that were found");
    return text;
}

}  // namespace weir::probe
