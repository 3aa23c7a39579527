#include "observe/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "observe/geometry_hint.hpp"
#include "pipeline/pipeline.hpp"
#include "wire/decapsulation.hpp"
#include "wire/header_kind.hpp"

namespace weir::observe {

namespace {

Observations::Count header_count(const stages::StreamRuntime& stream, const config::StreamConfig& config,
                                 std::uint32_t packed) {
    if (packed == stages::RxNotes::other_byte_order)
        return {
            fmt::format("{} with byte_order = \"{}\"", config.format, stream.context.big_endian ? "little" : "big")};
    const wire::Header header = wire::Header::unpack(packed);
    return {.what = wire::header_text(header), .own_format = wire::header_format(header) == config.format};
}

std::string known_ids(const config::RunConfig& config) {
    std::string text;
    for (const config::StreamConfig& stream : config.streams)
        for (const std::uint32_t id : stream.source_ids) text += fmt::format("{}{}", text.empty() ? "" : ", ", id);
    constexpr std::size_t shown_max = 120;
    return text.size() <= shown_max ? text : text.substr(0, shown_max) + "...";
}

/// What all workers saw missing in every message of the source.
void note_same_missing(const pipeline::Pipeline& pipeline, std::uint32_t id, Observations::Source& source) {
    const pipeline::Pipeline::Options& options = pipeline.options();
    const stages::SourceGeometry& geometry = options.geometry[id];
    if (geometry.message_bytes == 0 || geometry.packet_payload_bytes == 0) return;
    stages::AlwaysMissing::Summary all;
    for (const auto& worker : pipeline.work()) all.join(worker->always_missing(id));
    if (all.ranges.empty()) return;
    const auto packets = [&](std::uint64_t bytes) {
        return (bytes + geometry.packet_payload_bytes - 1) / geometry.packet_payload_bytes;
    };
    std::uint64_t bytes = 0;
    for (const assemble::ByteRange& range : all.ranges) bytes += range.end - range.begin;
    source.same_missing = packets(bytes);
    source.message_packets = packets(geometry.message_bytes);
    source.messages = all.messages;
    source.other_missing = packets(all.missing_bytes - std::min(all.missing_bytes, bytes * all.messages));
    source.setting =
        fitting_setting(options.config, options.config.streams[options.config.sources[id].stream], all.ranges);
}

/// The samples of all rx lcores added up, the most frequent first.
template <class Samples, class Text>
std::vector<Observations::Count> merged(const pipeline::Pipeline& pipeline, Samples samples, Text text) {
    std::map<std::uint64_t, std::uint64_t> sums;
    for (const auto& rx : pipeline.rx())
        for (const auto& entry : samples(*rx).entries())
            if (entry.count > 0) sums[entry.value] += entry.count;
    std::vector<Observations::Count> counts;
    for (const auto& [value, packets] : sums) {
        counts.push_back(text(value));
        counts.back().packets = packets;
    }
    std::ranges::stable_sort(counts, std::ranges::greater{}, &Observations::Count::packets);
    return counts;
}

/// Of the rx lcores that poll the port's queues, the one that was away for the longest time.
void note_pause(const plan::Plan& plan, std::size_t index, const std::vector<pipeline::Usage::Lcore>& lcores,
                Observations::Port& port) {
    for (const plan::Placement::Queue& queue : plan.placement.queues) {
        const auto lcore = std::ranges::find(lcores, plan.rx[queue.rx], &pipeline::Usage::Lcore::id);
        if (queue.port != index || lcore == lcores.end()) continue;
        const double pause_s = static_cast<double>(lcore->longest_pause_ns) * 1e-9;
        if (pause_s <= port.pause_s) continue;
        port.pause_s = pause_s;
        port.pause_after_s = static_cast<double>(lcore->pause_after_ns) * 1e-9;
    }
}

/// What refused packets, and those of no stream, are.
void note_odd_packets(const pipeline::Pipeline& pipeline, Observations& seen) {
    const pipeline::Pipeline::Options& options = pipeline.options();
    seen.wrong_lengths = merged(
        pipeline, [](const stages::RxStage& rx) -> const auto& { return rx.notes().wrong_lengths(); },
        [&](std::uint64_t value) {
            const stages::StreamRuntime& stream = options.streams[value >> 32U];
            return Observations::Count{
                fmt::format("{} bytes in a stream of {}", static_cast<std::uint32_t>(value), stream.format->name)};
        });
    if (pipeline.capture() != nullptr)
        seen.stamps_ran_back_s = static_cast<double>(pipeline.capture()->ran_back_ns()) / core::ns_per_s;
    seen.merged = merged(
        pipeline, [](const stages::RxStage& rx) -> const auto& { return rx.notes().merged(); },
        [&](std::uint64_t value) {
            const std::uint64_t count = value >> 16U & 0xffff;
            const std::uint64_t bytes = value & 0xffff;
            return Observations::Count{fmt::format("{} bytes = {} x {} in a stream of {}", bytes, count, bytes / count,
                                                   options.streams[value >> 32U].format->name)};
        });
    seen.encapsulated = merged(
        pipeline, [](const stages::RxStage& rx) -> const auto& { return rx.notes().encapsulated(); },
        [&](std::uint64_t value) {
            const auto by = static_cast<wire::Encapsulation>(value & 0xff);
            if (const auto tunnel = wire::tunnel_of(by)) {
                std::string name(wire::name_of(*tunnel));
                if (std::ranges::find(seen.decapsulate, name) == seen.decapsulate.end())
                    seen.decapsulate.push_back(std::move(name));
            }
            if (const std::uint64_t bytes = value >> 8U; bytes > 0 && seen.take_off.empty())
                seen.take_off = fmt::format("editcap -L -C {} IN OUT", bytes);
            return Observations::Count{std::string(wire::name_of(by))};
        });
    seen.unknown_ids = merged(
        pipeline, [](const stages::RxStage& rx) -> const auto& { return rx.notes().unknown_ids(); },
        [](std::uint64_t value) { return Observations::Count{std::to_string(static_cast<std::uint32_t>(value))}; });
    seen.known_ids = known_ids(options.config);
    seen.headers = merged(
        pipeline, [](const stages::RxStage& rx) -> const auto& { return rx.notes().headers(); },
        [&](std::uint64_t value) {
            const auto stream = static_cast<std::size_t>(value >> 32U);
            return header_count(options.streams[stream], options.config.streams[stream],
                                static_cast<std::uint32_t>(value));
        });
}

}  // namespace

/// Called every few milliseconds; what came since the last call came somewhere in between.
void Watch::look_for_packets(const pipeline::Pipeline& pipeline, double seconds) {
    std::uint64_t packets = 0;
    for (const auto& rx : pipeline.rx()) {
        packets += rx->received_packets();
        for (std::size_t i = 0; i < wire::packet_counters.size(); ++i) {
            const auto counter = static_cast<wire::PacketCounter>(i);
            // What a flow rule drops may be of a stream.
            if (wire::packet_counters[i].fate == core::Fate::foreign && counter != wire::PacketCounter::flow_rule)
                packets -= std::min(packets, rx->packets().get(counter));
        }
    }
    if (packets > stream_packets_) {
        if (stream_packets_ == 0) first_packet_s_ = packets_looked_s_;
        last_packet_s_ = seconds;
        stream_packets_ = packets;
    }
    packets_looked_s_ = seconds;
}

void Watch::look(const pipeline::Pipeline& pipeline, double seconds) {
    look_for_packets(pipeline, seconds);
    constexpr double interval_s = 0.1;
    if (seconds - looked_s_ < interval_s) return;
    looked_s_ = seconds;
    const pipeline::Usage now = pipeline.usage(seconds);
    pipeline::Usage since = now;
    since -= looked_;
    if (since.refused_packets + since.evicted_events > 0) overloaded_ += since;
    looked_ = now;
    const pipeline::Levels levels = pipeline.levels();
    queued_max_ = std::max(queued_max_, levels.queued.fraction());
    writer_max_ = std::max(writer_max_, levels.writer.fraction());
    sources_.resize(pipeline.options().geometry.size());
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
        std::uint64_t packets = 0;
        for (const auto& rx : pipeline.rx()) packets += rx->source_packets(s);
        if (packets != sources_[s].packets) sources_[s] = {packets, seconds};
    }
}

pipeline::Usage Watch::decisive(const pipeline::Usage& whole) const {
    return overloaded_.stages.empty() ? whole : overloaded_;
}

Observations Watch::observations(const pipeline::Pipeline& pipeline, const Ledger& ledger, double seconds) const {
    const pipeline::Pipeline::Options& options = pipeline.options();
    Observations seen;
    seen.replay = !pipeline.is_live();
    seen.seconds = seconds;
    seen.timeout_ms = options.config.events.timeout_ms;
    seen.open_limit = options.plan.open_limit;
    seen.open_max = options.plan.open_max;
    seen.queued_max = queued_max_;
    seen.writer_max = writer_max_;
    seen.reducer = !options.config.reduce.empty();
    double latest_s = 0;
    for (const Activity& source : sources_) latest_s = std::max(latest_s, source.last_s);
    const double patience_s = std::max(1.0, 4e-3 * seen.timeout_ms);
    for (std::size_t s = 0; s < options.config.sources.size(); ++s) {
        // Silent is who stopped while another one went on; in a replay the clock says nothing about that.
        const double gap = s < sources_.size() && !seen.replay ? latest_s - sources_[s].last_s : 0;
        Observations::Source source{options.config.sources[s].label, gap > patience_s ? gap : 0};
        source.by_header = options.streams[options.config.sources[s].stream].source_in_header;
        note_same_missing(pipeline, static_cast<std::uint32_t>(s), source);
        seen.sources.push_back(std::move(source));
    }
    const std::vector<pipeline::Usage::Lcore> lcores = pipeline.usage(seconds).lcores;
    for (std::size_t i = 0; i < ledger.devices.size(); ++i) {
        const Ledger::Device& device = ledger.devices[i];
        const port::LivePort& port = *pipeline.ports()[i];
        const port::LivePort::Link link = port.link();
        const port::LivePort::Answers answers = port.answers();
        seen.ports.push_back({device.port, device.driver, device.missed.value_or(0), device.no_buffer.value_or(0),
                              options.config.ports[i].mtu, device.received, answers.arp + answers.icmp, link.up,
                              link.mbps, device.missed_by_interface, port.setup().interface});
        note_pause(options.plan, i, lcores, seen.ports.back());
    }
    note_odd_packets(pipeline, seen);
    return seen;
}

}  // namespace weir::observe
