// Packing pieces: each codec through the reducer beside the libraries called directly on the same buffers, and beside
// memcpy. Frames like JUNGFRAU's: raw, pedestal-subtracted, photons. A piece is in the second-level cache when it is
// packed, as it is on a worker, so the pieces are few.
#include <benchmark/benchmark.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "reduce/pack/bit_transpose.hpp"
#include "reduce/pack/packer.hpp"
#include "reduce/pack/unpacker.hpp"

namespace weir::bench {
namespace {

using reduce::pack::Codec;
using Bytes = std::vector<std::byte>;

constexpr std::size_t piece_bytes = std::size_t{256} << 10U;
constexpr std::size_t pieces = 4;

enum class Kind : std::uint8_t { raw, subtracted, photons };
constexpr std::array<const char*, 3> kind_names{"raw", "subtracted", "photons"};

/// As in the real frames: a level for each pixel, noise of 5 ADU, one pixel in a thousand in another gain; few photons.
Bytes make_frames(Kind kind) {
    std::mt19937 random(1);
    std::normal_distribution<float> noise(0, 5);
    std::normal_distribution<float> level(2700, 120);
    Bytes out(pieces * piece_bytes);
    for (std::size_t at = 0; at < out.size(); at += 2) {
        const bool photon = random() % 50 == 0;
        float value = noise(random) + (photon ? 508.F : 0.F);
        if (kind == Kind::raw) value += level(random);
        if (kind == Kind::photons) value = photon ? static_cast<float>(1 + random() % 3) : 0;
        auto word = static_cast<std::uint16_t>(static_cast<std::int16_t>(value));
        if (kind != Kind::photons && random() % 1000 == 0) word = kind == Kind::raw ? 0x4000 | 12000 : 12000;
        std::memcpy(out.data() + at, &word, 2);
    }
    return out;
}

std::span<const std::byte> piece_of(Kind kind, std::size_t turn) {
    static const std::array<Bytes, 3> frames{make_frames(Kind::raw), make_frames(Kind::subtracted),
                                             make_frames(Kind::photons)};
    return std::span(frames[static_cast<std::size_t>(kind)]).subspan(turn % pieces * piece_bytes, piece_bytes);
}

/// `work(piece)` returns the packed bytes, 0 if the piece is kept.
template <class Work>
void run(benchmark::State& state, Kind kind, Work work) {
    std::size_t turn = 0;
    std::size_t in = 0;
    std::size_t out = 0;
    for (auto _ : state) {
        const std::span<const std::byte> piece = piece_of(kind, turn++);
        const std::size_t bytes = work(piece);
        in += piece.size();
        out += bytes == 0 ? piece.size() : bytes;
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(in));
    state.counters["ratio"] = static_cast<double>(in) / static_cast<double>(out);
}

void reducer(benchmark::State& state, Codec codec, int level, Kind kind) {
    reduce::pack::Packer packer({codec, level, 2, kind == Kind::subtracted}, piece_bytes);
    Bytes out(packer.bound(piece_bytes));
    run(state, kind, [&](std::span<const std::byte> piece) { return packer.pack(piece, out); });
}

/// The library, block by block of `block` bytes, after the transposition if it `shuffles`.
class Direct {
public:
    Direct(bool zstd, int level, std::size_t block, bool shuffles)
        : zstd_(zstd),
          level_(level),
          block_(block),
          shuffles_(shuffles),
          context_(::ZSTD_createCCtx()),
          shuffled_(block),
          state_(static_cast<std::size_t>(::LZ4_sizeofState())),
          out_(ZSTD_COMPRESSBOUND(block)) {
        ::ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
    }
    ~Direct() { ::ZSTD_freeCCtx(context_); }
    Direct(const Direct&) = delete;
    Direct& operator=(const Direct&) = delete;

    std::size_t pack(std::span<const std::byte> piece) {
        std::size_t total = 0;
        for (std::size_t at = 0; at < piece.size(); at += block_) {
            std::span<const std::byte> in = piece.subspan(at, std::min(block_, piece.size() - at));
            if (shuffles_) {
                reduce::pack::transpose_bits(in, 2, shuffled_);
                in = std::span(shuffled_).first(in.size());
            }
            total +=
                zstd_
                    ? ::ZSTD_compress2(context_, out_.data(), out_.size(), in.data(), in.size())
                    : static_cast<std::size_t>(::LZ4_compress_fast_extState(
                          state_.data(), reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out_.data()),
                          static_cast<int>(in.size()), static_cast<int>(out_.size()), std::max(1, 1 - level_)));
            benchmark::ClobberMemory();
        }
        return total;
    }

private:
    bool zstd_;
    int level_;
    std::size_t block_;
    bool shuffles_;
    ZSTD_CCtx* context_;
    Bytes shuffled_;
    std::vector<std::uint64_t> state_;
    Bytes out_;
};

void direct(benchmark::State& state, Codec codec, int level, Kind kind) {
    const bool shuffles = codec == Codec::bitshuffle_lz4 || codec == Codec::bitshuffle_zstd;
    const bool zstd = codec == Codec::zstd || codec == Codec::bitshuffle_zstd;
    Direct library(zstd, level, shuffles ? reduce::pack::block_bytes : piece_bytes, shuffles);
    run(state, kind, [&](std::span<const std::byte> piece) { return library.pack(piece); });
}

void unpack(benchmark::State& state, Codec codec, int level, Kind kind) {
    reduce::pack::Packer packer({codec, level, 2, false}, piece_bytes);
    std::array<Bytes, pieces> packed;
    for (std::size_t turn = 0; turn < pieces; ++turn) {
        packed[turn].resize(packer.bound(piece_bytes));
        packed[turn].resize(packer.pack(piece_of(kind, turn), packed[turn]));
        if (packed[turn].empty()) return state.SkipWithError("the piece does not get shorter");
    }
    reduce::pack::Unpacker unpacker;
    Bytes out(piece_bytes);
    std::size_t turn = 0;
    for (auto _ : state)
        if (!unpacker.unpack(codec, 2, packed[turn++ % pieces], out).empty())
            return state.SkipWithError("it does not come back");
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(piece_bytes));
}

void copy(benchmark::State& state) {
    Bytes out(piece_bytes);
    run(state, Kind::raw, [&](std::span<const std::byte> piece) {
        std::memcpy(out.data(), piece.data(), piece.size());
        return piece.size();
    });
}

template <std::size_t ElementBytes>
void transpose(benchmark::State& state) {
    Bytes out(piece_bytes);
    run(state, Kind::raw, [&](std::span<const std::byte> piece) {
        for (std::size_t at = 0; at < piece.size(); at += reduce::pack::block_bytes)
            reduce::pack::transpose_bits(piece.subspan(at, reduce::pack::block_bytes), ElementBytes,
                                         std::span(out).subspan(at, reduce::pack::block_bytes));
        return piece.size();
    });
}

BENCHMARK(copy)->Name("pack/memcpy");
BENCHMARK(transpose<1>)->Name("pack/transposition/1 byte");
BENCHMARK(transpose<2>)->Name("pack/transposition/2 bytes");
BENCHMARK(transpose<4>)->Name("pack/transposition/4 bytes");
BENCHMARK(transpose<8>)->Name("pack/transposition/8 bytes");

[[maybe_unused]] const bool registered = [] {
    struct Choice {
        Codec codec;
        int level;
    };
    for (const Choice choice : {Choice{Codec::bitshuffle_lz4, 1},
                                {Codec::bitshuffle_zstd, -5},
                                {Codec::bitshuffle_zstd, 1},
                                {Codec::lz4, 1},
                                {Codec::zstd, 1},
                                {Codec::bits, 0}}) {
        for (const Kind kind : {Kind::raw, Kind::subtracted, Kind::photons}) {
            const std::string name = "pack/" + std::string(reduce::pack::name(choice.codec)) + " " +
                                     std::to_string(choice.level) + "/" + kind_names[static_cast<std::size_t>(kind)];
            benchmark::RegisterBenchmark(name.c_str(),
                                         [=](auto& state) { reducer(state, choice.codec, choice.level, kind); });
            if (choice.codec != Codec::bits)
                benchmark::RegisterBenchmark((name + "/library").c_str(),
                                             [=](auto& state) { direct(state, choice.codec, choice.level, kind); });
            if (choice.codec != Codec::lz4)
                benchmark::RegisterBenchmark((name + "/unpack").c_str(),
                                             [=](auto& state) { unpack(state, choice.codec, choice.level, kind); });
        }
    }
    return true;
}();

}  // namespace
}  // namespace weir::bench
