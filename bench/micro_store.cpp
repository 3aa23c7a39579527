// What a worker does with an event: gathering, compression, and blocks of the event file with their checksums.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "assemble/message.hpp"
#include "reduce/gather.hpp"
#include "reduce/zstd_reducer.hpp"
#include "store/block_writer.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t payload_bytes = 8192;

std::span<std::byte> aligned(std::vector<std::byte>& memory, std::size_t bytes) {
    memory.resize(bytes + 64);
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    return std::span(memory).subspan((64 - at % 64) % 64, bytes);
}

/// Like pixels of a JUNGFRAU without photons: noise of a few counts on a level that differs from pixel to pixel.
void fill_pixels(std::span<std::byte> out) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> noise(0, 12);
    std::uniform_int_distribution<int> level(2000, 4000);
    for (std::size_t at = 0; at + 2 <= out.size(); at += 2) {
        const auto value = static_cast<std::uint16_t>(level(random) + static_cast<int>(noise(random)));
        out[at] = static_cast<std::byte>(value & 0xff);
        out[at + 1] = static_cast<std::byte>(value >> 8U);
    }
}

void zstd(benchmark::State& state) {
    reduce::ZstdReducer reducer(static_cast<int>(state.range(0)));
    fill_pixels(reducer.scratch());
    std::vector<std::byte> out(reduce::ZstdReducer::bound(reduce::ZstdReducer::piece_bytes));
    std::size_t bytes = 0;
    for (auto _ : state) benchmark::DoNotOptimize(bytes = reducer.compress(reduce::ZstdReducer::piece_bytes, out));
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(reduce::ZstdReducer::piece_bytes));
    state.counters["ratio"] =
        bytes > 0 ? static_cast<double>(reduce::ZstdReducer::piece_bytes) / static_cast<double>(bytes) : 1;
}

/// The header, source record and payload of an event of `range(0)` KiB, from a buffer in cache.
void block_writer(benchmark::State& state) {
    std::vector<std::byte> memory;
    const std::span<std::byte> buffer = aligned(memory, std::size_t{1} << 20U);
    store::BlockWriter writer;
    const auto event_bytes = static_cast<std::uint32_t>(state.range(0) << 10U);
    writer.reset(buffer);
    std::uint64_t id = 0;
    for (auto _ : state) {
        if (buffer.size() - writer.blocks().size() < event_bytes + 4096) writer.reset(buffer);
        store::EventRecord event;
        event.id = ++id;
        event.sources = 1;
        event.complete = true;
        event.payload_bytes = event_bytes;
        store::SourceRecord source;
        source.declared_bytes = source.received_bytes = event_bytes;
        if (!writer.put_event(event) || !writer.put_source(source, {}) || writer.open_payload().size() < event_bytes)
            return state.SkipWithError("no room in a fresh buffer");
        writer.close_payload(event_bytes, event_bytes, store::Encoding::raw, true);
    }
    state.SetBytesProcessed(state.iterations() * event_bytes);
}

/// One message of 64 packets of 8 KiB, from memory that is in the second-level cache, into an aligned output.
void gather(benchmark::State& state) {
    constexpr std::uint32_t count = 64;
    std::vector<std::byte> from(count * (payload_bytes + 128));
    std::vector<std::byte> memory;
    const std::span<std::byte> out = aligned(memory, count * payload_bytes);
    std::vector<assemble::FragmentBlock> blocks((count + assemble::FragmentBlock::capacity - 1) /
                                                assemble::FragmentBlock::capacity);
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
    if (state.range(0) != 0) std::ranges::shuffle(order, std::mt19937_64(1));
    for (std::uint32_t i = 0; i < count; ++i) {
        assemble::FragmentBlock& block = blocks[i / assemble::FragmentBlock::capacity];
        block.refs[block.count++] = {nullptr, from.data() + order[i] * (payload_bytes + 128) + 90,
                                     order[i] * static_cast<std::uint32_t>(payload_bytes),
                                     static_cast<std::uint32_t>(payload_bytes), 0};
        if (i / assemble::FragmentBlock::capacity > 0) blocks[i / assemble::FragmentBlock::capacity - 1].next = &block;
    }
    assemble::Message message;
    message.first_block = blocks.data();
    reduce::SortedRefs refs(count);
    for (auto _ : state) {
        refs.assign(message);
        reduce::GatherCursor cursor;
        if (reduce::gather(refs, cursor, out) != out.size()) return state.SkipWithError("bytes are missing");
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}

BENCHMARK(zstd)->Name("store/zstd")->ArgName("level")->Arg(1)->Arg(-5);
BENCHMARK(block_writer)->Name("store/block_writer")->ArgName("KiB")->Arg(64)->Arg(512);
BENCHMARK(gather)->Name("store/gather")->ArgName("shuffled")->Arg(0)->Arg(1);

}  // namespace
}  // namespace weir::bench
