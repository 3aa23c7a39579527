#include "pipeline/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "pipeline/seen.hpp"

namespace weir::pipeline {

using core::EventCounter;
using core::PacketCounter;

namespace {

constexpr double nearly_all = 0.9;
constexpr const char* page_of_losses = "docs/LOSSES.md";

/// The findings as they grow, with what several rules need to know.
struct Case {
    const Ledger& ledger;
    const Observations& seen;
    std::vector<Finding> findings;
    std::uint64_t unexplained = 0;  ///< packets that never came and for which no rule has found a reason yet

    void add(std::string counter, std::uint64_t packets, const char* section, std::string sentence, bool loss = true) {
        findings.push_back(
            {std::move(counter), packets, loss, std::move(sentence), fmt::format("{}#{}", page_of_losses, section)});
    }
    [[nodiscard]] std::uint64_t get(PacketCounter counter) const { return ledger.get(counter); }
    [[nodiscard]] std::uint64_t get(EventCounter counter) const { return ledger.get(counter); }
    [[nodiscard]] std::string label(std::size_t source) const {
        const bool known = source < seen.sources.size() && !seen.sources[source].label.empty();
        return known ? fmt::format("source {} ({})", source, seen.sources[source].label)
                     : fmt::format("source {}", source);
    }
    /// ": most often WHAT (N)", or nothing.
    [[nodiscard]] static std::string most(const std::vector<Observations::Count>& counts, const char* words) {
        if (counts.empty()) return "";
        return fmt::format("{}{} ({} packets)", words, counts.front().what, counts.front().packets);
    }
    [[nodiscard]] bool any_port(std::string_view driver) const {
        return std::ranges::any_of(seen.ports, [&](const auto& port) { return port.driver == driver; });
    }
};

std::uint64_t sum_of_sources(const Ledger& ledger) {
    return std::transform_reduce(ledger.sources.begin(), ledger.sources.end(), std::uint64_t{0}, std::plus{},
                                 [](const Ledger::Source& source) { return source.packets; });
}

std::string why_nothing_came(const Observations& seen) {
    std::string down;
    for (const Observations::Port& port : seen.ports)
        if (!port.link_up) down += (down.empty() ? "" : ", ") + port.name;
    if (!down.empty()) return fmt::format("the link of port {} is down", down);
    return "the detector is off, or it sends to another address than this port answers for (the link is up)";
}

void nothing_came(Case& c) {
    if (c.ledger.received > 0) return;
    c.add("device.received", 0, "nothing-came",
          c.seen.replay ? "the capture has no packet" : "no packet came at all: " + why_nothing_came(c.seen));
}

void silent_sources(Case& c) {
    const std::uint64_t all = sum_of_sources(c.ledger);
    if (all == 0 && c.ledger.received > 0)
        c.add("packets.unsteered", 0, "silent-source",
              fmt::format("{} packets came, and none for a configured stream{}{}", c.ledger.received,
                          Case::most(c.seen.strangers, ": most went to "),
                          c.seen.replay ? "" : ". What was seen: " + seen_text(c.ledger, c.seen)));
    if (all == 0) return;
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s) {
        const Ledger::Source& source = c.ledger.sources[s];
        const double silent = s < c.seen.sources.size() ? c.seen.sources[s].silent_s : 0;
        if (source.packets > 0 && silent == 0) continue;
        if (source.packets == 0) {
            const std::uint64_t others = all / std::max<std::size_t>(1, c.ledger.sources.size() - 1);
            c.add("events.incomplete.timeout", source.missing_packets, "silent-source",
                  fmt::format("{} sent nothing, while the others sent {} packets each on average: it is off, or sends "
                              "elsewhere{}",
                              c.label(s), others, Case::most(c.seen.strangers, "; without a stream are packets to ")));
        } else {
            c.add("events.incomplete.timeout", source.missing_packets, "silent-source",
                  fmt::format("{} stopped sending {:.1f} s before the end of the run, while others went on", c.label(s),
                              silent));
        }
        c.unexplained -= std::min(c.unexplained, source.missing_packets);
    }
}

void devices(Case& c) {
    for (const Observations::Port& port : c.seen.ports) {
        const std::uint64_t by_interface = std::min(port.missed, port.missed_by_interface);
        if (by_interface > 0)
            c.add("device.missed", by_interface, "device",
                  fmt::format("the kernel's interface {} of port {} dropped packets before {} could see them: frames "
                              "longer than its MTU, bad ones, or a processor's full backlog (ip -s -s link show {}; "
                              "sysctl net.core.netdev_max_backlog)",
                              port.interface, port.name, port.driver, port.interface));
        if (port.missed > by_interface)
            c.add("device.missed", port.missed - by_interface, "device",
                  fmt::format(
                      "the device of port {} ({}) dropped packets because its receive queue was full: the rx lcore "
                      "did not come back in time",
                      port.name, port.driver));
        if (port.no_buffer > 0)
            c.add(
                "device.no_buffer", port.no_buffer, "device",
                fmt::format("the driver of port {} ({}) found no free packet buffer: memory is held by open events or "
                            "a slow sink",
                            port.name, port.driver));
    }
    c.unexplained -= std::min(c.unexplained, c.ledger.device_missed);
}

/// What never came, by how it is spread over the sources.
void missing(Case& c) {
    if (c.unexplained == 0) return;
    const auto& sources = c.ledger.sources;
    // The silent ones have been named.
    const auto of_active = [](const Ledger::Source& s) { return s.packets > 0 ? s.missing_packets : 0; };
    std::uint64_t missing = 0;
    for (const Ledger::Source& source : sources) missing += of_active(source);
    const auto most = std::ranges::max_element(sources, {}, of_active);
    const auto part = [&](std::uint64_t of) { return static_cast<double>(of) / static_cast<double>(missing); };
    std::string pattern;
    if (missing == 0)
        pattern = "of sources whose message sizes are not known";
    else if (sources.size() == 1)
        pattern = "the only source has gaps: look at its cable, the switch and the sender's own account";
    else if (part(of_active(*most)) >= nearly_all)
        pattern = fmt::format("{} of {} are of {}: look at its cable, its switch port and the board itself",
                              of_active(*most), missing, c.label(static_cast<std::size_t>(most - sources.begin())));
    else if (part(c.ledger.missing_together) >= nearly_all)
        pattern =
            "nearly all of them are of events in which every source misses some: look at what they share, the last "
            "link and the switch in front of it";
    else
        pattern =
            "spread over the sources without a pattern: look for a congested switch, or bit errors that a switch "
            "throws away";
    const bool told =
        !c.ledger.devices.empty() && c.ledger.device_missed == 0 &&
        std::ranges::all_of(c.ledger.devices, [](const auto& device) { return device.missed.has_value(); });
    c.add("events.incomplete.timeout", c.unexplained, "missing",
          fmt::format("packets never came: {}{}", pattern, told ? "; the device reports no loss of its own" : ""));
}

/// Whole events, by the gaps in their numbers.
void numbers(Case& c) {
    if (!c.ledger.numbers || !c.ledger.numbers->why_unknown().empty()) return;
    const std::uint64_t events = c.ledger.numbers->missing();
    if (events == 0) return;
    c.add(
        "events.opened", 0, "numbers",
        fmt::format("nothing came of {} events, numbers {}: the detector skipped them, or everything of them was lost "
                    "before weir (on the way, or while nobody recorded)",
                    events, ranges_text(*c.ledger.numbers)));
}

void late(Case& c) {
    const std::uint64_t count = c.get(PacketCounter::late);
    if (count == 0) return;
    const std::uint64_t evicted = c.get(EventCounter::incomplete_evicted);
    const std::uint64_t timeouts = c.get(EventCounter::incomplete_timeout);
    if (evicted > timeouts) {
        c.add("dropped.late", count, "evicted",
              fmt::format(
                  "packets came after {} events had been evicted to make room (limit: {}; {} open at most), {} only "
                  "timed out",
                  evicted, c.seen.open_limit, c.seen.open_max, timeouts));
        return;
    }
    const auto& sources = c.ledger.sources;
    const auto most = std::ranges::max_element(sources, {}, &Ledger::Source::missing_packets);
    std::string who;
    const std::uint64_t missing = c.ledger.missing_packets();
    if (sources.size() > 1 && missing > 0 &&
        static_cast<double>(most->missing_packets) >= nearly_all * static_cast<double>(missing))
        who = fmt::format(", nearly all of {}, which lags behind the others",
                          c.label(static_cast<std::size_t>(most - sources.begin())));
    c.add("dropped.late", count, "late",
          fmt::format("packets came for events that had left: {} events timed out after {} ms{}", timeouts,
                      c.seen.timeout_ms, who));
}

void evicted(Case& c) {
    const std::uint64_t count = c.get(EventCounter::incomplete_evicted);
    // With late packets behind them, those say it.
    if (count == 0 || c.get(PacketCounter::late) > 0) return;
    c.add("events.incomplete.evicted", c.unexplained, "evicted",
          fmt::format("{} events were evicted incomplete to make room (limit: {}; {} open at most): something keeps "
                      "events open, mostly a source that does not send",
                      count, c.seen.open_limit, c.seen.open_max));
    c.unexplained = 0;
}

/// What kept events from leaving.
std::string slow_part(const Case& c) {
    constexpr double full = 0.9;
    if (c.seen.writer_max >= full) return "the disk was slower than the detector: all output buffers waited for it";
    if (c.seen.queued_max >= full)
        return c.seen.reducer ? "the reducer was slower than the detector: closed events piled up in front of it"
                              : "closed events piled up on their way to the sink";
    if (c.get(EventCounter::incomplete_timeout) > 0)
        return fmt::format("incomplete events held the memory until they timed out after {} ms", c.seen.timeout_ms);
    return "events held all memory";
}

void no_room(Case& c) {
    const std::uint64_t count = c.get(PacketCounter::no_room);
    if (count == 0) return;
    c.add("dropped.no_room", count, "no-room", "packets found no memory: " + slow_part(c));
}

/// Closed events that wait for a worker or the disk hold up new ones, or some are left out on purpose before it comes
/// to that.
void overload(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::queue_full); count > 0)
        c.add("dropped.queue_full", count, "queue-full",
              fmt::format("packets were in {} events that were refused while closed ones waited: {}",
                          c.get(EventCounter::refused_queue_full), slow_part(c)));
    if (const std::uint64_t count = c.get(PacketCounter::prescaled); count > 0)
        c.add("dropped.prescaled", count, "prescaled",
              fmt::format("packets were in {} events that `overload = \"prescale:N\"` left out: {}",
                          c.get(EventCounter::refused_prescaled), slow_part(c)));
}

void geometry(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::malformed_payload_length); count > 0)
        c.add(
            "dropped.malformed.payload_length", count, "geometry",
            fmt::format("packets have a payload of the wrong length{}: the stream's format or geometry is not what the "
                        "detector sends",
                        Case::most(c.seen.wrong_lengths, ", most often ")));
    if (const std::uint64_t count = c.get(PacketCounter::malformed_packet_number); count > 0)
        c.add(
            "dropped.malformed.packet_number", count, "geometry",
            "packets have numbers beyond the end of a message: the detector sends a larger readout than is configured");
    if (const std::uint64_t count = c.get(PacketCounter::malformed_header); count > 0)
        c.add("dropped.malformed.header", count, "geometry",
              "packets do not begin with a header of the stream's format: another format, a newer firmware, or another "
              "sender");
    if (const std::uint64_t count = c.get(PacketCounter::malformed_source); count > 0)
        c.add("dropped.malformed.source", count, "geometry",
              "packets name a source that is not configured: a board with the wrong number, or one more board than "
              "expected");
}

void cut_frames(Case& c) {
    const std::uint64_t truncated = c.get(PacketCounter::malformed_truncated);
    const std::uint64_t lengths = c.get(PacketCounter::malformed_ip_length);
    if (truncated + lengths == 0) return;
    const char* counter = truncated >= lengths ? "dropped.malformed.truncated" : "dropped.malformed.ip_length";
    std::string why = c.seen.replay ? "the capture was taken with a snap length shorter than the frames"
                                    : "something on the way, or the device, has smaller buffers than the frames";
    if (c.any_port("net_af_packet"))
        why =
            "net_af_packet cuts frames longer than its `framesz` without a word (with the profile: 16384), and a "
            "kernel that merges packets makes such frames (ethtool -K DEV gro off gso off tso off)";
    c.add(counter, truncated + lengths, "cut-frames", "frames were cut before weir saw their end: " + why);
}

void roce(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::malformed_bad_icrc); count > 0) {
        const std::uint64_t good = c.get(PacketCounter::placed);
        c.add("dropped.malformed.bad_icrc", count, "icrc",
              good == 0 ? "packets have a wrong iCRC, and none a right one: the sender does not compute it, or "
                          "computes it wrongly"
                        : fmt::format("packets have a wrong iCRC, against {} good ones: bit errors on the way", good));
    }
    if (const std::uint64_t count = c.get(PacketCounter::unbound); count > 0)
        c.add("dropped.unbound", count, "unbound",
              "packets belong to messages whose FIRST or LAST packet never came, so that their event is not known");
}

void pipeline_limits(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::ring_full_capture); count > 0)
        c.add("dropped.ring_full.capture", count, "rings",
              "packets were read faster than the pipeline took them, which --drop allows: without it, replay waits");
    if (const std::uint64_t count = c.get(PacketCounter::ring_full_steer); count > 0)
        c.add("dropped.ring_full.steer", count, "rings",
              "packets found the ring to another rx lcore full: that lcore is overloaded, or starved on its CPU");
    const std::uint64_t closed = c.get(EventCounter::complete) + c.ledger.incomplete();
    const std::uint64_t per_event = closed == 0 ? 0 : c.get(PacketCounter::placed) / closed;
    if (const std::uint64_t count = c.get(EventCounter::dropped_reduce_error); count > 0)
        c.add("events.dropped.reduce_error", count * per_event, "reduce-error",
              fmt::format("packets were in {} events that a reducer could not make anything of", count));
    if (const std::uint64_t count = c.get(EventCounter::dropped_write_error); count > 0)
        c.add("events.dropped.write_error", count * per_event, "write-error",
              fmt::format("packets were in {} events that could not be written: the sink failed", count));
    if (const std::uint64_t count = c.get(EventCounter::dropped_incomplete); count > 0)
        c.add("events.dropped.incomplete", count * per_event, "incomplete",
              fmt::format("packets at most, in {} incomplete events that `incomplete = \"drop\"` threw away", count));
}

void remarks(Case& c) {
    const bool all_came = c.ledger.incomplete() == 0 && sum_of_sources(c.ledger) > 0;
    if (const std::uint64_t count = c.get(PacketCounter::unsteered); count > 0 && sum_of_sources(c.ledger) > 0)
        c.add("packets.unsteered", count, "unsteered",
              fmt::format("packets match no [[stream]]{}: {}", Case::most(c.seen.strangers, ", most often "),
                          all_came ? "other traffic on the link" : "other traffic, or a source set up wrongly"),
              false);
    if (const std::uint64_t count = c.get(PacketCounter::duplicate); count > 0)
        c.add("dropped.duplicate", count, "duplicate",
              "packets had come before: retransmissions, a link that is seen twice, or a sender that repeats itself",
              false);
    const std::uint64_t of_streams = c.ledger.rule_dropped_of_streams;
    if (const std::uint64_t count = c.get(PacketCounter::flow_rule); count > 0)
        c.findings.push_back({"dropped.flow_rule", of_streams > 0 ? of_streams : count, of_streams > 0,
                              of_streams > 0 ? "packets of a stream were dropped by a flow rule; `flows` in the report "
                                               "says by which"
                                             : "packets were dropped by flow rules, as asked; none was of a stream",
                              "docs/FLOWS.md#meaning"});
    if (c.ledger.missing_at_end > 0)
        c.add("events.incomplete.end_of_run", c.ledger.missing_at_end, "end-of-run",
              fmt::format("packets had not come when the run ended, in {} events that were open then",
                          c.get(EventCounter::incomplete_end_of_run)),
              false);
}

/// Whatever counter has no sentence of its own: the first sentence of its explanation.
void others(Case& c) {
    const auto named = [&](std::string_view name) {
        return std::ranges::any_of(c.findings, [&](const Finding& finding) { return finding.counter == name; });
    };
    for (std::size_t i = 0; i < c.ledger.packets.size(); ++i) {
        const core::CounterInfo& info = core::packet_counters[i];
        const auto counter = static_cast<PacketCounter>(i);
        const bool cut = counter == PacketCounter::malformed_truncated || counter == PacketCounter::malformed_ip_length;
        if (c.ledger.packets[i] == 0 || cut || !info.name.starts_with("dropped.") || named(info.name)) continue;
        const std::string_view help = info.help.substr(0, info.help.find(". "));
        c.findings.push_back({std::string(info.name), c.ledger.packets[i], true,
                              fmt::format("packets ended as {}: {}", info.name.substr(info.name.find('.') + 1), help),
                              "docs/COUNTERS.md"});
    }
}

}  // namespace

std::vector<Finding> diagnose(const Ledger& ledger, const Observations& seen) {
    Case c{ledger, seen, {}, ledger.missing_packets()};
    // What arrived and was not placed is missing in its event just the same: it has its own sentence.
    c.unexplained -= std::min(c.unexplained, ledger.lost_packets());
    nothing_came(c);
    silent_sources(c);
    devices(c);
    late(c);
    evicted(c);
    numbers(c);
    missing(c);
    no_room(c);
    overload(c);
    geometry(c);
    cut_frames(c);
    roce(c);
    pipeline_limits(c);
    remarks(c);
    others(c);
    std::ranges::stable_sort(c.findings, [](const Finding& a, const Finding& b) {
        return a.loss != b.loss ? a.loss : a.packets > b.packets;
    });
    return std::move(c.findings);
}

std::string findings_text(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings) {
        const std::string packets = finding.packets > 0 ? std::to_string(finding.packets) : "?";
        text += fmt::format("{:<10}{}: {}\n{:10}(read {}; weir explain {})\n", finding.loss ? "lost" : "remark",
                            packets, finding.sentence, "", finding.page, finding.counter);
    }
    return text;
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings)
        list.push_back({{"counter", finding.counter},
                        {"packets", finding.packets},
                        {"loss", finding.loss},
                        {"sentence", finding.sentence},
                        {"page", finding.page}});
    return list;
}

}  // namespace weir::pipeline
