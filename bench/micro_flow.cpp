// What flow rules in software cost per packet: the classifier on bursts of headers that are in cache, beside the
// parsing and steering that a packet has anyway.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "steer/classifier.hpp"
#include "steer/rule_parser.hpp"
#include "steer/steering.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t burst = 64;
constexpr std::uint16_t first_port = 50001;
constexpr std::uint32_t first_source = 0x0a01000a;

/// Frames of `flows` senders in turn, each to a port of its own.
struct Frames {
    std::vector<std::vector<std::byte>> bytes;
    std::array<steer::Classifier::Frame, burst> frames;

    explicit Frames(std::uint32_t flows) {
        const std::vector<std::byte> payload(1024);
        for (std::uint32_t i = 0; i < burst; ++i) {
            wire::FrameSpec spec;
            spec.src = first_source + i % flows;
            spec.dport = static_cast<std::uint16_t>(first_port + i % flows);
            bytes.push_back(wire::make_udp_frame(spec, payload));
            frames[i] = {bytes.back().data(), static_cast<std::uint32_t>(bytes.back().size())};
        }
    }
};

std::string address(std::uint32_t ip) {
    return fmt::format("{}.{}.{}.{}", ip >> 24U, ip >> 16U & 255U, ip >> 8U & 255U, ip & 255U);
}

/// On UDP port and source address, one rule for each sender.
std::vector<steer::FlowRule> rules_for(std::uint32_t flows) {
    std::string text;
    for (std::uint32_t i = 0; i < flows; ++i)
        text += fmt::format(
            "flow create 0 ingress pattern eth / ipv4 src is {} / udp dst is {} / end actions queue index {} / end\n",
            address(first_source + i), first_port + i, i % 4);
    return steer::parse_rules(text, "bench.flow");
}

void rules(benchmark::State& state) {
    const auto flows = static_cast<std::uint32_t>(state.range(0));
    const steer::Classifier classifier(rules_for(flows));
    const Frames frames(flows);
    std::array<std::uint32_t, burst> winners;
    for (auto _ : state) {
        classifier.match_burst(frames.frames, winners.data());
        benchmark::DoNotOptimize(winners);
    }
    for (std::uint32_t i = 0; i < burst; ++i)
        if (winners[i] != i % flows) return state.SkipWithError("a packet was given to the wrong rule");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(burst));
}

/// What every packet has without rules: the network layers, and its stream by UDP port and source address.
void steering(benchmark::State& state) {
    const auto flows = static_cast<std::uint32_t>(state.range(0));
    std::vector<steer::Rule> streams;
    for (std::uint32_t i = 0; i < flows; ++i) {
        steer::Rule rule;
        rule.key = first_port + i;
        rule.src = {first_source + i};
        rule.stream = static_cast<std::uint16_t>(i);
        streams.push_back(rule);
    }
    const steer::Steering by_stream(streams, {});
    const Frames frames(flows);
    std::array<std::uint16_t, burst> found;
    for (auto _ : state) {
        for (std::size_t i = 0; i < burst; ++i) {
            wire::Datagram datagram;
            const steer::Classifier::Frame& frame = frames.frames[i];
            if (wire::parse_frame(frame.data, frame.bytes, frame.bytes, datagram) == wire::ok)
                found[i] = by_stream.route_udp(datagram).stream;
        }
        benchmark::DoNotOptimize(found);
    }
    for (std::uint32_t i = 0; i < burst; ++i)
        if (found[i] != i % flows) return state.SkipWithError("a packet was given to the wrong stream");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(burst));
}

/// One stream with so many sources, told apart by address: 64 of them send, spread over all.
void sources_by_address(benchmark::State& state) {
    const auto sources = static_cast<std::uint32_t>(state.range(0));
    steer::Rule rule;
    rule.key = first_port;
    rule.source_by_address = true;
    for (std::uint32_t i = 0; i < sources; ++i) rule.src.push_back(first_source + i);
    const steer::Steering by_stream({rule}, {});
    std::array<std::uint32_t, burst> expected;
    std::array<wire::Datagram, burst> datagrams;
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t i = 0; i < burst; ++i) {
        expected[i] = static_cast<std::uint32_t>(std::uint64_t{i} * sources / burst);
        wire::FrameSpec spec;
        spec.src = first_source + expected[i];
        spec.dport = first_port;
        frames.push_back(wire::make_udp_frame(spec, std::vector<std::byte>(64)));
        const auto bytes = static_cast<std::uint32_t>(frames.back().size());
        if (wire::parse_frame(frames.back().data(), bytes, bytes, datagrams[i]) != wire::ok)
            return state.SkipWithError("a packet was not understood");
    }
    std::array<std::uint32_t, burst> found;
    for (auto _ : state) {
        for (std::size_t i = 0; i < burst; ++i) found[i] = by_stream.route_udp(datagrams[i]).source;
        benchmark::DoNotOptimize(found);
    }
    if (found != expected) return state.SkipWithError("a packet was given to the wrong source");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(burst));
}

BENCHMARK(sources_by_address)->Name("flow/sources_by_address")->Arg(1)->Arg(8)->Arg(512)->Arg(4096)->Arg(65536);
BENCHMARK(steering)->Name("flow/parse_and_steer")->Arg(1)->Arg(32);
BENCHMARK(rules)->Name("flow/rules")->Arg(1)->Arg(8)->Arg(32)->Arg(64)->Arg(256);

}  // namespace
}  // namespace weir::bench
