// Both levels of assembly alone: fragments into messages, and descriptors into events. No packets and no DPDK: what the
// bookkeeping costs when its data are as hot as they get.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "assemble/event_builder.hpp"
#include "assemble/message_table.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t packets = 64;  // per message
constexpr std::uint32_t payload_bytes = 1024;
constexpr core::TimeNs timeout_ns = 3600 * core::ns_per_s;

std::uint64_t released;
void release(void** buffers, std::uint32_t count) {
    benchmark::DoNotOptimize(buffers);
    released += count;
}

struct Arrival {
    std::uint64_t event;
    std::uint32_t packet;
};

/// The order in which the packets of `events` events come when `open` of them mix.
std::vector<Arrival> arrivals(std::uint32_t events, std::uint32_t open, bool shuffled) {
    std::vector<std::pair<std::uint64_t, Arrival>> timed;
    std::mt19937_64 random(open);
    for (std::uint32_t event = 0; event < events; ++event)
        for (std::uint32_t packet = 0; packet < packets; ++packet) {
            const std::uint64_t within =
                shuffled ? random() % (std::uint64_t{open} * packets) : std::uint64_t{packet} * open;
            timed.push_back({std::uint64_t{event} * packets + within, {event, packet}});
        }
    std::ranges::stable_sort(timed, {}, [](const auto& one) { return one.first; });
    std::vector<Arrival> out;
    for (const auto& one : timed) out.push_back(one.second);
    return out;
}

/// One lap adds all packets; numbers go on from lap to lap.
void message_table(benchmark::State& state) {
    const auto open = static_cast<std::uint32_t>(state.range(0));
    const std::uint32_t events = std::max(256U, 4 * open);
    const std::vector<Arrival> order = arrivals(events, open, state.range(1) != 0);
    wire::PacketTally packet_tally;
    assemble::MessageTally message_tally;
    assemble::MessageTable::Config config;
    config.messages_max = 4096;
    config.buffers_max = 3 * open * packets + 4096;
    config.range_blocks = 512;
    config.horizon = 4096;
    config.timeout_ns = timeout_ns;
    assemble::MessageTable table(config, packet_tally, message_tally, release);
    std::byte buffer{};
    std::uint64_t base = 1;
    core::TimeNs now = 0;
    constexpr std::size_t in_burst = 16;  // as an rx lcore adds them
    const std::array<std::uint32_t, in_burst> sources{};
    std::array<wire::Fragment, in_burst> fragments;
    std::array<void*, in_burst> buffers;
    std::array<core::TimeNs, in_burst> times{};
    buffers.fill(&buffer);
    for (auto _ : state) {
        for (std::size_t at = 0; at < order.size(); at += in_burst) {
            for (std::size_t i = 0; i < in_burst; ++i) {
                wire::Fragment& fragment = fragments[i];
                fragment.payload = &buffer;
                fragment.number = base + order[at + i].event;
                fragment.offset = order[at + i].packet * payload_bytes;
                fragment.bytes = payload_bytes;
                fragment.total = packets * payload_bytes;
                fragment.total_known = true;
                times[i] = ++now;
            }
            table.add_burst({sources, fragments.data(), buffers.data(), times.data()});
            if (at / in_burst % 4 != 3) continue;
            for (const assemble::Descriptor& descriptor : table.pending())
                if (descriptor.kind == assemble::Descriptor::Kind::deliver)
                    table.execute({assemble::Command::Kind::recycle, 0, 0, descriptor.message}, now);
            table.consume_pending(static_cast<std::uint32_t>(table.pending().size()));
            table.end_burst();
        }
        for (const assemble::Descriptor& descriptor : table.pending())
            if (descriptor.kind == assemble::Descriptor::Kind::deliver)
                table.execute({assemble::Command::Kind::recycle, 0, 0, descriptor.message}, now);
        table.consume_pending(static_cast<std::uint32_t>(table.pending().size()));
        table.end_burst();
        base += events;
    }
    if (table.buffers_held() != 0) state.SkipWithError("packets were not placed");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(order.size()));
}

/// Items are events of two messages: announced, delivered, closed, released.
void event_builder(benchmark::State& state) {
    const auto open = static_cast<std::uint32_t>(state.range(0));
    constexpr std::uint32_t sources = 2;
    wire::PacketTally packet_tally;
    assemble::MessageTally message_tally;
    assemble::EventTally event_tally;
    assemble::EventBuilder::Config config;
    config.sources = config.sources_needed = sources;
    config.open_max = 2 * open;
    config.queued_max = 64;
    config.horizon = 4096;
    config.timeout_ns = timeout_ns;
    config.owner.assign(sources, 0);
    config.number_bits.assign(sources, 64);
    config.messages_max = 4 * sources * open + 256;
    assemble::EventBuilder builder(config, packet_tally, message_tally, event_tally);
    std::vector<assemble::Message> messages(std::size_t{2} * sources * open);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        messages[i].source = static_cast<std::uint32_t>(i % sources);
        messages[i].complete = true;
        messages[i].packets = 1;
    }
    std::uint64_t next = 1;
    std::uint64_t complete = 0;
    const auto offer = [&](assemble::Descriptor::Kind kind, std::uint64_t number, std::uint32_t source) {
        assemble::Message* message = &messages[(number * sources + source) % messages.size()];
        message->number = number;
        static_cast<void>(builder.offer({.kind = kind,
                                         .source = source,
                                         .number = number,
                                         .first_ns = 1,
                                         .time_ns = 1,
                                         .message = kind == assemble::Descriptor::Kind::deliver ? message : nullptr}));
    };
    for (auto _ : state) {
        for (std::uint32_t source = 0; source < sources; ++source)
            offer(assemble::Descriptor::Kind::announce, next, source);
        if (next > open)
            for (std::uint32_t source = 0; source < sources; ++source)
                offer(assemble::Descriptor::Kind::deliver, next - open, source);
        ++next;
        while (assemble::Event* event = builder.pop_closed()) {
            builder.discard(*event, assemble::EventCounter::written);
            ++complete;
        }
        builder.consume_commands(0, static_cast<std::uint32_t>(builder.commands(0).size()));
    }
    if (complete + open + 1 < next) state.SkipWithError("events were not complete");
    state.SetItemsProcessed(state.iterations());
}

BENCHMARK(message_table)
    ->Name("assemble/message_table")
    ->ArgNames({"open", "shuffled"})
    ->ArgsProduct({{1, 64, 1024}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(event_builder)->Name("assemble/event_builder")->ArgName("open")->Arg(1)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace weir::bench
