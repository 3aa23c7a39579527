// The worker's chain for pixels, from packets that lie scattered in their buffers to pieces in output buffers, beside a
// loop that only moves the same bytes. A frame of 4 megapixels, so nothing stays in the second-level cache.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "reduce/chain/fragment_converter.hpp"
#include "reduce/chain/pixel_chain.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t modules = 8;
constexpr std::size_t packets = 128;  // of a module
constexpr std::size_t packet_bytes = 8192;
constexpr std::size_t buffer_bytes = 9216;
constexpr std::size_t headers_bytes = 128 + 42 + 48;  // headroom, and what is before the pixels
constexpr std::size_t output_bytes = std::size_t{16} << 20U;

/// An event as the rx lcores leave it: 31 references in a block, packets wherever their buffers were.
struct ScatteredEvent {
    ScatteredEvent() : buffers(modules * packets * buffer_bytes), blocks(modules), messages(modules) {
        std::mt19937 random(1);
        std::vector<std::size_t> places(modules * packets);
        std::iota(places.begin(), places.end(), 0U);
        std::shuffle(places.begin(), places.end(), random);
        for (std::uint32_t module = 0; module < modules; ++module) {
            blocks[module].resize((packets + assemble::FragmentBlock::capacity - 1) /
                                  assemble::FragmentBlock::capacity);
            messages[module].first_block = blocks[module].data();
            messages[module].received_bytes = packets * packet_bytes;
            for (std::size_t packet = 0; packet < packets; ++packet) {
                assemble::FragmentBlock& block = blocks[module][packet / assemble::FragmentBlock::capacity];
                if (&block != &blocks[module].back()) block.next = &block + 1;
                std::byte* const data =
                    buffers.data() + places[module * packets + packet] * buffer_bytes + headers_bytes;
                for (std::size_t i = 0; i < packet_bytes; i += 2) {
                    std::uint16_t word = static_cast<std::uint16_t>(2700 + random() % 64);
                    if (random() % 1000 == 0) word = static_cast<std::uint16_t>(0x4000 | 12000);
                    std::memcpy(data + i, &word, 2);
                }
                assemble::FragmentRef& ref = block.refs[block.count++];
                ref.data = data;
                ref.offset = static_cast<std::uint32_t>(packet * packet_bytes);
                ref.bytes = packet_bytes;
            }
        }
    }
    std::vector<std::byte> buffers;
    std::vector<std::vector<assemble::FragmentBlock>> blocks;
    std::vector<assemble::Message> messages;
};

ScatteredEvent& event() {
    static ScatteredEvent event;
    return event;
}

std::shared_ptr<const reduce::Calibration> calibration() {
    static const std::shared_ptr<const reduce::Calibration> made = [] {
        const auto file = std::filesystem::temp_directory_path() / ("weir-bench-" + std::to_string(::getpid()));
        std::vector<float> values(reduce::jungfrau_pixels);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2700.F + static_cast<float>(i % 97);
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
        reduce::CalibrationConfig config;
        config.modules = modules;
        const reduce::CalibrationConfig::Files files(modules, file);
        config.pedestal = {files, files, files};
        config.gain = {41.0, -1.439, -0.1145};
        auto calibration = std::make_shared<const reduce::Calibration>(config);
        std::filesystem::remove(file);
        return calibration;
    }();
    return made;
}

void set_rates(benchmark::State& state) {
    constexpr auto pixels = static_cast<std::int64_t>(modules * reduce::jungfrau_pixels);
    state.SetItemsProcessed(state.iterations() * pixels);
    state.counters["frames_4M"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

std::byte* output() {
    static auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, output_bytes));
    return memory;
}

reduce::PixelChain::Config chain_config(reduce::PixelType type) {
    reduce::PixelChain::Config config;
    config.calibration = calibration();
    config.output = type;
    for (std::uint32_t module = 0; module < modules; ++module) config.sources.push_back({.module = module});
    return config;
}

/// One event through the chain, to the next place of the output.
void encode(reduce::PixelChain& chain, std::size_t& at) {
    static const assemble::Event made;
    chain.begin_event(made);
    for (std::uint32_t module = 0; module < modules; ++module) {
        chain.begin_source(module, &event().messages[module]);
        for (std::size_t left = reduce::jungfrau_pixels; left > 0; left -= std::min(left, chain.piece_pixels())) {
            const std::size_t bound = (chain.bound(chain.piece_pixels()) + 63) / 64 * 64;
            if (at + bound > output_bytes) at = 0;
            benchmark::DoNotOptimize(chain.next_piece(std::min(left, chain.piece_pixels()), {output() + at, bound}));
            at += bound;
        }
    }
    benchmark::DoNotOptimize(chain.end_event());
}

/// `threshold`: of sparse pieces; 1.2 keeps one pixel in sixty.
void chain(benchmark::State& state, reduce::PixelType type, std::unique_ptr<reduce::PieceCodec> codec,
           std::optional<float> threshold = std::nullopt) {
    reduce::PixelChain::Config config = chain_config(type);
    if (threshold) config.selection.sparse = reduce::SparseConfig{threshold, nullptr, std::nullopt};
    reduce::PixelChain chain(config, std::move(codec));
    std::size_t at = 0;
    for (auto _ : state) encode(chain, at);
    set_rates(state);
}

/// With the arrival of the packets: written into their buffers a burst at a time, as virtual devices and captures do
/// it, then converted at once (`on_arrival`) or with the whole event. All on one core.
void arrive(benchmark::State& state, bool on_arrival) {
    constexpr std::size_t burst = 32;
    static const std::vector<std::byte> sent(modules * packets * packet_bytes, std::byte{10});  // 2570 ADU
    reduce::PixelChain::Config config = chain_config(reduce::PixelType::u16);
    config.converted = on_arrival;
    reduce::FragmentConverter converter({config.calibration, config.output, config.sources, config.storage_cell});
    reduce::PixelChain chain(config, nullptr);
    std::size_t at = 0;
    for (auto _ : state) {
        for (std::size_t first = 0; first < modules * packets; first += burst) {
            for (const bool convert : {false, true}) {
                if (convert && !on_arrival) continue;
                for (std::size_t i = first; i < first + burst; ++i) {
                    const std::size_t packet = i / modules;  // modules send at the same time
                    const auto module = static_cast<std::uint32_t>(i % modules);
                    const auto& block = event().blocks[module][packet / assemble::FragmentBlock::capacity];
                    const assemble::FragmentRef& ref = block.refs[packet % assemble::FragmentBlock::capacity];
                    if (convert) {
                        wire::Fragment fragment;
                        fragment.payload = ref.data;
                        fragment.offset = ref.offset;
                        fragment.bytes = ref.bytes;
                        converter.convert(module, fragment);
                    } else {
                        std::memcpy(const_cast<std::byte*>(ref.data), sent.data() + i * packet_bytes, packet_bytes);
                    }
                }
            }
        }
        encode(chain, at);
    }
    set_rates(state);
}

/// Reads raw pixels, pedestals and gains and writes 4 bytes for each pixel, with the least arithmetic that a compiler
/// will not leave out.
void move_bytes(benchmark::State& state) {
    std::size_t at = 0;
    for (auto _ : state)
        for (std::uint32_t module = 0; module < modules; ++module)
            for (std::size_t packet = 0; packet < packets; ++packet) {
                const auto& block = event().blocks[module][packet / assemble::FragmentBlock::capacity];
                const std::byte* raw = block.refs[packet % assemble::FragmentBlock::capacity].data;
                const reduce::PixelCalibration maps = calibration()->of(module, packet * packet_bytes / 2);
                if (at + 2 * packet_bytes > output_bytes) at = 0;
                std::byte* const out = output() + at;
                for (std::size_t i = 0; i < packet_bytes / 2; ++i) {
                    std::uint16_t word = 0;
                    std::uint32_t bits = 0;
                    std::uint32_t more = 0;
                    std::memcpy(&word, raw + 2 * i, 2);
                    std::memcpy(&bits, maps.pedestal[0] + i, 4);
                    std::memcpy(&more, maps.factor[0] + i, 4);
                    bits ^= more ^ word;
                    std::memcpy(out + 4 * i, &bits, 4);
                }
                at += 2 * packet_bytes;
                benchmark::ClobberMemory();
            }
    set_rates(state);
}

void register_all() {
    benchmark::RegisterBenchmark("chain/move_bytes", move_bytes);
    for (const auto type :
         {reduce::PixelType::f32, reduce::PixelType::f16, reduce::PixelType::i16, reduce::PixelType::u16})
        benchmark::RegisterBenchmark(
            ("chain/" + std::string(reduce::pixel_type_names[static_cast<std::size_t>(type)])).c_str(),
            [type](benchmark::State& state) { chain(state, type, nullptr); });
    benchmark::RegisterBenchmark("chain/arrive_u16_at_event", [](benchmark::State& state) { arrive(state, false); });
    benchmark::RegisterBenchmark("chain/arrive_u16_at_fragment", [](benchmark::State& state) { arrive(state, true); });
    benchmark::RegisterBenchmark("chain/f32_sparse",
                                 [](benchmark::State& state) { chain(state, reduce::PixelType::f32, nullptr, 1.2F); });
    benchmark::RegisterBenchmark("chain/u16_zstd", [](benchmark::State& state) {
        chain(state, reduce::PixelType::u16, reduce::make_zstd_codec(1));
    });
}

const bool registered = (register_all(), true);

}  // namespace
}  // namespace weir::bench
