#include "observe/ledger_collect.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/counted_numbers.hpp"
#include "config/device_facts.hpp"
#include "config/names.hpp"
#include "observe/address_text.hpp"
#include "observe/sink_account.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

using assemble::EventCounter;
using wire::PacketCounter;

namespace {

template <class E, std::size_t N>
void add(std::array<std::uint64_t, N>& sums, const core::Tally<E>& tally) {
    for (std::size_t i = 0; i < N; ++i) sums[i] += tally.get(static_cast<E>(i));
}

Ledger::Before before_device(const port::LivePort::Setup& setup) {
    if (setup.interface.empty()) return Ledger::Before::nothing;
    return setup.interface_is_made_up ? Ledger::Before::kernel : Ledger::Before::kernel_and_card;
}

void collect_input(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    if (pipeline.capture() != nullptr) {
        ledger.received = pipeline.capture()->records();
        ledger.received_bytes = pipeline.capture()->record_bytes();
        ledger.received_by = "capture reader";
        ledger.capture = {pipeline.capture()->skipped(), pipeline.capture()->other_link(), pipeline.capture()->unread(),
                          0};
        add(ledger.packets, pipeline.capture()->packets());
        return;
    }
    for (const auto& rx : pipeline.rx()) ledger.received_bytes += rx->received_bytes();
    if (pipeline.is_builder()) {
        for (const auto& rx : pipeline.rx()) ledger.received += rx->received_packets();
        ledger.received_by = "readout nodes";
        ledger.is_share = true;
        return;
    }
    std::size_t built_in = 0;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const port::LivePort::DeviceCounters counters = pipeline.ports()[i]->counters();
        const config::PortConfig& config = pipeline.options().config.ports[i];
        const port::LivePort::Setup& setup = pipeline.ports()[i]->setup();
        Ledger::Device device{
            config.name,        config::driver_of(config.device), counters.received,    counters.missed,
            counters.no_buffer, counters.missed_by_interface,     before_device(setup), setup.interface};
        if (config::is_simulator(config.device))
            device.missed = device.missed.value_or(0) + pipeline.built_in()[built_in++]->missed();
        ledger.received += device.received;
        ledger.device_missed += device.missed.value_or(0) + device.no_buffer.value_or(0);
        ledger.devices.push_back(std::move(device));
    }
    ledger.received_by = "device";
}

void collect_queue_pairs(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    constexpr std::array states = {"reset", "ready", "error"};
    const config::RunConfig& config = pipeline.options().config;
    for (std::uint32_t source = 0; source < config.sources.size(); ++source)
        for (const auto& rx : pipeline.rx()) {
            if (!rx->answers_source(source)) continue;
            const roce::Responder::Status status = rx->queue_pair(source);
            const config::StreamConfig& stream = config.streams[config.sources[source].stream];
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
        source.missing_guessed = std::min(source.missing_guessed, beyond);
        auto& at_start = source.ends.cut_at_start.packets;
        at_start = std::min(at_start, beyond - source.missing_at_end);
    }
    for (const Ledger::Source& source : ledger.sources) {
        ledger.missing_at_end += source.missing_at_end;
        ledger.missing_at_start += source.ends.cut_at_start.packets;
    }
}

stages::EventSpan::Summary span_of_events(const pipeline::Pipeline& pipeline) {
    stages::EventSpan::Summary all;
    for (const auto& worker : pipeline.work()) {
        const stages::EventSpan::Summary one = worker->event_span();
        all.first_ns = std::min(all.first_ns, one.first_ns);
        all.last_ns = std::max(all.last_ns, one.last_ns);
        all.longest_ns = std::max(all.longest_ns, one.longest_ns);
    }
    return all;
}

/// What lies beyond the beginning and the end of the recording, and which sources began late or stopped.
void collect_ends(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    if (ledger.is_share) return;  // other builders have the events before and after
    ledger.input_stopped = ledger.is_unread() || (pipeline.capture() != nullptr && pipeline.capture()->was_stopped());
    const stages::EventSpan::Summary run = span_of_events(pipeline);
    bool is_cut = false;
    std::uint64_t stopped_events = 0;
    for (std::uint32_t s = 0; s < ledger.sources.size(); ++s) {
        std::vector<stages::SourceSpan::Summary> spans;
        std::vector<stages::CutOff::Summary> cuts;
        for (const auto& worker : pipeline.work()) {
            spans.push_back(worker->source_span(s));
            cuts.push_back(worker->cut_off(s));
        }
        Ledger::Source& source = ledger.sources[s];
        const stages::SourceSpan::Summary span = stages::SourceSpan::join(spans);
        source.ends = judge_ends(span, run, ledger.input_stopped);
        if (ledger.is_unread()) source.ends.stopped.reset();  // it may go on behind what could be read
        ledger.cut_at_start = std::max(ledger.cut_at_start, source.ends.cut_at_start.events);
        if (source.ends.stopped) stopped_events = std::max(stopped_events, source.ends.stopped->events);
        // A detector that has sent everything has nothing more to come; one that goes on may be in any event.
        const bool goes_on = pipeline.is_live() && !pipeline.input_exhausted();
        const bool reaches_beyond =
            !source.ends.stopped && (goes_on || ledger.is_unread() || (!pipeline.is_live() && source.ends.cut_at_end));
        if (reaches_beyond) source.missing_at_end = cut_off_packets(cuts);
        is_cut |= source.missing_at_end > 0 || (reaches_beyond && span.after.events > 0 && source.ends.cut_at_end);
    }
    const std::uint64_t open_at_end = ledger.get(EventCounter::incomplete_end_of_run);
    if (is_cut) ledger.cut_at_end = open_at_end - std::min(open_at_end, stopped_events);
    if (ledger.is_unread()) ledger.cut_at_end = ledger.capture->cut_events;
    ledger.cut_at_start = std::min(ledger.cut_at_start, ledger.incomplete() - open_at_end);
}

/// Whether what is missing of a source is known.
void judge_sequences(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    const auto& geometry = pipeline.options().geometry;
    std::vector<bool> numbered(geometry.size());
    for (const PsnReport& report : ledger.psns) numbered[report.source] = report.known();
    ledger.sequence_known = ledger.all_sequenced = true;
    for (std::size_t i = 0; i < geometry.size(); ++i) {
        const bool sequenced = geometry[i].sequenced || numbered[i];
        ledger.sequence_known &= sequenced || geometry[i].message_packets > 0 ||
                                 (geometry[i].message_bytes > 0 && geometry[i].packet_payload_bytes > 0);
        ledger.all_sequenced &= sequenced;
        if (geometry[i].message_packets > 0)
            ledger.packets_per_event += geometry[i].message_packets;
        else if (geometry[i].packet_payload_bytes > 0)
            ledger.packets_per_event +=
                (geometry[i].message_bytes + geometry[i].packet_payload_bytes - 1) / geometry[i].packet_payload_bytes;
    }
}

/// Queue pairs that are counted without a beginning that is known to be the same.
std::string why_numbers_unknown(const config::RunConfig& config) {
    for (const config::StreamConfig& stream : config.streams)
        if (!counts_are_known(config, stream))
            return fmt::format(
                "event = \"count\" with {} sources and no psn: if the first message of a queue pair was lost, "
                "its numbers differ from those of the others",
                config.sources.size());
    return {};
}

void collect_sinks(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    if (pipeline.sinks().empty()) return;
    for (const auto& thread : pipeline.sinks()) {
        Ledger::Sink sink;
        sink.written = thread->written();
        sink.lost = thread->lost();
        sink.interrupted = thread->interrupted();
        const auto causes = thread->sink().causes_of_drops();
        for (std::size_t cause = 0; cause < causes.size(); ++cause)
            sink.dropped.emplace_back(causes[cause], thread->dropped(cause));
        sink.synced = thread->synced();
        sink.bytes = thread->bytes();
        if (thread->failed()) sink.error = thread->error();
        sink.disk = thread->disk();
        constexpr std::uint64_t ever = ~std::uint64_t{0};
        if (!ledger.disk.free_bytes || sink.disk.seconds_left.value_or(ever) < ledger.disk.seconds_left.value_or(ever))
            ledger.disk = sink.disk;
        ledger.sinks.push_back(std::move(sink));
    }
    std::size_t next = 0;
    for (const config::SinkConfig* config : event_sinks(pipeline.options().config))
        ledger.sinks[next++].kind = config->kind();
    const SinkAccount account = account_sinks(pipeline.options().config, pipeline.sinks());
    ledger.events[static_cast<std::size_t>(EventCounter::written)] += account.written;
    ledger.events[static_cast<std::size_t>(EventCounter::dropped_write_error)] += account.lost;
    ledger.events[static_cast<std::size_t>(EventCounter::dropped_not_taken)] += account.dropped;
    ledger.interrupted = account.interrupted;
    ledger.events_synced = account.synced;
}

/// The packets of all but the first are counted by sender.
void collect_senders(const stages::RxStage& rx, Ledger& ledger) {
    for (const stages::OtherSenders::Sender& sender : rx.other_senders().list()) {
        Ledger::Source& source = ledger.sources[sender.source];
        if (source.senders.empty())
            source.senders.push_back({address_text(rx.notes().address_of(sender.source)), source.packets});
        source.senders.push_back({address_text(sender.address), sender.packets});
        Ledger::Sender& first = source.senders.front();
        first.packets -= std::min(first.packets, sender.packets);
    }
}

void collect_decapsulated(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    const std::vector<config::PortConfig>& ports = pipeline.options().config.ports;
    for (std::size_t port = 0; port < ports.size(); ++port) {
        if (ports[port].decapsulate.empty()) continue;
        Ledger::Decapsulated& one = ledger.decapsulated.emplace_back();
        one.port = ports[port].name;
        one.tunnels = ports[port].decapsulate;
        for (std::size_t i = 0; i < wire::tunnel_count; ++i)
            for (const auto& rx : pipeline.rx()) one.taken[i] += rx->decapsulation().taken(port, wire::tunnel_at(i));
    }
}

void collect_rx(const pipeline::Pipeline& pipeline, Ledger& ledger) {
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
        for (std::uint32_t s = 0; s < ledger.sources.size(); ++s) {
            ledger.sources[s].packets += rx->source_packets(s);
            ledger.sources[s].refused += rx->notes().refused(s);
            ledger.sources[s].missing_packets += rx->missing_packets(s);
        }
    }
    for (const auto& rx : pipeline.rx()) collect_senders(*rx, ledger);
    collect_decapsulated(pipeline, ledger);
    ledger.rule_dropped_of_streams = pipeline.flows().dropped_of_streams(pipeline.rx());
}

void collect_build(const pipeline::Pipeline& pipeline, Ledger& ledger) {
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
}

void collect_work(const pipeline::Pipeline& pipeline, Ledger& ledger) {
    for (const auto& worker : pipeline.work()) {
        add(ledger.events, worker->events());
        ledger.stored_bytes += worker->stored_bytes();
        ledger.latency.add(worker->latency());
        ledger.missing_together += worker->missing_together();
        if (ledger.capture) ledger.capture->cut_events += worker->cut_events();
    }
    for (std::uint32_t s = 0; s < ledger.sources.size(); ++s) {
        stages::MissingPackets::Summary missing;
        for (const auto& worker : pipeline.work()) missing.join(worker->missing_packets(s));
        ledger.sources[s].missing_packets += missing.exact + missing.guessed();
        ledger.sources[s].missing_guessed = missing.guessed();
    }
    collect_ends(pipeline, ledger);
}

}  // namespace

Ledger collect(const pipeline::Pipeline& pipeline) {
    Ledger ledger;
    ledger.sources.resize(pipeline.options().geometry.size());
    collect_input(pipeline, ledger);
    collect_rx(pipeline, ledger);
    collect_queue_pairs(pipeline, ledger);
    collect_build(pipeline, ledger);
    collect_work(pipeline, ledger);
    ledger.unmatched = collect_unmatched(pipeline, ledger.get(PacketCounter::unsteered));
    ledger.psns = collect_psns(pipeline);
    add_missing_psns(ledger);
    ledger.reducers = collect_reducers(pipeline.work(), pipeline.pedestals(), pipeline.converters());
    collect_sinks(pipeline, ledger);
    judge_sequences(pipeline, ledger);
    ledger.numbers_unknown_because = why_numbers_unknown(pipeline.options().config);
    return ledger;
}

pipeline::Usage usage_of(const pipeline::Pipeline& pipeline, const Ledger& ledger, double seconds) {
    pipeline::Usage usage = pipeline.usage(seconds);
    for (const Ledger::Device& device : ledger.devices)
        usage.missed_packets +=
            device.missed.value_or(0) - std::min(device.missed.value_or(0), device.missed_by_interface);
    return usage;
}

}  // namespace weir::observe
