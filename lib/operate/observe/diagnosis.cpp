#include "observe/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "observe/counted.hpp"
#include "observe/seen.hpp"

namespace weir::observe {

using assemble::EventCounter;
using wire::PacketCounter;

namespace {

constexpr double nearly_all = 0.9;
constexpr const char* page_of_losses = "docs/guides/LOSSES.md";

/// The findings as they grow, with what several rules need to know.
struct Case {
    const Ledger& ledger;
    const Observations& seen;
    std::vector<pipeline::Finding> findings;
    std::uint64_t unexplained = 0;  ///< packets that never came and for which no rule has found a reason yet
    std::array<bool, core::count_of<PacketCounter>> named{};  ///< those that have a sentence of their own

    void add(PacketCounter counter, std::uint64_t packets, const char* section, std::string sentence,
             bool loss = true) {
        mark(counter);
        add(name(counter), packets, section, std::move(sentence), loss);
    }
    void add(EventCounter counter, std::uint64_t packets, const char* section, std::string sentence, bool loss = true) {
        add(fmt::format("events.{}", ledger.info(counter).name), packets, section, std::move(sentence), loss);
    }
    void add(std::string counter, std::uint64_t packets, const char* section, std::string sentence, bool loss = true) {
        findings.push_back(
            {std::move(counter), packets, loss, std::move(sentence), fmt::format("{}#{}", page_of_losses, section)});
    }
    void mark(PacketCounter counter) { named[static_cast<std::size_t>(counter)] = true; }
    [[nodiscard]] std::string name(PacketCounter counter) const { return std::string(ledger.info(counter).name); }
    [[nodiscard]] std::string full_name(PacketCounter counter) const {
        return fmt::format("packets.{}", ledger.info(counter).name);
    }
    [[nodiscard]] std::uint64_t get(PacketCounter counter) const { return ledger.get(counter); }
    [[nodiscard]] std::uint64_t get(EventCounter counter) const { return ledger.get(counter); }
    [[nodiscard]] std::string label(std::size_t source) const {
        const bool known = source < seen.sources.size() && !seen.sources[source].label.empty();
        return known ? fmt::format("source {} ({})", source, seen.sources[source].label)
                     : fmt::format("source {}", source);
    }
    /// ", most often WHAT (N packets), ...", or nothing.
    [[nodiscard]] static std::string most(const std::vector<Observations::Count>& counts, const char* words) {
        constexpr std::size_t shown_max = 4;
        std::string text;
        for (std::size_t i = 0; i < std::min(shown_max, counts.size()); ++i)
            text += fmt::format("{}{} ({} packets)", i == 0 ? words : ", ", counts[i].what, counts[i].packets);
        if (counts.size() > shown_max) text += fmt::format(" and {} more", counts.size() - shown_max);
        return text;
    }
    /// Where packets without a stream went, as a half sentence; or nothing.
    [[nodiscard]] std::string elsewhere(const char* words) const {
        const auto& list = ledger.unmatched.list;
        std::string text =
            list.empty() ? "" : fmt::format("{}{} ({} packets)", words, list.front().what, list.front().packets);
        if (ledger.capture && ledger.capture->other_link > 0)
            text += fmt::format(", or is among the {} packets of the capture's interfaces that are not read",
                                ledger.capture->other_link);
        return text;
    }
    /// Nothing came of a source before the place where a capture could not be read any further, and events that may
    /// reach beyond it are all that lack it.
    [[nodiscard]] bool may_come_later(const Ledger::Source& source) const {
        return ledger.is_unread() && source.missing_packets == source.missing_at_end &&
               ledger.incomplete() <= ledger.capture->cut_events;
    }
    /// Packets of a source came, and were refused for a reason that has its own sentence.
    [[nodiscard]] bool came_and_was_refused(std::size_t source) const {
        if (ledger.sources[source].refused > 0) return true;
        const bool by_header = source < seen.sources.size() && seen.sources[source].by_header;
        return by_header && (get(PacketCounter::malformed_source) > 0 || get(PacketCounter::malformed_header) > 0);
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
    if (c.ledger.received > 0 || c.ledger.is_share) return;
    c.add("device.received", 0, "nothing-came",
          c.seen.replay ? "the capture has no packet that is read"
                        : "no packet came at all: " + why_nothing_came(c.seen));
}

/// How many of a source's missing packets one cause has, and whether that is a guess.
void add_outage(Case& c, std::size_t s, const SourceEnds::Outage& outage, std::string sentence) {
    const Ledger::Source& source = c.ledger.sources[s];
    const std::uint64_t packets = std::min(outage.packets, c.unexplained);
    c.unexplained -= packets;
    c.add(EventCounter::incomplete_timeout, packets, "silent-source", std::move(sentence));
    c.findings.back().about = source.missing_guessed > 0;
}

/// A source that took part in events and for a row of them did not. True: it is said.
bool absent_for_a_time(Case& c, std::size_t s) {
    const SourceEnds& ends = c.ledger.sources[s].ends;
    if (c.seen.going_on) return false;
    if (ends.began_late)
        add_outage(c, s, *ends.began_late,
                   fmt::format("{} began late: the first {} of the run have nothing of it; it was first seen at {}",
                               c.label(s), counted(ends.began_late->events, "event"), seen_at_text(*ends.began_late)));
    if (ends.stopped)
        add_outage(c, s, *ends.stopped,
                   fmt::format("{} stopped sending, while others went on: the last {} of the run have nothing of it; "
                               "it was last seen at {}, for event {}",
                               c.label(s), counted(ends.stopped->events, "event"), seen_at_text(*ends.stopped),
                               ends.stopped->number));
    return ends.stopped.has_value();
}

void silent_sources(Case& c) {
    const std::uint64_t all = sum_of_sources(c.ledger);
    if (c.ledger.stream_packets() == 0 && c.ledger.received > 0)
        c.add(c.full_name(PacketCounter::unsteered), 0, "silent-source",
              fmt::format("{} packets came, and none for a configured stream{}{}", c.ledger.received,
                          c.elsewhere(": most went to "),
                          c.seen.replay ? "" : ". What was seen: " + seen_text(c.ledger, c.seen)));
    if (all == 0 || c.ledger.is_share) return;  // readout nodes know more of their sources
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s) {
        const Ledger::Source& source = c.ledger.sources[s];
        const double silent = s < c.seen.sources.size() ? c.seen.sources[s].silent_s : 0;
        if (source.packets > 0 && absent_for_a_time(c, s)) continue;
        if (source.packets > 0 && silent == 0) continue;
        c.unexplained -= std::min(c.unexplained, source.missing_packets);
        if (source.packets == 0 && (c.came_and_was_refused(s) || c.may_come_later(source))) continue;
        if (source.packets == 0) {
            const std::uint64_t others = all / std::max<std::size_t>(1, c.ledger.sources.size() - 1);
            c.add(EventCounter::incomplete_timeout, source.missing_packets, "silent-source",
                  fmt::format("{} sent nothing, while the others sent {} packets each on average: it is off, "
                              "or sends elsewhere{}",
                              c.label(s), others, c.elsewhere("; without a stream are packets to ")));
            // Then nobody knows.
            c.findings.back().possible = c.ledger.capture && c.ledger.capture->other_link > 0;
            c.findings.back().loss = !c.findings.back().possible;
        } else {
            c.add(EventCounter::incomplete_timeout, source.missing_packets, "silent-source",
                  c.seen.going_on
                      ? fmt::format("{} has sent nothing for {:.1f} s, while others go on", c.label(s), silent)
                      : fmt::format("{} stopped sending {:.1f} s before the end of the run, while others went on",
                                    c.label(s), silent));
        }
    }
}

/// A pause that a queue may well have been too short for.
std::string pause_text(const Observations::Port& port) {
    constexpr double worth_saying_s = 1e-3;
    if (port.pause_s < worth_saying_s) return {};
    return fmt::format("; its longest pause was {:.1f} ms, {:.3f} s after the first packet", port.pause_s * 1e3,
                       port.pause_after_s);
}

/// What devices say they dropped, where every packet of the streams came.
void foreign_drops(Case& c) {
    for (const Observations::Port& port : c.seen.ports)
        if (const std::uint64_t packets = port.missed + port.no_buffer; packets > 0)
            c.add("device.missed", packets, "device",
                  fmt::format("packets were dropped before weir could see them, says the device of port {} ({}), but "
                              "numbers show that every packet of the streams came: these were other traffic, "
                              "or the driver counts wrongly",
                              port.name, port.driver),
                  false);
}

void devices(Case& c) {
    if (c.ledger.all_came()) return foreign_drops(c);
    for (const Observations::Port& port : c.seen.ports) {
        const std::uint64_t by_interface = std::min(port.missed, port.missed_by_interface);
        if (by_interface > 0)
            c.add("device.missed", by_interface, "device",
                  fmt::format("the kernel's interface {} of port {} dropped packets before {} could see them: "
                              "frames longer than its MTU, bad ones, those that came while it was going down or up, "
                              "or a processor's full backlog (ip -s -s link show {}; "
                              "sysctl net.core.netdev_max_backlog)",
                              port.interface, port.name, port.driver, port.interface));
        if (port.missed > by_interface)
            c.add("device.missed", port.missed - by_interface, "device",
                  fmt::format("the device of port {} ({}) dropped packets because its receive queue was full: "
                              "the rx lcore did not come back in time{}",
                              port.name, port.driver, pause_text(port)));
        if (port.no_buffer > 0)
            c.add("device.no_buffer", port.no_buffer, "device",
                  fmt::format("the driver of port {} ({}) found no free packet buffer: "
                              "memory is held by open events or a slow sink",
                              port.name, port.driver));
    }
    c.unexplained -= std::min(c.unexplained, c.ledger.device_missed);
}

/// Whether a source misses the same packets in every message, and hardly any others.
bool misses_the_same(const Observations::Source& source) {
    constexpr std::uint64_t messages_min = 3;
    const std::uint64_t same = source.same_missing * source.messages;
    return source.messages >= messages_min && same > 0 &&
           static_cast<double>(same) >= nearly_all * static_cast<double>(same + source.other_missing);
}

/// What is missing in every event is not sent: a setting, not a bad link. One finding for all sources that are alike.
void same_missing(Case& c) {
    std::vector<bool> said(c.seen.sources.size());
    for (std::size_t s = 0; s < c.seen.sources.size() && s < c.ledger.sources.size(); ++s) {
        const Observations::Source& source = c.seen.sources[s];
        if (said[s] || !misses_the_same(source)) continue;
        std::uint64_t packets = 0;
        std::uint64_t count = 0;
        for (std::size_t i = s; i < c.seen.sources.size(); ++i) {
            const Observations::Source& other = c.seen.sources[i];
            if (!misses_the_same(other) || other.same_missing != source.same_missing || other.setting != source.setting)
                continue;
            said[i] = true;
            ++count;
            packets += other.same_missing * other.messages;
        }
        const std::string who = count > 1 ? fmt::format("{} and {} more sources", c.label(s), count - 1) : c.label(s);
        const std::string what = source.setting.empty() ? "compare `rows`, `interfaces`, `bit_depth`, "
                                                          "`packets` and the UDP ports with the detector's settings, "
                                                          "or the sender leaves them out"
                                                        : source.setting + " would fit";
        c.add(EventCounter::incomplete_timeout, packets, "same-missing",
              fmt::format("packets never came, and they are the same {} of {} in every event of {}: "
                          "that is no bad link, the detector sends a smaller readout than is configured: {}",
                          source.same_missing, source.message_packets, who, what));
        c.unexplained -= std::min(c.unexplained, packets);
    }
}

/// Which sources miss a packet or two: too few to show where they went.
std::string few_missing(const Case& c) {
    std::string text;
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s)
        if (const Ledger::Source& source = c.ledger.sources[s]; source.packets > 0 && source.missing_packets > 0)
            text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", source.missing_packets, c.label(s));
    return text + "; too few to show a pattern";
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
    constexpr std::uint64_t pattern_min = 4;  // fewer show none
    if (missing == 0)
        pattern = "of sources whose message sizes are not known";
    else if (c.unexplained < pattern_min)
        pattern = few_missing(c);
    else if (sources.size() == 1)
        pattern = "the only source has gaps: look at its cable, the switch and the sender's own account";
    else if (part(of_active(*most)) >= nearly_all)
        pattern = fmt::format("{} of {} are of {}: look at its cable, its switch port and the board itself",
                              of_active(*most), missing, c.label(static_cast<std::size_t>(most - sources.begin())));
    else if (part(c.ledger.missing_together) >= nearly_all)
        pattern =
            "nearly all of them are of events in which every source misses some: look at what they share, "
            "the last link and the switch in front of it";
    else
        pattern =
            "spread over the sources without a pattern: look for a congested switch, "
            "or bit errors that a switch throws away";
    const bool told =
        !c.ledger.devices.empty() && c.ledger.device_missed == 0 &&
        std::ranges::all_of(c.ledger.devices, [](const auto& device) { return device.missed.has_value(); });
    c.add(EventCounter::incomplete_timeout, c.unexplained, "missing",
          fmt::format("packet{} never came: {}{}", c.unexplained == 1 ? "" : "s", pattern,
                      told ? "; the device reports no loss of its own" : ""));
    c.findings.back().about = c.ledger.missing_is_guessed();
}

/// "source 0 (det0 udp 50001) had 640 packets from 10.0.0.1 and 320 from 10.0.0.2", of those with several senders.
std::string senders_text(const Case& c) {
    constexpr std::size_t shown_max = 3;
    std::string text;
    std::size_t found = 0;
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s) {
        const std::vector<Ledger::Sender>& senders = c.ledger.sources[s].senders;
        if (senders.empty() || ++found > shown_max) continue;
        text += fmt::format("{}{} had ", found == 1 ? "" : "; ", c.label(s));
        for (std::size_t i = 0; i < std::min(shown_max, senders.size()); ++i)
            text += fmt::format("{}{} packets from {}", i == 0 ? "" : ", ", senders[i].packets, senders[i].address);
        if (senders.size() > shown_max) text += fmt::format(" and others from {} more", senders.size() - shown_max);
    }
    if (found > shown_max) text += fmt::format("; and {} more sources", found - shown_max);
    return text;
}

constexpr std::string_view sources_of_their_own =
    "Give each sender a source of its own (its own UDP port, or `source_by = \"address\"`); if they are one detector, set "
    "`senders = \"any\"`";

/// Whole events, by the gaps in their numbers.
void numbers(Case& c) {
    if (!c.ledger.numbers || !c.ledger.numbers->why_unknown().empty()) return;
    const std::uint64_t events = c.ledger.numbers->missing();
    if (events == 0) return;
    const std::string which = fmt::format("nothing came of {}, number{} {}", counted(events, "event"),
                                          events == 1 ? "" : "s", ranges_text(*c.ledger.numbers));
    if (const std::string senders = senders_text(c); !senders.empty())
        return c.add(EventCounter::opened, 0, "numbers",
                     fmt::format("{}: {}. If each counts for itself, that is no loss. {}", which, senders,
                                 sources_of_their_own));
    c.add(EventCounter::opened, 0, "numbers",
          fmt::format("{}: the detector skipped {}, or everything was lost before weir (on the way, or while nobody "
                      "recorded)",
                      which, events == 1 ? "it" : "them"));
}

void late(Case& c) {
    const std::uint64_t count = c.get(PacketCounter::late);
    if (count == 0) return;
    if (c.seen.stamps_ran_back_s * 1000 > c.seen.timeout_ms) {
        c.add(PacketCounter::late, count, "late",
              fmt::format("packets came for events that had left: stamps in the capture run back by up to {:.1f} s, so "
                          "before that one was far ahead (a clock was set, or jumped), and at that moment every open "
                          "event was older than {} ms",
                          c.seen.stamps_ran_back_s, c.seen.timeout_ms));
        return;
    }
    const std::uint64_t evicted = c.get(EventCounter::incomplete_evicted);
    const std::uint64_t timeouts = c.get(EventCounter::incomplete_timeout);
    if (evicted > timeouts) {
        c.add(PacketCounter::late, count, "evicted",
              fmt::format("packets came after {} events had been evicted to make room (limit: {}; {} open at most), "
                          "{} only timed out",
                          evicted, c.seen.open_limit, c.seen.open_max, timeouts));
        return;
    }
    const auto& sources = c.ledger.sources;
    const std::uint32_t needed = c.ledger.sources_needed;
    if (needed > 0 && needed < sources.size()) {
        c.add(PacketCounter::late, count, "fewer-sources",
              fmt::format("packets came for events that had left: "
                          "`[events] sources = {}` closes an event with the first {} whole messages, "
                          "and the streams have {} sources; `sources = {}` waits for all",
                          needed, needed, sources.size(), sources.size()));
        return;
    }
    const auto most = std::ranges::max_element(sources, {}, &Ledger::Source::missing_packets);
    std::string who;
    const std::uint64_t missing = c.ledger.missing_packets();
    if (sources.size() > 1 && missing > 0 &&
        static_cast<double>(most->missing_packets) >= nearly_all * static_cast<double>(missing))
        who = fmt::format(", nearly all of {}, which lags behind the others",
                          c.label(static_cast<std::size_t>(most - sources.begin())));
    c.add(PacketCounter::late, count, "late",
          fmt::format("packets came for events that had left: {} timed out after {} ms{}", counted(timeouts, "event"),
                      c.seen.timeout_ms, who));
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

/// What held the places of events that were evicted to make room for others.
std::string what_kept_open(const Case& c) {
    constexpr double full = 0.9;
    if (c.seen.writer_max >= full || c.seen.queued_max >= full) return slow_part(c);
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s)
        if (c.ledger.sources[s].packets == 0 && sum_of_sources(c.ledger) > 0)
            return fmt::format("they waited for {}", c.label(s));
    for (std::size_t s = 0; s < c.seen.sources.size(); ++s)
        if (misses_the_same(c.seen.sources[s])) return "they waited for packets that are not sent";
    return "events begin faster than they become whole: packets are missing, the sources lag behind each other, "
           "or weir is overloaded (see `bottleneck`)";
}

void evicted(Case& c) {
    const std::uint64_t count = c.get(EventCounter::incomplete_evicted);
    // With late packets after them, those say it.
    if (count == 0 || c.get(PacketCounter::late) > 0) return;
    c.add(EventCounter::incomplete_evicted, c.unexplained, "evicted",
          fmt::format("{} events were evicted incomplete to make room (limit: {}; {} open at most): {}", count,
                      c.seen.open_limit, c.seen.open_max, what_kept_open(c)));
    c.unexplained = 0;
}

void no_room(Case& c) {
    const std::uint64_t count = c.get(PacketCounter::no_room);
    if (count == 0) return;
    c.add(PacketCounter::no_room, count, "no-room", "packets found no memory: " + slow_part(c));
}

/// Closed events that wait for a worker or the disk hold up new ones, or some are left out on purpose before it comes
/// to that.
void overload(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::queue_full); count > 0)
        c.add(PacketCounter::queue_full, count, "queue-full",
              fmt::format("packets were in {} events that were refused while closed ones waited: {}",
                          c.get(EventCounter::refused_queue_full), slow_part(c)));
    if (const std::uint64_t count = c.get(PacketCounter::prescaled); count > 0)
        c.add(PacketCounter::prescaled, count, "prescaled",
              fmt::format("packets were in {} events that `overload = \"prescale:N\"` left out: {}",
                          c.get(EventCounter::refused_prescaled), slow_part(c)));
}

/// What the header itself says it is.
std::string header_sentence(const Case& c) {
    const std::string other = "packets do not begin with a header of the stream's format";
    std::vector<Observations::Count> own;
    std::vector<Observations::Count> named;
    for (const Observations::Count& seen : c.seen.headers)
        if (!seen.what.empty()) (seen.own_format ? own : named).push_back(seen);
    std::string text;
    if (!own.empty())
        text = "packets have the mark of the stream's format and a header that this version does not read: " +
               Case::most(own, "");
    if (!named.empty())
        text += fmt::format("{}{}: they look like {}", text.empty() ? "" : "; other ", other, Case::most(named, ""));
    if (!text.empty()) return text;
    return other + ": another format, a newer firmware, or another sender; nothing that weir knows has such a one";
}

std::string source_sentence(const Case& c) {
    const std::string ids = Case::most(c.seen.unknown_ids, ": ");
    std::string silent;
    for (std::size_t s = 0; s < c.ledger.sources.size() && s < c.seen.sources.size(); ++s)
        if (c.ledger.sources[s].packets == 0 && c.seen.sources[s].by_header)
            silent += fmt::format("{}{}", silent.empty() ? "; no packet names " : ", ", c.seen.sources[s].label);
    return fmt::format(
        "packets name a source that is not in `source_ids`{} (configured: {}){}: "
        "a board with another number than expected, or one more board",
        ids, c.seen.known_ids, silent);
}

void geometry(Case& c) {
    const std::uint64_t count_of_all = c.get(PacketCounter::malformed_payload_length);
    std::uint64_t merged = 0;
    for (const Observations::Count& one : c.seen.merged) merged += one.packets;
    merged = std::min(merged, count_of_all);
    if (merged > 0)
        c.add(PacketCounter::malformed_payload_length, merged, "merged",
              fmt::format("packets are several datagrams of the detector that were handed over as one (GRO, LRO or "
                          "GSO){}: switch that off where they come in, `ethtool -K DEV gro off lro off`, and on veth "
                          "or tap where they are sent, `ethtool -K DEV tso off gso off tx off`",
                          Case::most(c.seen.merged, ": ")));
    if (const std::uint64_t count = count_of_all - merged; count > 0)
        c.add(PacketCounter::malformed_payload_length, count, "geometry",
              fmt::format("packets have a payload of the wrong length{}: "
                          "the stream's format or geometry is not what the detector sends",
                          Case::most(c.seen.wrong_lengths, ", most often ")));
    if (const std::uint64_t count = c.get(PacketCounter::malformed_packet_number); count > 0)
        c.add(PacketCounter::malformed_packet_number, count, "geometry",
              "packets have numbers beyond the end of a message: " +
                  (c.get(PacketCounter::malformed_header) == 0 && !c.seen.headers.empty()
                       ? fmt::format("they look like {}", Case::most(c.seen.headers, ""))
                       : std::string("the detector sends a larger readout than is configured")));
    if (const std::uint64_t count = c.get(PacketCounter::malformed_header); count > 0)
        c.add(PacketCounter::malformed_header, count, "geometry", header_sentence(c));
    if (const std::uint64_t count = c.get(PacketCounter::malformed_source); count > 0)
        c.add(PacketCounter::malformed_source, count, "geometry", source_sentence(c));
}

void cut_frames(Case& c) {
    const std::uint64_t truncated = c.get(PacketCounter::malformed_truncated);
    const std::uint64_t lengths = c.get(PacketCounter::malformed_ip_length);
    if (truncated + lengths == 0) return;
    const auto counter = truncated >= lengths ? PacketCounter::malformed_truncated : PacketCounter::malformed_ip_length;
    std::string why = c.seen.replay ? "the capture was taken with a snap length shorter than the frames"
                                    : "something on the way, or the device, has smaller buffers than the frames";
    const auto of_mirror = [](const Ledger::Decapsulated& one) {
        return one.taken[static_cast<std::size_t>(wire::Tunnel::erspan)] > 0;
    };
    if (std::ranges::any_of(c.ledger.decapsulated, of_mirror))
        why = "the mirror cut them (a limit of its session's, or an MTU without room for ERSPAN), or " + why;
    else if (c.any_port("net_af_packet"))
        why =
            "net_af_packet cuts frames longer than its `framesz` without a word (with the profile: 16384), "
            "and a kernel that merges packets makes such frames (ethtool -K DEV gro off gso off tso off)";
    else if (c.any_port("kernel"))
        why = "frames longer than the port's `mtu`: the kernel merges packets (ethtool -K DEV gro off gso off tso off)";
    c.add(counter, truncated + lengths, "cut-frames", "frames were cut before weir saw their end: " + why);
    for (const PacketCounter one : {PacketCounter::malformed_truncated, PacketCounter::malformed_ip_length})
        c.mark(one);
}

/// A reliable sender repeats what it has no acknowledgement for. One that repeats nearly everything hears none.
void unheard_answers(Case& c) {
    for (const Ledger::QueuePair& qp : c.ledger.queue_pairs) {
        const auto report = std::ranges::find(c.ledger.psns, qp.source, &PsnReport::source);
        if (report == c.ledger.psns.end() || report->counts.transport != wire::RoceTransport::rc) continue;
        if (report->counts.repeated <= report->counts.seen) continue;
        c.add(PacketCounter::duplicate, 0, "roce",
              fmt::format("queue pair {:#x} of {} got each packet again and again ({} of {} were repeats): "
                          "its sender hears no acknowledgement. weir answers to queue pair {:#x}: "
                          "does `peer` say the sender's own qp and address?",
                          qp.qp, c.label(qp.source), report->counts.repeated,
                          report->counts.repeated + report->counts.seen, qp.peer_qp),
              false);
    }
}

void roce(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::malformed_bad_icrc); count > 0) {
        const std::uint64_t good = c.get(PacketCounter::placed);
        c.add(PacketCounter::malformed_bad_icrc, count, "icrc",
              good == 0 ? "packets have a wrong iCRC, and none a right one: the sender does not compute it, "
                          "or computes it wrongly"
                        : fmt::format("packets have a wrong iCRC, against {} good ones: bit errors on the way", good));
    }
    std::uint64_t unnumbered = 0;
    for (const PsnReport& report : c.ledger.psns) unnumbered += report.counts.unnumbered;
    if (unnumbered > 0)
        c.add(PacketCounter::unbound, unnumbered, "unbound",
              "packets are of messages that came whole and carry no immediate, "
              "which `event = \"immediate\"` takes the event number from: "
              "set event = \"format\" if a detector header is in front of the payload, else \"count\", "
              "or \"arrival\" (with one source)");
    if (const std::uint64_t count = c.get(PacketCounter::unbound); count > unnumbered)
        c.add(PacketCounter::unbound, count - unnumbered, "unbound",
              "packets belong to messages whose FIRST or LAST packet never came, so that their event is not known");
    unheard_answers(c);
}

void pipeline_limits(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::ring_full_capture); count > 0)
        c.add(PacketCounter::ring_full_capture, count, "rings",
              "packets were read faster than the pipeline took them, which --drop allows: without it, replay waits");
    if (const std::uint64_t count = c.get(PacketCounter::ring_full_steer); count > 0)
        c.add(PacketCounter::ring_full_steer, count, "rings",
              "packets found the ring to another rx lcore full: that lcore is overloaded, or starved on its CPU");
    const std::uint64_t closed = c.get(EventCounter::complete) + c.ledger.incomplete();
    const std::uint64_t per_event = closed == 0 ? 0 : c.get(PacketCounter::placed) / closed;
    if (const std::uint64_t count = c.get(EventCounter::dropped_reduce_error); count > 0)
        c.add(EventCounter::dropped_reduce_error, count * per_event, "reduce-error",
              fmt::format("packets were in {} that a reducer could not make anything of", counted(count, "event")));
    if (const std::uint64_t count = c.get(EventCounter::dropped_write_error); count > 0)
        c.add(EventCounter::dropped_write_error, count * per_event, "write-error",
              fmt::format("packets were in {} that could not be written: the sink failed", counted(count, "event")));
    if (const std::uint64_t count = c.get(EventCounter::dropped_not_taken); count > 0)
        c.add(
            EventCounter::dropped_not_taken, count * per_event, "not-taken",
            fmt::format("packets were in {} events that did not get to where they were sent: the report's `sinks` has "
                        "the cause",
                        count));
    if (const std::uint64_t count = c.get(EventCounter::dropped_incomplete); count > 0)
        c.add(EventCounter::dropped_incomplete, count * per_event, "incomplete",
              fmt::format("packets at most, in {} incomplete events that `incomplete = \"drop\"` threw away", count));
}

void contradictions(Case& c) {
    const std::uint64_t count = c.get(PacketCounter::conflict);
    if (count == 0) return;
    if (const std::string senders = senders_text(c); !senders.empty())
        return c.add(PacketCounter::conflict, count, "conflict",
                     fmt::format("packets came under a number that another packet had used: {}. {}", senders,
                                 sources_of_their_own));
    c.add(
        PacketCounter::conflict, count, "conflict",
        "packets came under a number that another packet had used, with other data: two senders behind one address, a "
        "detector whose number stands still, or wrong offsets");
}

/// What no stream wants: of this detector, as far as that shows, or of others.
void unsteered(Case& c) {
    const std::uint64_t kin = c.ledger.unmatched.possible_losses;
    const std::uint64_t count = c.get(PacketCounter::unsteered);
    if (kin > 0) {
        c.add(
            c.full_name(PacketCounter::unsteered), kin, "unsteered",
            fmt::format("packets match no [[stream]] and look like this detector's: {}. If they are, "
                        "add their ports to the streams (docs/guides/ROUND_ROBIN.md if it takes several ports in turn)",
                        unmatched_text(c.ledger.unmatched, true)),
            false);
        c.findings.back().possible = true;
    }
    if (count <= kin || c.ledger.stream_packets() == 0) return;
    const bool all_came = c.ledger.incomplete() == 0 && sum_of_sources(c.ledger) > 0;
    const std::string who = unmatched_text(c.ledger.unmatched, false);
    c.add(c.full_name(PacketCounter::unsteered), count - kin, "unsteered",
          fmt::format("packets match no [[stream]]{}{}: {}", who.empty() ? "" : ": ", who,
                      all_came ? "other traffic on the link" : "other traffic, or a source set up wrongly"),
          false);
}

/// What was not read of a capture: packets of this detector may be there.
void unread(Case& c) {
    if (!c.ledger.capture) return;
    const std::uint64_t open = c.ledger.capture->cut_events;
    for (const std::string& text : c.ledger.capture->unread) {
        const bool first = &text == c.ledger.capture->unread.data();
        c.add(EventCounter::incomplete_end_of_run, first ? c.ledger.missing_at_end : 0, "unread",
              first && open > 0 ? fmt::format("{}; what {} incomplete event{} may be there", text, open,
                                              open == 1 ? " lacks" : "s lack")
                                : text,
              false);
        c.findings.back().possible = true;
    }
    if (const std::uint64_t others = c.ledger.capture->other_link; others > 0)
        c.add("capture.other_link", others, "unread",
              "packets are of interfaces of the capture that are not read, because they are no Ethernet", false);
}

/// What weir can do itself; otherwise what the network can, and editcap.
std::string how_to_take_off(const Observations& seen) {
    if (!seen.decapsulate.empty())
        return fmt::format("set `decapsulate = [\"{}\"]` in [[port]], and weir takes that off",
                           fmt::join(seen.decapsulate, "\", \""));
    return fmt::format("have the switch mirror to a local port (SPAN) or send without the tunnel or the second tag{}",
                       seen.take_off.empty() ? "" : "; from a capture it is taken off by `" + seen.take_off + "`");
}

/// Where a switch mirrors into a tunnel, or a network is laid over another.
void encapsulated(Case& c) {
    std::uint64_t count = 0;
    for (const Observations::Count& one : c.seen.encapsulated) count += one.packets;
    if (count == 0) return;
    constexpr std::array counters{PacketCounter::not_for_us_ip_protocol, PacketCounter::not_for_us_ethertype,
                                  PacketCounter::unsteered};
    const auto* most = std::ranges::max_element(counters, {}, [&](PacketCounter counter) { return c.get(counter); });
    const bool nothing_else = c.ledger.stream_packets() == 0;
    c.add(
        c.full_name(*most), count, "encapsulated",
        fmt::format("packets have others inside, which weir does not read: {}. If the detector's data are in them, {}",
                    Case::most(c.seen.encapsulated, ""), how_to_take_off(c.seen)),
        false);
    c.findings.back().possible = nothing_else;
}

void remarks(Case& c) {
    if (const std::uint64_t count = c.get(PacketCounter::duplicate); count > 0)
        c.add(PacketCounter::duplicate, count, "duplicate",
              "packets had come before: retransmissions, a link that is seen twice, or a sender that repeats itself",
              false);
    const std::uint64_t of_streams = c.ledger.rule_dropped_of_streams;
    if (const std::uint64_t count = c.get(PacketCounter::flow_rule); count > 0)
        c.findings.push_back({c.name(PacketCounter::flow_rule), of_streams > 0 ? of_streams : count, of_streams > 0,
                              of_streams > 0 ? "packets of a stream were dropped by a flow rule; "
                                               "`flows` in the report says by which"
                                             : "packets were dropped by flow rules, as asked; none was of a stream",
                              "docs/guides/FLOWS.md#in-a-run"});
    if (c.ledger.missing_at_end > 0 && !c.ledger.is_unread()) {
        const char* what = c.ledger.input_stopped ? "packets may follow where the replay stopped reading"
                           : c.seen.replay        ? "packets may have come after the capture ended"
                                                  : "packets may not have been sent yet when the run ended";
        c.add(EventCounter::incomplete_end_of_run, c.ledger.missing_at_end, "end-of-run",
              fmt::format("{}: those that the sources were busy with, of {} open then", what,
                          counted(c.get(EventCounter::incomplete_end_of_run), "event") +
                              (c.get(EventCounter::incomplete_end_of_run) == 1 ? " that was" : " that were")),
              false);
    }
    if (c.ledger.missing_at_start > 0)
        c.add(EventCounter::incomplete_timeout, c.ledger.missing_at_start, "end-of-run",
              fmt::format("packets may have been sent before the run began: those that {} at its beginning {}",
                          counted(c.ledger.cut_at_start, "event"), c.ledger.cut_at_start == 1 ? "lacks" : "lack"),
              false);
}

/// Events that are not whole, where nothing else says a word about it.
void unexplained_events(Case& c) {
    const std::uint64_t cut = c.ledger.cut_at_end + c.ledger.cut_at_start;
    const std::uint64_t events = c.ledger.incomplete() - std::min(c.ledger.incomplete(), cut);
    // A possible one says a word, too: what is missing may be on an interface of the capture that is not read.
    const auto says_something = [](const auto& finding) { return finding.loss || finding.possible; };
    if (events == 0 || std::ranges::any_of(c.findings, says_something)) return;
    std::string who;
    for (std::size_t s = 0; s < c.ledger.sources.size(); ++s)
        if (c.ledger.numbers && s < c.ledger.numbers->sources.size() && c.ledger.numbers->sources[s].absent > 0)
            who += fmt::format("{}{} sent nothing for {}", who.empty() ? ": " : ", ", c.label(s),
                               counted(c.ledger.numbers->sources[s].absent, "event"));
    c.add(EventCounter::incomplete_timeout, 0, "missing",
          fmt::format("{} not whole{}; how many packets that are is not known",
                      events == 1 ? "1 event is" : fmt::format("{} events are", events), who));
}

/// Whatever counter has no sentence of its own: the first sentence of its explanation.
void others(Case& c) {
    using core::Fate;
    for (std::size_t i = 0; i < c.ledger.packets.size(); ++i) {
        const core::CounterInfo& info = c.ledger.packet_infos[i];
        const bool came_to_nothing = info.fate == Fate::lost || info.fate == Fate::unread || info.fate == Fate::spared;
        if (c.ledger.packets[i] == 0 || !came_to_nothing || c.named[i]) continue;
        const std::string_view help = info.help.substr(0, info.help.find(". "));
        c.findings.push_back({std::string(info.name), c.ledger.packets[i], true,
                              fmt::format("packets ended as {}: {}", info.label_value(), help),
                              "docs/reference/COUNTERS.md"});
    }
}

}  // namespace

std::vector<pipeline::Finding> diagnose(const Ledger& ledger, const Observations& seen) {
    Case c{ledger, seen, {}, ledger.missing_packets(), {}};
    // What arrived and was not placed is missing in its event just the same: it has its own sentence.
    c.unexplained -= std::min(c.unexplained, ledger.lost_packets());
    // But what the PSNs of RoCE say never came, or came damaged, is nowhere else.
    c.unexplained = std::max(c.unexplained, ledger.lost_psns() - std::min(ledger.lost_psns(), ledger.unread_packets()));
    nothing_came(c);
    silent_sources(c);
    devices(c);
    late(c);
    same_missing(c);
    evicted(c);
    numbers(c);
    missing(c);
    no_room(c);
    overload(c);
    geometry(c);
    cut_frames(c);
    roce(c);
    pipeline_limits(c);
    contradictions(c);
    unsteered(c);
    unread(c);
    encapsulated(c);
    remarks(c);
    others(c);
    unexplained_events(c);
    std::ranges::stable_sort(c.findings, [](const pipeline::Finding& a, const pipeline::Finding& b) {
        const bool first = a.loss || a.possible;
        return first != (b.loss || b.possible) ? first : a.packets > b.packets;
    });
    return std::move(c.findings);
}

}  // namespace weir::observe
