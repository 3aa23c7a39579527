// The iCRC of RoCEv2 packets beside ISA-L's CRC-32 over the same bytes: what masking the headers costs. Hot: one packet
// in cache. Cold: packets at random places of a memory larger than the caches that one core gets to use.
#include <benchmark/benchmark.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "wire/roce.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t place_bytes = 4224;
constexpr std::size_t memory_bytes = std::size_t{768} << 20U;

/// Bytes of an IPv4 RoCEv2 packet with this payload, without its iCRC.
std::uint32_t packet_bytes(std::int64_t payload_bytes) {
    return 20 + 8 + 12 + static_cast<std::uint32_t>(payload_bytes);
}

std::uint32_t isal(const std::byte* packet, std::uint32_t bytes) {
    return ::crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(packet), bytes);
}

using Checksum = std::uint32_t (*)(const std::byte*, std::uint32_t);

void hot(benchmark::State& state, Checksum checksum) {
    const std::uint32_t bytes = packet_bytes(state.range(0));
    const std::vector<std::byte> packet(bytes, std::byte{0x45});
    for (auto _ : state) benchmark::DoNotOptimize(checksum(packet.data(), bytes));
    state.SetBytesProcessed(state.iterations() * bytes);
}

void cold(benchmark::State& state, Checksum checksum) {
    struct Memory {
        Memory() : bytes(new std::byte[memory_bytes]), places(memory_bytes / place_bytes) {
            for (std::size_t i = 0; i < memory_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 7);
            std::iota(places.begin(), places.end(), std::size_t{0});
            std::ranges::shuffle(places, std::mt19937_64(1));
        }
        std::unique_ptr<std::byte[]> bytes;
        std::vector<std::size_t> places;
    };
    static const Memory memory;
    const std::uint32_t bytes = packet_bytes(state.range(0));
    std::size_t at = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(checksum(memory.bytes.get() + memory.places[at] * place_bytes, bytes));
        if (++at == memory.places.size()) at = 0;
    }
    state.SetBytesProcessed(state.iterations() * bytes);
}

BENCHMARK_CAPTURE(hot, roce, wire::roce_icrc)->Name("icrc/hot/roce_icrc")->Arg(1024)->Arg(4096);
BENCHMARK_CAPTURE(hot, isal, isal)->Name("icrc/hot/isa-l")->Arg(1024)->Arg(4096);
BENCHMARK_CAPTURE(cold, roce, wire::roce_icrc)->Name("icrc/cold/roce_icrc")->Arg(4096);
BENCHMARK_CAPTURE(cold, isal, isal)->Name("icrc/cold/isa-l")->Arg(4096);

}  // namespace
}  // namespace weir::bench
