// JUNGFRAU pixels: conversion and what follows, beside plain C++ at the same -O3 and beside a loop that only moves the
// same bytes. A frame of 4 megapixels (8 modules), so nothing stays in the second-level cache from frame to frame.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "made_frames.hpp"
#include "reduce/pixels/pixels.hpp"
#include "reduce/pixels_reference.hpp"
#include "reduce/sparse/sparse_piece.hpp"
#include "reduce/veto/peak_finder.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t frame_pixels = 8 * 512 * 1024;
constexpr std::size_t module_pixels = 512 * 1024;
constexpr std::size_t piece_pixels = 64 * 1024;  // 256 KiB of energies
constexpr std::size_t chunk_pixels = 4096;       // a packet; its energies stay in the first-level cache

struct Frame {
    Frame() : made(frame_pixels, 1), raw(made.raw[0]), energy(frame_pixels) {}
    [[nodiscard]] reduce::PixelCalibration at(std::size_t pixel) const { return made.at(pixel); }

    MadeFrames made;
    const std::vector<std::uint16_t>& raw;
    const std::array<std::vector<float>, 3>& pedestal = made.pedestal;
    const std::array<std::vector<float>, 3>& factor = made.factor;
    std::vector<float> energy;
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
    const auto frames = static_cast<double>(state.iterations());
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frame_pixels));
    // What one core does of frames of 4 megapixels, as published for a GPU (Ponsard et al., J. Synchrotron Rad. 2020;
    // Quadro P6000): conversion 219 us, with counting 240 us, with CSR 469 us, with a full peak finder 2167 us.
    state.counters["frames_4M"] = benchmark::Counter(frames, benchmark::Counter::kIsRate);
    state.counters["frame"] = benchmark::Counter(frames, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
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
/// As a chain does it, which fetches raw pixels, too.
void convert_and_fetch(Frame& f, std::size_t at) {
    reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
    const std::uint16_t* const next = f.raw.data() + (at + chunk_pixels) % frame_pixels;
    for (std::size_t i = 0; i < chunk_pixels / 2; i += 32) __builtin_prefetch(next + i);
    const std::size_t left = std::min(chunk_pixels / 2, frame_pixels - at - chunk_pixels);
    reduce::fetch_maps(f.at(at), chunk_pixels, chunk_pixels + left);
}
void convert_sparse_of(benchmark::State& state, float threshold, reduce::PixelType type) {
    static std::vector<std::byte> out(piece_pixels * 8);
    reduce::SparsePiece piece(type, 1024, piece_pixels / 1024);
    std::size_t kept = 0;
    run(state, [&](Frame& f, std::size_t at) {
        if (at % piece_pixels == 0) piece.begin();
        convert_and_fetch(f, at);
        piece.append(scratch_of(f), threshold);
        if ((at + chunk_pixels) % piece_pixels != 0) return;
        piece.write_sparse(out.data());
        kept += piece.kept();
    });
    state.counters["kept"] = static_cast<double>(kept) / static_cast<double>(state.iterations()) / frame_pixels;
}
void convert_sparse(benchmark::State& state) {
    convert_sparse_of(state, 6.2F, reduce::PixelType::f32);
}
void convert_sparse_dense(benchmark::State& state) {
    convert_sparse_of(state, 0.4F, reduce::PixelType::f32);  // a third of the pixels
}
void convert_sparse_count(benchmark::State& state) {
    static std::vector<std::byte> out(piece_pixels * 8);
    reduce::SparsePiece piece(reduce::PixelType::f32, 1024, piece_pixels / 1024);
    std::uint64_t above = 0;
    run(state, [&](Frame& f, std::size_t at) {
        if (at % piece_pixels == 0) piece.begin();
        convert_and_fetch(f, at);
        above += reduce::count_above(scratch_of(f), 6.2F);
        piece.append(scratch_of(f), 6.2F);
        if ((at + chunk_pixels) % piece_pixels == 0) piece.write_sparse(out.data());
    });
    benchmark::DoNotOptimize(above);
}
/// What a veto costs that looks for peaks: `threshold` decides how many local maxima there are to look at.
void convert_peaks_above(benchmark::State& state, float threshold) {
    reduce::PeakFinder finder({.threshold = threshold, .pixels_min = 1}, 1024);
    std::uint64_t peaks = 0;
    run(state, [&](Frame& f, std::size_t at) {
        if (at == 0) finder.begin_event();
        if (at % module_pixels == 0) finder.begin_module();
        reduce::convert(raw_of(f, at), f.at(at), scratch_of(f));
        finder.add(scratch_of(f));
        if ((at + chunk_pixels) % module_pixels != 0) return;
        finder.end_module();
        if (at + chunk_pixels == frame_pixels) peaks += finder.found();
    });
    state.counters["peaks"] = static_cast<double>(peaks) / static_cast<double>(state.iterations());
}
void convert_peaks(benchmark::State& state) {
    convert_peaks_above(state, 100);
}
/// Every hundredth pixel is a local maximum, and as many are looked at as ever are.
void convert_peaks_crowded(benchmark::State& state) {
    convert_peaks_above(state, 10);
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
BENCHMARK(convert_sparse_count)->Name("pixels/convert+count+sparse, not stored");
BENCHMARK(convert_sparse_dense)->Name("pixels/convert+sparse, a third kept");
BENCHMARK(convert_peaks)->Name("pixels/convert+peaks, not stored");
BENCHMARK(convert_peaks_crowded)->Name("pixels/convert+peaks, crowded");
BENCHMARK(convert_f16)->Name("pixels/convert+f16");
BENCHMARK(convert_u16)->Name("pixels/convert+u16");

}  // namespace
}  // namespace weir::bench
