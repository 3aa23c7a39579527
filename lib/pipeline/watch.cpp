// What a run shows only while it goes on, and the observations that the summary is made of.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/diagnosis.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::pipeline {

namespace {

std::string ip_text(std::uint32_t ip) {
    return fmt::format("{}.{}.{}.{}", ip >> 24U, ip >> 16U & 255U, ip >> 8U & 255U, ip & 255U);
}

std::string stranger_text(std::uint64_t value) {
    const Stranger stranger = Stranger::unpack(value);
    const std::string from = stranger.src == 0 ? "an IPv6 address" : ip_text(stranger.src);  // which is not kept
    return fmt::format("{} {} from {}", stranger.roce ? "queue pair" : "UDP port", stranger.key, from);
}

/// The samples of all rx lcores added up, the most frequent first.
template <class Samples, class Text>
std::vector<Observations::Count> merged(const Pipeline& pipeline, Samples samples, Text text) {
    std::map<std::uint64_t, std::uint64_t> sums;
    for (const auto& rx : pipeline.rx())
        for (const TopValues::Entry& entry : samples(*rx).entries())
            if (entry.count > 0) sums[entry.value] += entry.count;
    std::vector<Observations::Count> counts;
    for (const auto& [value, packets] : sums) counts.push_back({text(value), packets});
    std::ranges::stable_sort(counts, std::ranges::greater{}, &Observations::Count::packets);
    return counts;
}

}  // namespace

void Watch::look(const Pipeline& pipeline, double seconds) {
    constexpr double interval_s = 0.1;
    if (seconds - looked_s_ < interval_s) return;
    looked_s_ = seconds;
    const Usage now = pipeline.usage(seconds);
    Usage since = now;
    since -= looked_;
    if (since.refused_packets + since.evicted_events > 0) overloaded_ += since;
    looked_ = now;
    const Levels levels = pipeline.levels();
    queued_max_ = std::max(queued_max_, levels.queued.fraction());
    writer_max_ = std::max(writer_max_, levels.writer.fraction());
    sources_.resize(pipeline.options().geometry.size());
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
        std::uint64_t packets = 0;
        for (const auto& rx : pipeline.rx()) packets += rx->source_packets(s);
        if (packets != sources_[s].packets) sources_[s] = {packets, seconds};
    }
}

Usage Watch::decisive(const Usage& whole) const {
    return overloaded_.stages.empty() ? whole : overloaded_;
}

Observations Watch::observations(const Pipeline& pipeline, const Ledger& ledger, double seconds) const {
    const Pipeline::Options& options = pipeline.options();
    Observations seen;
    seen.replay = options.capture.has_value();
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
        seen.sources.push_back({options.config.sources[s].label, gap > patience_s ? gap : 0});
    }
    for (std::size_t i = 0; i < ledger.devices.size(); ++i) {
        const Ledger::Device& device = ledger.devices[i];
        const port::LivePort& port = *pipeline.ports()[i];
        const port::LivePort::Link link = port.link();
        const port::LivePort::Answers answers = port.answers();
        seen.ports.push_back({device.port, device.driver, device.missed.value_or(0), device.no_buffer.value_or(0),
                              options.config.ports[i].mtu, device.received, answers.arp + answers.icmp, link.up,
                              link.mbps, device.missed_by_interface, port.setup().interface});
    }
    seen.strangers = merged(
        pipeline, [](const RxStage& rx) -> const TopValues& { return rx.strangers(); }, stranger_text);
    seen.wrong_lengths = merged(
        pipeline, [](const RxStage& rx) -> const TopValues& { return rx.wrong_lengths(); },
        [&](std::uint64_t value) {
            const StreamRuntime& stream = options.streams[value >> 32U];
            return fmt::format("{} bytes in a stream of {}", static_cast<std::uint32_t>(value), stream.format->name);
        });
    return seen;
}

}  // namespace weir::pipeline
