// Live pedestals: what a dark frame costs the thread that collects it, beside plain C++ and beside moving as many
// bytes; what the end of an interval costs; and what a worker pays for copying every hundredth frame. Frames of 4
// megapixels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/slice_threads.hpp"
#include "reduce/collect_reference.hpp"
#include "reduce/pedestal/tracker.hpp"
#include "reduce/pixels/pixels.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t frame_pixels = 8 * 512 * 1024;
constexpr std::size_t chunk_pixels = 4096;

struct Dark {
    Dark()
        : raw(frame_pixels),
          mean(frame_pixels, 2750),
          rms(frame_pixels, 5),
          factor(frame_pixels, 1 / 41.F),
          energy(chunk_pixels),
          copy(frame_pixels),
          sums(frame_pixels) {
        std::mt19937 random(1);
        std::normal_distribution<float> noise(2750, 5);
        for (std::uint16_t& word : raw) word = static_cast<std::uint16_t>(noise(random));
    }
    [[nodiscard]] reduce::PedestalJudge judge() const { return {mean, rms, 5, 0}; }
    std::vector<std::uint16_t> raw;
    std::vector<float> mean;
    std::vector<float> rms;
    std::vector<float> factor;
    std::vector<float> energy;
    std::vector<std::uint16_t> copy;
    reduce::SumArrays sums;
};

Dark& dark() {
    static Dark dark;
    return dark;
}

void count(benchmark::State& state) {
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frame_pixels));
}

/// So many frames at once, as the thread does it that collects them.
void collect_of(benchmark::State& state, std::size_t frames) {
    Dark& d = dark();
    static const std::vector<std::vector<std::uint16_t>> raws(10, d.raw);
    std::vector<const std::uint16_t*> together;
    for (std::size_t i = 0; i < frames; ++i) together.push_back(raws[i].data());
    std::size_t done = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(reduce::collect(together, d.judge(), d.sums.all()));
        if ((done += frames) % 1000 == 0) std::ranges::fill(d.sums.all().sum, 0U);  // long before they overflow
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frames * frame_pixels));
}
void collect(benchmark::State& state) {
    collect_of(state, 1);
}
void collect_together(benchmark::State& state) {
    collect_of(state, 10);
}
/// The same on all cores, each with pixels of its own.
void collect_on_all_cores(benchmark::State& state) {
    constexpr std::size_t frames = 10;
    Dark& d = dark();
    static const std::vector<std::vector<std::uint16_t>> raws(frames, d.raw);
    core::SliceThreads threads(std::max(1U, std::thread::hardware_concurrency()));
    std::size_t done = 0;
    for (auto _ : state) {
        threads.run([&](std::uint32_t slice) {
            const std::size_t first = frame_pixels * slice / threads.count();
            const std::size_t pixels = frame_pixels * (slice + std::size_t{1}) / threads.count() - first;
            std::array<const std::uint16_t*, frames> together{};
            for (std::size_t i = 0; i < frames; ++i) together[i] = raws[i].data() + first;
            const reduce::PedestalJudge judge{std::span(d.mean).subspan(first, pixels),
                                              std::span(d.rms).subspan(first, pixels), 5, 0};
            benchmark::DoNotOptimize(
                reduce::collect(std::span<const std::uint16_t* const>(together), judge, d.sums.of(first, pixels)));
        });
        if ((done += frames) % 1000 == 0) std::ranges::fill(d.sums.all().sum, 0U);  // long before they overflow
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frames * frame_pixels));
}
void collect_plain(benchmark::State& state) {
    Dark& d = dark();
    for (auto _ : state) benchmark::DoNotOptimize(reduce::reference::collect(d.raw, d.judge(), d.sums.all()));
    count(state);
}
/// Reads 2 + 4 + 4 bytes, reads and writes 4 + 8 + 2 for each pixel.
void move_bytes(benchmark::State& state) {
    Dark& d = dark();
    const reduce::PedestalSums sums = d.sums.all();
    for (auto _ : state) {
        for (std::size_t i = 0; i < frame_pixels; ++i) {
            std::uint32_t bits = 0;
            std::uint32_t more = 0;
            std::memcpy(&bits, d.mean.data() + i, 4);
            std::memcpy(&more, d.rms.data() + i, 4);
            bits ^= more ^ d.raw[i];
            sums.sum[i] ^= bits;
            sums.squares[i] ^= bits;
            sums.count[i] = static_cast<std::uint16_t>(sums.count[i] ^ bits);
        }
        benchmark::ClobberMemory();
    }
    count(state);
}
/// The end of an interval: sums are folded in, and a generation is written.
void fold(benchmark::State& state) {
    Dark& d = dark();
    reduce::PedestalTracker tracker({}, reduce::PedestalState(frame_pixels));
    std::vector<float> mean(frame_pixels);
    std::vector<float> rms(frame_pixels);
    for (auto _ : state) {
        state.PauseTiming();
        reduce::collect(d.raw, d.judge(), d.sums.all());
        state.ResumeTiming();
        tracker.fold(0, d.sums.all());
        tracker.publish(0, mean, rms, d.mean);
    }
    count(state);
}
/// What a worker does with every frame, and with every `every`th for the pedestals.
void worker(benchmark::State& state, int every) {
    Dark& d = dark();
    int frames = 0;
    reduce::PixelCalibration calibration;
    for (auto _ : state) {
        if (every > 0 && frames++ % every == 0) std::memcpy(d.copy.data(), d.raw.data(), 2 * frame_pixels);
        for (std::size_t at = 0; at < frame_pixels; at += chunk_pixels) {
            for (std::size_t gain = 0; gain < 3; ++gain) {
                calibration.pedestal[gain] = d.mean.data() + at;
                calibration.factor[gain] = d.factor.data() + at;
            }
            reduce::convert(std::span(d.raw).subspan(at, chunk_pixels), calibration, d.energy);
            benchmark::ClobberMemory();
        }
    }
    count(state);
}
void worker_none(benchmark::State& state) {
    worker(state, 0);
}
void worker_100(benchmark::State& state) {
    worker(state, 100);
}

BENCHMARK(move_bytes)->Name("pedestal/move_the_same_bytes");
BENCHMARK(collect_together)->Name("pedestal/collect ten frames together");
BENCHMARK(collect_on_all_cores)->Name("pedestal/collect ten frames together, all cores")->UseRealTime();
BENCHMARK(collect)->Name("pedestal/collect a dark frame");
BENCHMARK(collect_plain)->Name("pedestal/collect a dark frame/plain C++");
BENCHMARK(fold)->Name("pedestal/fold and publish");
BENCHMARK(worker_none)->Name("pedestal/convert");
BENCHMARK(worker_100)->Name("pedestal/convert, every 100th frame dark")->MinTime(2);

}  // namespace
}  // namespace weir::bench
