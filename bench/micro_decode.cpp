// Decoders, from the frame to the fragment, on headers that are in cache: what their code costs.
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <vector>

#include "wire/encode.hpp"
#include "wire/format.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t burst = 64;
constexpr std::uint32_t payload_bytes = 1024;

std::vector<std::byte> frame_of(const std::string& format, std::uint32_t index) {
    const std::vector<std::byte> payload(format == "jungfrau" ? 8192 : payload_bytes);
    std::vector<std::byte> body(payload.size() + 64);
    std::size_t bytes = 0;
    if (format == "jungfrau")
        bytes = wire::write_sls({.frame_number = 7, .packet_number = index}, payload, body);
    else if (format == "ejfat")
        bytes = wire::write_ejfat({.offset = index * payload_bytes, .total = 64 * payload_bytes, .event = 7}, payload,
                                  body);
    else
        bytes = payload.size();
    body.resize(bytes);
    return wire::make_udp_frame({}, body);
}

void network(benchmark::State& state) {
    const std::vector<std::byte> frame = frame_of("ejfat", 0);
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    wire::Datagram datagram;
    for (auto _ : state) {
        benchmark::DoNotOptimize(wire::parse_frame(frame.data(), bytes, bytes, datagram));
        benchmark::DoNotOptimize(datagram);
    }
    state.SetItemsProcessed(state.iterations());
}

void format(benchmark::State& state, const std::string& name) {
    const wire::FormatEntry& entry = *wire::find_format(name);
    const wire::FormatContext context = entry.make_context({});
    std::vector<std::vector<std::byte>> frames;
    std::array<wire::Datagram, burst> datagrams;
    for (std::uint32_t i = 0; i < burst; ++i) {
        frames.push_back(frame_of(name, i));
        const auto bytes = static_cast<std::uint32_t>(frames[i].size());
        if (wire::parse_frame(frames[i].data(), bytes, bytes, datagrams[i]) != wire::ok)
            return state.SkipWithError("a frame of the project's own encoder was refused");
    }
    std::array<wire::Fragment, burst> fragments;
    std::array<wire::Verdict, burst> verdicts;
    for (auto _ : state) {
        entry.decode_burst(context, datagrams, fragments.data(), verdicts.data());
        benchmark::DoNotOptimize(fragments);
        benchmark::DoNotOptimize(verdicts);
    }
    for (const wire::Verdict verdict : verdicts)
        if (verdict != wire::ok) return state.SkipWithError("a packet of the project's own encoder was refused");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(burst));
}

void roce(benchmark::State& state, bool check_icrc) {
    const std::vector<std::byte> payload(4096);
    wire::RoceMessage message;
    message.is_write = true;
    message.immediate = 1;
    wire::FrameSpec spec;
    spec.dport = wire::roce_port;
    const std::vector<std::byte> frame = wire::make_roce_frame(spec, wire::roce_packet_of(message, payload, 0));
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    wire::Datagram datagram;
    if (wire::parse_frame(frame.data(), bytes, bytes, datagram) != wire::ok)
        return state.SkipWithError("a frame of the project's own encoder was refused");
    wire::RocePacket packet;
    for (auto _ : state) {
        if (wire::decode_roce(datagram, check_icrc, packet) != wire::ok)
            return state.SkipWithError("the packet was refused");
        benchmark::DoNotOptimize(packet);
    }
    state.SetItemsProcessed(state.iterations());
}

BENCHMARK(network)->Name("decode/network");
BENCHMARK_CAPTURE(format, jungfrau, "jungfrau")->Name("decode/jungfrau");
BENCHMARK_CAPTURE(format, ejfat, "ejfat")->Name("decode/ejfat");
BENCHMARK_CAPTURE(format, message, "message")->Name("decode/message");
BENCHMARK_CAPTURE(roce, ignored, false)->Name("decode/roce-4k-icrc-ignored");
BENCHMARK_CAPTURE(roce, checked, true)->Name("decode/roce-4k-icrc-checked");

}  // namespace
}  // namespace weir::bench
