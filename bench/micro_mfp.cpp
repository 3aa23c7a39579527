// Multi-fragment packets put together to multi-event packets, beside copying the same bytes: the size of LHCb's
// (packets of 1000 fragments of about 100 bytes, 8 sources, in network packets of 4 KiB).
#include <benchmark/benchmark.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "reduce/mfp/multi_event.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t sources = 8;
constexpr std::size_t events = 1000;
constexpr std::size_t packet_bytes = 4096;

/// The messages of one block, in the references that an assembler would have made.
struct Block {
    Block() : messages(sources) {
        std::mt19937 random(1);
        for (std::size_t source = 0; source < sources; ++source) {
            std::vector<std::byte>& bytes = payload.emplace_back(16 + events + 2 * events);
            std::uint32_t data = 0;
            for (std::size_t i = 0; i < events; ++i) {
                const auto size = static_cast<std::uint16_t>(50 + random() % 100);
                std::memcpy(bytes.data() + 16 + events + 2 * i, &size, 2);
                data += size;
            }
            bytes.resize(bytes.size() + data);
            const std::uint16_t count = events;
            std::memcpy(bytes.data() + 8, &count, 2);
            std::memcpy(bytes.data() + 12, &data, 4);
            assemble::Message& message = messages[source];
            message.total_known = message.complete = true;
            message.total = message.received_bytes = static_cast<std::uint32_t>(bytes.size());
            assemble::FragmentBlock* last = nullptr;
            for (std::size_t at = 0; at < bytes.size(); at += packet_bytes) {
                if (last == nullptr || last->count == assemble::FragmentBlock::capacity) {
                    assemble::FragmentBlock& next = blocks.emplace_back();
                    (last == nullptr ? message.first_block : last->next) = &next;
                    last = &next;
                }
                assemble::FragmentRef& ref = last->refs[last->count++];
                ref.data = bytes.data() + at;
                ref.offset = static_cast<std::uint32_t>(at);
                ref.bytes = static_cast<std::uint32_t>(std::min(packet_bytes, bytes.size() - at));
            }
            total += bytes.size();
            pointers.push_back(&message);
            listed.push_back(static_cast<std::uint32_t>(source));
        }
    }
    std::deque<std::vector<std::byte>> payload;
    std::deque<assemble::FragmentBlock> blocks;
    std::vector<assemble::Message> messages;
    std::vector<const assemble::Message*> pointers;
    std::vector<std::uint32_t> listed;
    std::size_t total = 0;
};

void rates(benchmark::State& state, const Block& block) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * block.total));
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * events));
}

void mfp_copy_only(benchmark::State& state) {
    const Block block;
    std::vector<std::byte> out(block.total + packet_bytes);
    for (auto _ : state) {
        std::size_t at = 0;
        for (const assemble::Message* message : block.pointers)
            for (const auto* refs = message->first_block; refs != nullptr; refs = refs->next)
                for (std::uint32_t i = 0; i < refs->count; ++i) {
                    std::memcpy(out.data() + at, refs->refs[i].data, refs->refs[i].bytes);
                    at += refs->refs[i].bytes;
                }
        benchmark::DoNotOptimize(out.data());
        benchmark::ClobberMemory();
    }
    rates(state, block);
}

void mfp_put_together(benchmark::State& state, reduce::MepOrder order) {
    const Block block;
    reduce::MepWriter::Config config;
    config.order = order;
    config.sources.resize(sources);
    reduce::MepWriter writer(config);
    std::vector<std::byte> piece(std::size_t{256} << 10U);
    for (auto _ : state) {
        if (writer.begin(block.pointers, block.listed).events != events) state.SkipWithError("not a block");
        while (writer.fill(piece) > 0) benchmark::ClobberMemory();
    }
    rates(state, block);
}

BENCHMARK(mfp_copy_only)->Name("mfp/copy_only");
BENCHMARK_CAPTURE(mfp_put_together, by_source, reduce::MepOrder::sources)->Name("mfp/by_source");
BENCHMARK_CAPTURE(mfp_put_together, by_event, reduce::MepOrder::events)->Name("mfp/by_event");

}  // namespace
}  // namespace weir::bench
