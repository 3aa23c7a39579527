#include "observe/ledger_text.hpp"

#include <fmt/format.h>

#include "observe/rates.hpp"

namespace weir::observe {

using assemble::EventCounter;
using wire::PacketCounter;

namespace {

/// "late 10, no_room 2": every counter of this kind that is not zero.
template <class IsOfKind>
std::string list_text(std::span<const core::CounterInfo> infos, std::span<const std::uint64_t> values,
                      IsOfKind is_of_kind) {
    std::string text;
    for (std::size_t i = 0; i < infos.size(); ++i)
        if (values[i] != 0 && is_of_kind(infos[i]))
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", infos[i].label_value(), values[i]);
    return text;
}

/// The packets of the family that `one` is of.
std::string family_text(const Ledger& ledger, PacketCounter one) {
    const core::CounterFamily* family = ledger.info(one).family;
    return list_text(ledger.packet_infos, ledger.packets,
                     [&](const core::CounterInfo& info) { return info.family == family; });
}

std::string events_text(const Ledger& ledger, core::Fate fate) {
    return list_text(ledger.event_infos, ledger.events,
                     [&](const core::CounterInfo& info) { return info.fate == fate; });
}

std::string fragments_text(const Ledger::IpFragments& ip) {
    if (ip.fragments == 0) return {};
    std::string text = fmt::format("          {} of them were IP fragments, of {} whole datagrams: raise the MTU\n",
                                   ip.fragments, ip.datagrams);
    if (ip.reused_identification > 0)
        text += fmt::format(
            "          {} fragmented datagrams had the IP identification of the one before (first seen from {}): "
            "where fragments are lost, such a source's datagrams can be mixed up\n",
            ip.reused_identification, ip.reusing_source);
    return text;
}

std::string decapsulated_text(const Ledger& ledger) {
    std::string text;
    for (const Ledger::Decapsulated& one : ledger.decapsulated)
        for (std::size_t i = 0; i < wire::tunnel_count; ++i)
            if (one.taken[i] > 0)
                text += fmt::format("{}{} taken off {}", text.empty() ? "          " : ", ",
                                    wire::tunnel_counters[i].name, one.taken[i]);
    return text.empty() ? text : text + "\n";
}

std::string queue_pairs_text(const Ledger& ledger) {
    if (ledger.queue_pairs.empty()) return {};
    const std::string sent = list_text(roce::answer_counters, ledger.answers, [](const auto&) { return true; });
    std::string text = fmt::format("answers   {}\n", sent.empty() ? "none" : sent);
    for (const Ledger::QueuePair& qp : ledger.queue_pairs)
        if (qp.state == "error")
            text += fmt::format("          qp {:#x} (source {}) is in error: docs/guides/LOSSES.md#roce\n", qp.qp,
                                qp.source);
    return text;
}

std::string rate(double per_second) {
    if (per_second >= 1e6) return fmt::format("{:.2f} M/s", per_second / 1e6);
    if (per_second >= 1e3) return fmt::format("{:.1f} k/s", per_second / 1e3);
    return fmt::format("{:.1f} /s", per_second);
}

/// Where the time in which packets came is not that of the run, give or take what it takes to start and stop.
bool idle_for_long(double seconds, double active_seconds) {
    constexpr double nearly_all = 0.95;
    return active_seconds > 0 && active_seconds < nearly_all * seconds;
}

std::string rates_text(const Rates& rates) {
    return fmt::format("{} packets, {:.2f} Gb/s, {} events, {:.1f} MB/s to the sink", rate(rates.packets_per_s),
                       rates.gbps, rate(rates.events_per_s), rates.sink_mb_per_s);
}

}  // namespace

std::string ledger_text(const Ledger& ledger, double seconds, double active_seconds) {
    std::string text = fmt::format("packets   {} received ({}), {} placed in events\n", ledger.received,
                                   ledger.received_by, ledger.get(PacketCounter::placed));
    if (const std::string dropped = family_text(ledger, PacketCounter::late); !dropped.empty())
        text += fmt::format("          not placed: {}\n", dropped);
    if (const std::string foreign = family_text(ledger, PacketCounter::not_for_us_arp); !foreign.empty())
        text += fmt::format("          not for us: {}\n", foreign);
    if (ledger.get(PacketCounter::unsteered) + ledger.get(PacketCounter::control) > 0)
        text += fmt::format("          no stream wants them: {}, control: {}\n", ledger.get(PacketCounter::unsteered),
                            ledger.get(PacketCounter::control));
    if (ledger.capture && ledger.capture->other_link > 0)
        text += fmt::format("          and {} of interfaces that are not read, because they are no Ethernet\n",
                            ledger.capture->other_link);
    text += fragments_text(ledger.ip_fragments) + decapsulated_text(ledger);
    text += queue_pairs_text(ledger) + psns_text(ledger.psns);
    text += fmt::format("events    {} complete, {} incomplete, {} written\n", ledger.get(EventCounter::complete),
                        ledger.incomplete(), ledger.get(EventCounter::written));
    if (const std::string why = events_text(ledger, core::Fate::refused); !why.empty())
        text += fmt::format(
            "          refused as a whole because of: {}{}\n", why,
            ledger.overload.times == 0 ? "" : fmt::format("; {} kept while overloaded", ledger.overload.kept));
    if (const std::string why = events_text(ledger, core::Fate::partial); !why.empty())
        text += fmt::format("          incomplete because of: {}\n", why);
    if (const std::string why = events_text(ledger, core::Fate::lost); !why.empty())
        text += fmt::format("          not written because of: {}\n", why);
    for (std::size_t i = 0; i < ledger.sources.size() && i < 32; ++i)
        if (ledger.sources[i].missing_packets > 0)
            text +=
                fmt::format("source {}  {} packets, {}{} missing\n", i, ledger.sources[i].packets,
                            ledger.sources[i].missing_guessed > 0 ? "about " : "", ledger.sources[i].missing_packets);
    const auto loss = ledger.wire_loss();
    if (ledger.missing_at_end > 0)
        text += fmt::format("          the end of the run cut {} of them off\n", ledger.missing_at_end);
    if (ledger.missing_at_start > 0)
        text += fmt::format("          {} of them may have been sent before the run began\n", ledger.missing_at_start);
    text += fmt::format("lost before weir: {}", loss.has_value() ? std::to_string(*loss) + " packets" : "unknown");
    if (ledger.device_missed > 0) text += fmt::format(" (the device says it dropped {})", ledger.device_missed);
    if (idle_for_long(seconds, active_seconds))
        text += fmt::format("\nrates     {}; {:.2f} s in which packets came\n          {}; {:.2f} s of the run\n",
                            rates_text(rates_over(ledger, active_seconds)), active_seconds,
                            rates_text(rates_over(ledger, seconds)), seconds);
    else
        text += fmt::format("\nrates     {}; {:.2f} s\n", rates_text(rates_over(ledger, seconds)), seconds);
    if (const std::uint64_t events = ledger.latency.count(); events > 0)
        text += fmt::format(
            "latency   {:.1f} us for half of the events, {:.1f} for 99 %, {:.1f} for 99.9 %, {:.1f} at most\n",
            static_cast<double>(ledger.latency.quantile_ns(0.5)) * 1e-3,
            static_cast<double>(ledger.latency.quantile_ns(0.99)) * 1e-3,
            static_cast<double>(ledger.latency.quantile_ns(0.999)) * 1e-3,
            static_cast<double>(ledger.latency.longest_ns()) * 1e-3);
    const std::string imbalance = ledger.imbalance();
    return text + (imbalance.empty() ? "balanced: every packet, message and event is accounted for\n"
                                     : "NOT BALANCED: " + imbalance + "\n");
}

}  // namespace weir::observe
