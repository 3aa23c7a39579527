// JUNGFRAU pixels: conversion and what follows, beside plain C++ at the same -O3 and beside a loop that only moves the
// same bytes. A frame of 4 megapixels (8 modules), so nothing stays in the second-level cache from frame to frame.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "reduce/pixels/pixels.hpp"
#include "reduce/pixels/reference.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t frame_pixels = 8 * 512 * 1024;
constexpr std::size_t chunk_pixels = 4096;  // a packet; its energies stay in the first-level cache

struct Frame {
    Frame() : raw(frame_pixels), energy(frame_pixels), places(chunk_pixels + 16), values(chunk_pixels + 16) {
        std::mt19937 random(1);
        for (std::size_t gain = 0; gain < 3; ++gain) {
            pedestal[gain].resize(frame_pixels);
            factor[gain].resize(frame_pixels, gain == 0 ? 1 / 41.F : gain == 1 ? -1 / 1.439F : -1 / 0.1145F);
            for (float& value : pedestal[gain])
                value = (gain == 0 ? 2700.F : 14000.F) + static_cast<float>(random() % 100);
        }
        // As in the real frames: one pixel in a thousand is not in the first gain; noise of 5 ADU; few photons.
        std::normal_distribution<float> noise(2750, 5);
        for (std::uint16_t& word : raw) {
            word = static_cast<std::uint16_t>(noise(random) + (random() % 100 == 0 ? 508.F : 0.F));
            if (random() % 1000 == 0) word = static_cast<std::uint16_t>(0x4000 | 12000);
        }
    }
    [[nodiscard]] reduce::PixelCalibration at(std::size_t pixel) const {
        reduce::PixelCalibration calibration;
        for (std::size_t gain = 0; gain < 3; ++gain) {
            calibration.pedestal[gain] = pedestal[gain].data() + pixel;
            calibration.factor[gain] = factor[gain].data() + pixel;
        }
        return calibration;
    }
    std::vector<std::uint16_t> raw;
    std::array<std::vector<float>, 3> pedestal;
    std::array<std::vector<float>, 3> factor;
    std::vector<float> energy;
    std::vector<std::uint32_t> places;
    std::vector<float> values;
};

Frame& frame() {
    static Frame frame;
    return frame;
}

/// Frame after frame in chunks: `work(first pixel)`.
template <class Work>
void run(benchmark::State& state, Work work) {
    Frame& f = frame();
    for (auto _ : state) {
        for (std::size_t at = 0; at < frame_pixels; at += chunk_pixels) work(f, at);
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frame_pixels));
}

std::span<const std::uint16_t> raw_of(const Frame& f, std::size_t at) {
    return std::span(f.raw).subspan(at, chunk_pixels);
}
std::span<float> energy_of(Frame& f, std::size_t at) {
    return std::span(f.energy).subspan(at, chunk_pixels);
}
std::span<float> scratch_of(Frame& f) {
    return std::span(f.energy).first(chunk_pixels);
}

/// Reads 2 + 4 + 4 bytes and writes 4 for each pixel, with the least arithmetic that a compiler will not leave out.
void move_bytes(benchmark::State& state) {
    run(state, [](Frame& f, std::size_t at) {
        const std::uint16_t* raw = f.raw.data() + at;
        const float* pedestal = f.pedestal[0].data() + at;
        const float* factor = f.factor[0].data() + at;
        float* out = f.energy.data() + at;
        for (std::size_t i = 0; i < chunk_pixels; ++i) {
            std::uint32_t bits = 0;
            std::uint32_t more = 0;
            std::memcpy(&bits, pedestal + i, 4);
            std::memcpy(&more, factor + i, 4);
            bits ^= more ^ raw[i];
            std::memcpy(out + i, &bits, 4);
        }
    });
}
void convert(benchmark::State& state) {
    run(state, [](Frame& f, std::size_t at) { reduce::convert(raw_of(f, at), f.at(at), energy_of(f, at)); });
}
void convert_plain(benchmark::State& state) {
    run(state, [](Frame& f, std::size_t at) { reduce::reference::convert(raw_of(f, at), f.at(at), energy_of(f, at)); });
}
void convert_count(benchmark::State& state) {
    std::uint64_t above = 0;
    run(state, [&above](Frame& f, std::size_t at) {
        reduce::convert(raw_of(f, at), f.at(at), energy_of(f, at));
        above += reduce::count_above(energy_of(f, at), 6.2F);
    });
    benchmark::DoNotOptimize(above);
}
/// What a veto costs that keeps nothing: energies go nowhere.
void convert_count_only(benchmark::State& state) {
    std::uint64_t above = 0;
    run(state, [&above](Frame& f, std::size_t at) {
        reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
        above += reduce::count_above(scratch_of(f), 6.2F);
    });
    benchmark::DoNotOptimize(above);
}
void convert_sparse(benchmark::State& state) {
    std::size_t kept = 0;
    run(state, [&kept](Frame& f, std::size_t at) {
        reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
        kept += reduce::sparsify(scratch_of(f), 6.2F, static_cast<std::uint32_t>(at), f.places, f.values);
    });
    benchmark::DoNotOptimize(kept);
}
void convert_f16(benchmark::State& state) {
    static std::vector<std::uint16_t> out(frame_pixels);
    run(state, [](Frame& f, std::size_t at) {
        reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
        reduce::to_f16(scratch_of(f), std::span(out).subspan(at, chunk_pixels));
    });
}
void convert_u16(benchmark::State& state) {
    static std::vector<std::uint16_t> out(frame_pixels);
    run(state, [](Frame& f, std::size_t at) {
        reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
        reduce::to_u16(scratch_of(f), std::span(out).subspan(at, chunk_pixels));
    });
}

BENCHMARK(move_bytes)->Name("pixels/move_the_same_bytes");
BENCHMARK(convert)->Name("pixels/convert");
BENCHMARK(convert_plain)->Name("pixels/convert/plain C++");
BENCHMARK(convert_count)->Name("pixels/convert+count");
BENCHMARK(convert_count_only)->Name("pixels/convert+count, not stored");
BENCHMARK(convert_sparse)->Name("pixels/convert+sparse, not stored");
BENCHMARK(convert_f16)->Name("pixels/convert+f16");
BENCHMARK(convert_u16)->Name("pixels/convert+u16");

}  // namespace
}  // namespace weir::bench
