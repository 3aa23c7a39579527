// The reductions that have been published for a GPU, on CPU cores: frames of three sizes, in batches of 10 that do not
// fit into any cache, from raw pixels to energies, counted, sparse, searched for peaks; on one core and on all.
//
// Ponsard et al., J. Synchrotron Rad. 2020, one Quadro P6000, microseconds per frame: conversion, with counting, with
// CSR: 28, 31, 147 (JUNGFRAU 500K), 219, 240, 469 (4M), 212, 240, 492 (2070 x 2167); a peak finder 2167.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "made_frames.hpp"
#include "reduce/pixels/pixels.hpp"
#include "reduce/sparse/sparse_piece.hpp"
#include "reduce/veto/peak_finder.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t batch = 10;
constexpr std::size_t chunk_pixels = 4096;     // a packet; its energies stay in the first-level cache
constexpr std::size_t piece_pixels = 1 << 16;  // at most: 256 KiB of energies

/// A detector: modules of equal size, one after the other.
struct Shape {
    const char* name;
    std::size_t modules;
    std::size_t rows;
    std::size_t columns;
    [[nodiscard]] std::size_t module_pixels() const { return rows * columns; }
    [[nodiscard]] std::size_t pixels() const { return modules * module_pixels(); }
};
constexpr std::array shapes{Shape{"500K", 1, 512, 1024}, Shape{"4M", 8, 512, 1024}, Shape{"2070x2167", 1, 2167, 2070}};

const MadeFrames& published_frames(const Shape& shape) {
    static std::mutex alone;  // all threads of a benchmark come here first
    const std::lock_guard lock(alone);
    static std::map<const Shape*, std::unique_ptr<MadeFrames>> made;
    std::unique_ptr<MadeFrames>& frames = made[&shape];
    if (frames == nullptr) frames = std::make_unique<MadeFrames>(shape.pixels(), batch);
    return *frames;
}

/// What is done with a frame, by one thread.
class Reduction {
public:
    enum class What : std::uint8_t { convert, count, csr, peaks };

    Reduction(const Shape& shape, What what)
        : shape_(shape),
          what_(what),
          rows_(piece_pixels / shape.columns),
          piece_(reduce::PixelType::f32, static_cast<std::uint32_t>(shape.columns), static_cast<std::uint32_t>(rows_)),
          finder_({.threshold = 100, .pixels_min = 1}, static_cast<std::uint32_t>(shape.columns)),
          out_(what == What::peaks ? 0 : shape.pixels()) {}

    void frame(const MadeFrames& frames, const std::vector<std::uint16_t>& raw) {
        finder_.begin_event();
        for (std::size_t module = 0; module < shape_.modules; ++module) {
            finder_.begin_module();
            const std::size_t end = (module + 1) * shape_.module_pixels();
            for (std::size_t at = module * shape_.module_pixels(); at < end; at += rows_ * shape_.columns)
                piece(frames, raw, at, std::min(at + rows_ * shape_.columns, end));
            finder_.end_module();
        }
        found_ += finder_.found();
        benchmark::DoNotOptimize(found_);
        benchmark::ClobberMemory();
    }

private:
    void piece(const MadeFrames& frames, const std::vector<std::uint16_t>& raw, std::size_t begin, std::size_t end) {
        piece_.begin();
        for (std::size_t at = begin; at < end; at += chunk_pixels) {
            const std::size_t pixels = std::min(chunk_pixels, end - at);
            const bool stored = what_ == What::convert || what_ == What::count;
            const std::span<float> energy =
                stored ? std::span(out_).subspan(at, pixels) : std::span(energy_).first(pixels);
            reduce::convert(std::span(raw).subspan(at, pixels), frames.at(at), energy);
            if (what_ == What::count) found_ += reduce::count_above(energy, 6.2F);
            if (what_ == What::csr) piece_.append(energy, 6.2F);
            if (what_ == What::peaks) finder_.add(energy);
        }
        if (what_ == What::csr) piece_.write_sparse(reinterpret_cast<std::byte*>(out_.data() + begin));
    }

    const Shape& shape_;
    What what_;
    std::size_t rows_;  ///< of a piece
    reduce::SparsePiece piece_;
    reduce::PeakFinder finder_;
    std::vector<float> out_;
    std::array<float, chunk_pixels> energy_{};
    std::uint64_t found_ = 0;
};

/// Threads take turns in the batch, so each has frames of its own.
void reduce_batches(benchmark::State& state, const Shape& shape, Reduction::What what) {
    const MadeFrames& frames = published_frames(shape);
    Reduction reduction(shape, what);
    auto next = static_cast<std::size_t>(state.thread_index());
    for (auto _ : state) {
        reduction.frame(frames, frames.raw[next % batch]);
        next += static_cast<std::size_t>(state.threads());
    }
    const auto done = static_cast<double>(state.iterations());
    state.counters["frames"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
    state.counters["frame"] = benchmark::Counter(done, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const bool registered = [] {
    using What = Reduction::What;
    constexpr std::array<std::pair<const char*, What>, 4> kinds{
        {{"convert", What::convert}, {"count", What::count}, {"csr", What::csr}, {"peaks", What::peaks}}};
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (const Shape& shape : shapes)
        for (const auto& [name, what] : kinds) {
            auto* const made = benchmark::RegisterBenchmark(
                (std::string("published/") + shape.name + "/" + name).c_str(),
                [&shape, what = what](benchmark::State& state) { reduce_batches(state, shape, what); });
            made->UseRealTime()->Threads(1);
            if (cores > 1) made->Threads(cores);
        }
    return true;
}();

}  // namespace
}  // namespace weir::bench
