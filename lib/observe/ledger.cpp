#include "observe/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/counted_numbers.hpp"
#include "config/device_facts.hpp"
#include "config/names.hpp"
#include "observe/sink_account.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

using core::EventCounter;
using core::MessageCounter;
using core::PacketCounter;

namespace {

template <class E, std::size_t N>
void add(std::array<std::uint64_t, N>& sums, const core::Tally<E>& tally) {
    for (std::size_t i = 0; i < N; ++i) sums[i] += tally.get(static_cast<E>(i));
}

void collect_input(const Pipeline& pipeline, Ledger& ledger) {
    if (pipeline.capture() != nullptr) {
        ledger.received = pipeline.capture()->records();
        ledger.received_bytes = pipeline.capture()->record_bytes();
        ledger.received_by = "capture reader";
        add(ledger.packets, pipeline.capture()->packets());
        return;
    }
    for (const auto& rx : pipeline.rx()) ledger.received_bytes += rx->received_bytes();
    std::size_t simulated = 0;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const port::LivePort::DeviceCounters counters = pipeline.ports()[i]->counters();
        const PortConfig& config = pipeline.options().config.ports[i];
        Ledger::Device device{config.name,        port::driver_of(config.device), counters.received, counters.missed,
                              counters.no_buffer, counters.missed_by_interface};
        if (SimulatorFeeder::is_simulator(config.device))
            device.missed = device.missed.value_or(0) + pipeline.simulators()[simulated++]->missed();
        ledger.received += device.received;
        ledger.device_missed += device.missed.value_or(0) + device.no_buffer.value_or(0);
        ledger.devices.push_back(std::move(device));
    }
    ledger.received_by = "device";
}

bool is(std::string_view name, std::string_view prefix) {
    return name.starts_with(prefix);
}

/// One line for every counter that is not zero.
template <class Table, class Values>
std::string list_text(const Table& table, const Values& values, std::string_view prefix) {
    std::string text;
    for (std::size_t i = 0; i < table.size(); ++i)
        if (values[i] != 0 && is(table[i].name, prefix))
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", table[i].name.substr(prefix.size()), values[i]);
    return text;
}

std::string fragments_text(const Ledger::IpFragments& ip) {
    if (ip.fragments == 0) return {};
    std::string text = fmt::format("          {} of them were IP fragments, of {} whole datagrams: raise the MTU\n",
                                   ip.fragments, ip.datagrams);
    if (ip.reused_identification > 0)
        text += fmt::format(
            "          {} fragmented datagrams had the IP identification of the one before (first seen from {}): where "
            "fragments are lost, such a source's datagrams can be mixed up\n",
            ip.reused_identification, ip.reusing_source);
    return text;
}

std::string rate(double per_second) {
    if (per_second >= 1e6) return fmt::format("{:.2f} M/s", per_second / 1e6);
    if (per_second >= 1e3) return fmt::format("{:.1f} k/s", per_second / 1e3);
    return fmt::format("{:.1f} /s", per_second);
}

}  // namespace

std::uint64_t Ledger::incomplete() const {
    return get(EventCounter::incomplete_timeout) + get(EventCounter::incomplete_evicted) +
           get(EventCounter::incomplete_end_of_run) + get(EventCounter::incomplete_no_room);
}

namespace {

/// Whether what ends in this counter is missing for it: not what is here already, nor what a reliable sender was told
/// to send again, nor what the operator wants dropped.
bool is_loss(std::size_t counter) {
    switch (static_cast<PacketCounter>(counter)) {
        case PacketCounter::duplicate:
        case PacketCounter::roce_sequence:
        case PacketCounter::roce_not_ready:
        case PacketCounter::flow_rule:
            return false;
        default:
            return is(core::packet_counters[counter].name, "dropped.");
    }
}

}  // namespace

std::uint64_t Ledger::lost_packets() const {
    std::uint64_t lost = rule_dropped_of_streams;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (is_loss(i)) lost += packets[i];
    return lost;
}

std::uint64_t Ledger::missing_packets() const {
    std::uint64_t missing = 0;
    for (const Source& source : sources) missing += source.missing_packets;
    return missing - std::min(missing, missing_at_end);
}

std::uint64_t Ledger::lost_psns() const {
    std::uint64_t lost = 0;
    for (const PsnReport& report : psns) lost += report.lost();
    return lost;
}

std::vector<Ledger::Loss> Ledger::losses() const {
    constexpr std::string_view prefix = "dropped.";
    std::vector<Loss> found;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const std::string_view name = core::packet_counters[i].name;
        if (packets[i] > 0 && is_loss(i)) found.push_back({name.substr(prefix.size()), packets[i]});
    }
    if (rule_dropped_of_streams > 0) found.push_back({"flow_rule", rule_dropped_of_streams});
    if (device_missed > 0) found.push_back({"device", device_missed});
    if (const std::uint64_t missing = missing_packets(); missing > 0) found.push_back({"missing", missing});
    std::ranges::stable_sort(found, std::ranges::greater{}, &Loss::packets);
    return found;
}

std::uint64_t Ledger::unread_packets() const {
    std::uint64_t unread = rule_dropped_of_streams;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (is(core::packet_counters[i].name, "dropped.malformed.") ||
            is(core::packet_counters[i].name, "dropped.ring_full."))
            unread += packets[i];
    return unread;
}

std::uint64_t Ledger::stream_packets() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (!is(core::packet_counters[i].name, "not_for_us.") &&
            static_cast<PacketCounter>(i) != PacketCounter::unsteered &&
            static_cast<PacketCounter>(i) != PacketCounter::flow_rule)
            sum += packets[i];
    return sum;
}

std::optional<std::uint64_t> Ledger::wire_loss() const {
    // Sequence numbers tell only if nothing that did arrive was thrown away here: it would be missing just the same.
    if (!sequence_known || (!all_sequenced && (lost_packets() > 0 || get(EventCounter::dropped_incomplete) > 0)))
        return std::nullopt;
    if (unread_packets() > 0) return std::nullopt;
    if (stream_packets() == 0) return std::nullopt;
    // What a device dropped may have been whole events, in which nothing is missing because nothing of them came.
    const std::uint64_t missing = std::max(missing_packets(), device_missed);
    if (!numbers || all_sequenced) return missing;
    if (!numbers->why_unknown().empty()) return std::nullopt;
    return std::max(missing_packets() + numbers->missing() * packets_per_event, device_missed);
}

std::string Ledger::imbalance() const {
    std::string text;
    const auto check = [&](const char* what, std::uint64_t left, std::uint64_t right) {
        if (left != right) text += fmt::format("{}{}: {} against {}", text.empty() ? "" : "; ", what, left, right);
    };
    std::uint64_t sum = 0;
    for (const std::uint64_t value : packets) sum += value;
    check("packets received and accounted for", received, sum);
    check("packets still in flight", get(PacketCounter::in_flight), 0);
    std::uint64_t fates = 0;
    for (std::size_t i = 1; i < messages.size(); ++i) fates += messages[i];
    check("messages opened and ended", get(MessageCounter::opened), fates);
    check("events opened and closed", get(EventCounter::opened), get(EventCounter::complete) + incomplete());
    check("events closed and settled", get(EventCounter::complete) + incomplete(),
          get(EventCounter::vetoed) + get(EventCounter::dropped_incomplete) + get(EventCounter::dropped_no_room) +
              get(EventCounter::dropped_reduce_error) + get(EventCounter::dropped_write_error) +
              get(EventCounter::written));
    return text;
}

namespace {

void collect_queue_pairs(const Pipeline& pipeline, Ledger& ledger) {
    constexpr std::array states = {"reset", "ready", "error"};
    const RunConfig& config = pipeline.options().config;
    for (std::uint32_t source = 0; source < config.sources.size(); ++source)
        for (const auto& rx : pipeline.rx()) {
            if (!rx->answers_source(source)) continue;
            const roce::Responder::Status status = rx->queue_pair(source);
            const StreamConfig& stream = config.streams[config.sources[source].stream];
            const auto& peers = stream.roce.peers;
            ledger.queue_pairs.push_back({source, config.sources[source].key,
                                          peers.empty() ? 0 : peers[source - stream.first_source].qp,
                                          states[static_cast<std::size_t>(status.state)], status.psn, status.msn});
        }
}

/// What PSNs prove to be missing is missing, whole messages included. Packets of incomplete events that they do not
/// know of can be told from those that did arrive, and found no place, only where weir lost none itself.
void add_missing_psns(Ledger& ledger) {
    const bool kept_all = ledger.lost_packets() == 0;
    for (const PsnReport& report : ledger.psns) {
        Ledger::Source& source = ledger.sources[report.source];
        if (!report.proven) continue;
        const std::uint64_t beyond =
            kept_all ? source.missing_packets - std::min(source.missing_packets, report.lost()) : 0;
        source.missing_packets = report.lost() + beyond;
        source.missing_at_end = std::min(source.missing_at_end, beyond);
    }
    for (const Ledger::Source& source : ledger.sources) ledger.missing_at_end += source.missing_at_end;
}

/// Whether what is missing of a source is known.
void judge_sequences(const Pipeline& pipeline, Ledger& ledger) {
    const auto& geometry = pipeline.options().geometry;
    std::vector<bool> numbered(geometry.size());
    for (const PsnReport& report : ledger.psns) numbered[report.source] = report.known();
    ledger.sequence_known = ledger.all_sequenced = true;
    for (std::size_t i = 0; i < geometry.size(); ++i) {
        const bool sequenced = geometry[i].sequenced || numbered[i];
        ledger.sequence_known &= sequenced || (geometry[i].message_bytes > 0 && geometry[i].packet_payload_bytes > 0);
        ledger.all_sequenced &= sequenced;
        if (geometry[i].packet_payload_bytes > 0)
            ledger.packets_per_event +=
                (geometry[i].message_bytes + geometry[i].packet_payload_bytes - 1) / geometry[i].packet_payload_bytes;
    }
}

/// Queue pairs that are counted without a beginning that is known to be the same.
std::string why_numbers_unknown(const RunConfig& config) {
    for (const StreamConfig& stream : config.streams)
        if (!counts_are_known(config, stream))
            return fmt::format(
                "event = \"count\" with {} sources and no psn: if the first message of a queue pair was "
                "lost, its numbers differ from those of the others",
                config.sources.size());
    return {};
}

nlohmann::json queue_pairs_json(const Ledger& ledger) {
    nlohmann::json answers = nlohmann::json::object();
    for (std::size_t i = 0; i < ledger.answers.size(); ++i)
        answers[std::string(core::answer_counters[i].name)] = ledger.answers[i];
    nlohmann::json queue_pairs = nlohmann::json::array();
    for (const Ledger::QueuePair& qp : ledger.queue_pairs)
        queue_pairs.push_back(
            {{"source", qp.source}, {"qp", qp.qp}, {"state", qp.state}, {"psn", qp.psn}, {"msn", qp.msn}});
    return {{"answers", answers}, {"queue_pairs", queue_pairs}, {"psns", psns_json(ledger.psns)}};
}

std::string queue_pairs_text(const Ledger& ledger) {
    if (ledger.queue_pairs.empty()) return {};
    const std::string sent = list_text(core::answer_counters, ledger.answers, "");
    std::string text = fmt::format("answers   {}\n", sent.empty() ? "none" : sent);
    for (const Ledger::QueuePair& qp : ledger.queue_pairs)
        if (qp.state == "error")
            text += fmt::format("          qp {:#x} (source {}) is in error: docs/guides/LOSSES.md#roce\n", qp.qp,
                                qp.source);
    return text;
}

void collect_sinks(const Pipeline& pipeline, Ledger& ledger) {
    if (pipeline.sinks().empty()) return;
    for (const auto& thread : pipeline.sinks()) {
        Ledger::Sink sink;
        sink.written = thread->written();
        sink.lost = thread->lost();
        sink.synced = thread->synced();
        sink.bytes = thread->bytes();
        if (thread->failed()) sink.error = thread->error();
        sink.disk = thread->disk();
        constexpr std::uint64_t ever = ~std::uint64_t{0};
        if (ledger.sinks.empty() || sink.disk.seconds_left.value_or(ever) < ledger.disk.seconds_left.value_or(ever))
            ledger.disk = sink.disk;
        ledger.sinks.push_back(std::move(sink));
    }
    std::size_t next = 0;
    for (const SinkConfig* config : event_sinks(pipeline.options().config))
        ledger.sinks[next++].kind = sink_kind_name(config->kind);
    const SinkAccount account = account_sinks(pipeline.options().config, pipeline.sinks());
    ledger.events[static_cast<std::size_t>(EventCounter::written)] += account.written;
    ledger.events[static_cast<std::size_t>(EventCounter::dropped_write_error)] += account.lost;
    ledger.events_synced = account.synced;
}

nlohmann::json sinks_json(const Ledger& ledger) {
    nlohmann::json sinks = nlohmann::json::array();
    for (const Ledger::Sink& sink : ledger.sinks) {
        sinks.push_back({{"kind", sink.kind},
                         {"written", sink.written},
                         {"lost", sink.lost},
                         {"synced", sink.synced},
                         {"bytes", sink.bytes}});
        if (!sink.error.empty()) sinks.back()["error"] = sink.error;
        if (sink.disk.free_bytes) sinks.back()["free_bytes"] = *sink.disk.free_bytes;
    }
    return sinks;
}

}  // namespace

Ledger collect(const Pipeline& pipeline) {
    Ledger ledger;
    collect_input(pipeline, ledger);
    const std::size_t sources = pipeline.options().geometry.size();
    ledger.sources.resize(sources);
    for (const auto& rx : pipeline.rx()) {
        add(ledger.packets, rx->packets());
        add(ledger.messages, rx->messages());
        add(ledger.answers, rx->answers());
        const port::IpReassembly::Counts pieces = rx->reassembly().counts();
        ledger.ip_fragments.fragments += pieces.fragments;
        ledger.ip_fragments.datagrams += pieces.datagrams;
        ledger.ip_fragments.reused_identification += pieces.reused_identification;
        if (ledger.ip_fragments.reusing_source.empty())
            ledger.ip_fragments.reusing_source = rx->reassembly().reusing_source();
        for (std::uint32_t s = 0; s < sources; ++s) {
            ledger.sources[s].packets += rx->source_packets(s);
            ledger.sources[s].refused += rx->notes().refused(s);
            ledger.sources[s].missing_packets += rx->missing_packets(s);
        }
    }
    collect_queue_pairs(pipeline, ledger);
    ledger.sources_needed = pipeline.options().config.events.sources;
    ledger.overload.policy = overload_text(pipeline.options().config.events);
    ledger.overload.input_waits = pipeline.options().wait;
    for (const auto& build : pipeline.build()) {
        add(ledger.packets, build->packets());
        add(ledger.messages, build->messages());
        add(ledger.events, build->events());
        ledger.placed_bytes += build->placed_bytes();
        ledger.events_open += build->open_events();
        ledger.events_queued += build->queued_events();
        ledger.overload.times += build->overload_times();
        ledger.overload.kept += build->prescale_kept();
    }
    ledger.rule_dropped_of_streams = pipeline.flows().dropped_of_streams(pipeline.rx());
    for (const auto& worker : pipeline.work()) {
        add(ledger.events, worker->events());
        ledger.stored_bytes += worker->stored_bytes();
        ledger.latency.add(worker->latency());
        ledger.missing_together += worker->missing_together();
        for (std::uint32_t s = 0; s < sources; ++s) ledger.sources[s].missing_packets += worker->missing_packets(s);
    }
    // A capture, and a detector that has sent everything, have nothing more to come.
    if (pipeline.capture() == nullptr && !pipeline.input_exhausted())
        for (std::uint32_t s = 0; s < sources; ++s) {
            std::vector<CutOff::Summary> workers;
            for (const auto& worker : pipeline.work()) workers.push_back(worker->cut_off(s));
            ledger.sources[s].missing_at_end = cut_off_packets(workers);
        }
    ledger.unmatched = collect_unmatched(pipeline, ledger.get(PacketCounter::unsteered));
    ledger.psns = collect_psns(pipeline);
    add_missing_psns(ledger);
    ledger.reducers = collect_reducers(pipeline.work(), pipeline.pedestals(), pipeline.converters());
    collect_sinks(pipeline, ledger);
    judge_sequences(pipeline, ledger);
    ledger.numbers_unknown_because = why_numbers_unknown(pipeline.options().config);
    return ledger;
}

nlohmann::json ledger_json(const Ledger& ledger) {
    using nlohmann::json;
    const auto known = [](const std::optional<std::uint64_t>& value) {
        return value.has_value() ? json(*value) : json("unknown");
    };
    json packets = {{"received", ledger.received}, {"not_for_us", json::object()}, {"dropped", json::object()}};
    json events = {{"incomplete", json::object()}, {"dropped", json::object()}};
    json messages = {{"refused", json::object()}};
    // A dotted name goes into the object that its first part names; the rest of it is one flat key.
    const auto put = [](json& into, std::string_view name, std::uint64_t value) {
        const std::size_t dot = name.find('.');
        if (dot == std::string_view::npos)
            into[std::string(name)] = value;
        else
            into[std::string(name.substr(0, dot))][std::string(name.substr(dot + 1))] = value;
    };
    for (std::size_t i = 0; i < ledger.packets.size(); ++i)
        put(packets, core::packet_counters[i].name, ledger.packets[i]);
    for (std::size_t i = 0; i < ledger.events.size(); ++i) put(events, core::event_counters[i].name, ledger.events[i]);
    for (std::size_t i = 0; i < ledger.messages.size(); ++i)
        put(messages, core::message_counters[i].name, ledger.messages[i]);
    json sources = json::array();
    for (std::size_t i = 0; i < ledger.sources.size(); ++i) {
        sources.push_back({{"id", i},
                           {"packets", ledger.sources[i].packets},
                           {"missing_packets", ledger.sources[i].missing_packets},
                           {"refused", ledger.sources[i].refused}});
        if (ledger.numbers) sources.back()["numbers_missing"] = source_numbers_json(*ledger.numbers, i);
    }
    json result = {
        {"packets", packets},
        {"bytes",
         {{"received", ledger.received_bytes}, {"placed", ledger.placed_bytes}, {"stored", ledger.stored_bytes}}},
        {"messages", messages},
        {"events", events},
        {"balanced", ledger.imbalance().empty()},
        {"device_missed", ledger.device_missed},
        {"unmatched", unmatched_json(ledger.unmatched, ledger.get(PacketCounter::unsteered))},
        {"sources", sources}};
    for (const Ledger::Device& device : ledger.devices) {
        json one{{"port", device.port},
                 {"driver", device.driver},
                 {"received", device.received},
                 {"missed", known(device.missed)},
                 {"no_buffer", known(device.no_buffer)}};
        if (device.missed_by_interface > 0) one["missed_by_interface"] = device.missed_by_interface;
        result["devices"].push_back(std::move(one));
    }
    if (!ledger.psns.empty()) result["roce"] = queue_pairs_json(ledger);
    result["ip_fragments"] = {{"fragments", ledger.ip_fragments.fragments},
                              {"datagrams", ledger.ip_fragments.datagrams},
                              {"reused_identification", ledger.ip_fragments.reused_identification},
                              {"reusing_source", ledger.ip_fragments.reusing_source}};
    result["overload"] = {{"policy", ledger.overload.policy},
                          {"input_waits", ledger.overload.input_waits},
                          {"times", ledger.overload.times},
                          {"kept", ledger.overload.kept},
                          {"refused", ledger.get(EventCounter::refused_prescaled)}};
    if (!ledger.reducers.empty()) result["reduce"] = reduce_json(ledger.reducers);
    if (!ledger.sinks.empty()) result["sinks"] = sinks_json(ledger);
    if (ledger.numbers) result["numbers_missing"] = numbers_json(*ledger.numbers);
    if (!ledger.numbers_unknown_because.empty()) result["numbers_unknown_because"] = ledger.numbers_unknown_because;
    const auto loss = ledger.wire_loss();
    result["wire_loss"] = loss.has_value() ? json(*loss) : json("unknown");
    return result;
}

Rates rates_over(const Ledger& ledger, double seconds) {
    const double s = seconds > 0 ? seconds : 1;
    const auto events = static_cast<double>(ledger.get(EventCounter::complete) + ledger.incomplete());
    return {static_cast<double>(ledger.received) / s, static_cast<double>(ledger.received_bytes) * 8e-9 / s, events / s,
            static_cast<double>(ledger.stored_bytes) * 1e-6 / s, seconds};
}

namespace {

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

nlohmann::json rates_json(const Ledger& ledger, double seconds, double active_seconds) {
    const auto json_of = [](const Rates& rates) {
        return nlohmann::json{{"seconds", rates.seconds},
                              {"packets_per_s", rates.packets_per_s},
                              {"gbps", rates.gbps},
                              {"events_per_s", rates.events_per_s},
                              {"sink_bytes_per_s", rates.sink_mb_per_s * 1e6}};
    };
    return {{"active", json_of(rates_over(ledger, active_seconds > 0 ? active_seconds : seconds))},
            {"run", json_of(rates_over(ledger, seconds))}};
}

std::string ledger_text(const Ledger& ledger, double seconds, double active_seconds) {
    std::string text = fmt::format("packets   {} received ({}), {} placed in events\n", ledger.received,
                                   ledger.received_by, ledger.get(PacketCounter::placed));
    if (const std::string dropped = list_text(core::packet_counters, ledger.packets, "dropped."); !dropped.empty())
        text += fmt::format("          not placed: {}\n", dropped);
    if (const std::string foreign = list_text(core::packet_counters, ledger.packets, "not_for_us."); !foreign.empty())
        text += fmt::format("          not for us: {}\n", foreign);
    if (ledger.get(PacketCounter::unsteered) + ledger.get(PacketCounter::control) > 0)
        text += fmt::format("          no stream wants them: {}, control: {}\n", ledger.get(PacketCounter::unsteered),
                            ledger.get(PacketCounter::control));
    text += fragments_text(ledger.ip_fragments);
    text += queue_pairs_text(ledger) + psns_text(ledger.psns);
    text += fmt::format("events    {} complete, {} incomplete, {} written\n", ledger.get(EventCounter::complete),
                        ledger.incomplete(), ledger.get(EventCounter::written));
    if (const std::string why = list_text(core::event_counters, ledger.events, "refused."); !why.empty())
        text += fmt::format(
            "          refused as a whole because of: {}{}\n", why,
            ledger.overload.times == 0 ? "" : fmt::format("; {} kept while overloaded", ledger.overload.kept));
    if (const std::string why = list_text(core::event_counters, ledger.events, "incomplete."); !why.empty())
        text += fmt::format("          incomplete because of: {}\n", why);
    if (const std::string why = list_text(core::event_counters, ledger.events, "dropped."); !why.empty())
        text += fmt::format("          not written because of: {}\n", why);
    for (std::size_t i = 0; i < ledger.sources.size() && i < 32; ++i)
        if (ledger.sources[i].missing_packets > 0)
            text += fmt::format("source {}  {} packets, {} missing\n", i, ledger.sources[i].packets,
                                ledger.sources[i].missing_packets);
    const auto loss = ledger.wire_loss();
    if (ledger.missing_at_end > 0)
        text += fmt::format("          the end of the run cut {} of them off\n", ledger.missing_at_end);
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

}  // namespace weir::pipeline
