// What recording costs an rx lcore, per packet, and what the recorder's thread gets done. Received packets are cold, as
// they are where payload is not looked at: 64 MiB of them in turn.
//   record/off      the first line of each packet, which rx reads anyway: what the others come on top of
//   record/copy     that and memcpy into a ring of 256 MiB: what a copy costs that goes through the caches
//   record/ring     that and RecordRing::add, as with packets = "all" and "incomplete" (for the lcore they are the
//   same) record/snap     the same with snap_bytes = 128 record/write    the recorder's part: records into a pcapng
//   file, per packet
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "stages/record_ring.hpp"
#include "store/pcapng_file.hpp"
#include "store/run_path.hpp"

namespace {

using weir::stages::RecordRing;

constexpr std::size_t set_bytes = std::size_t{64} << 20U;
constexpr std::size_t ring_bytes = std::size_t{256} << 20U;
constexpr std::size_t burst = 64;

/// Packets of one size, in buffers as large as those of a pool.
class Packets {
public:
    explicit Packets(std::size_t bytes)
        : stride_(std::max<std::size_t>(bytes + 256, 2304)),
          count_(set_bytes / stride_ / burst * burst),
          memory_(std::make_unique<std::byte[]>(count_ * stride_)),
          mbufs_(count_),
          packets_(count_) {
        for (std::size_t i = 0; i < count_; ++i) {
            std::memset(&mbufs_[i], 0, sizeof mbufs_[i]);
            mbufs_[i].buf_addr = memory_.get() + i * stride_;
            mbufs_[i].data_off = 128;
            mbufs_[i].data_len = static_cast<std::uint16_t>(bytes);
            mbufs_[i].pkt_len = static_cast<std::uint32_t>(bytes);
            mbufs_[i].nb_segs = 1;
            packets_[i] = {&mbufs_[i],
                           static_cast<std::int64_t>(i),
                           static_cast<std::uint32_t>(bytes),
                           static_cast<std::uint16_t>(bytes),
                           0,
                           0};
            std::memset(memory_.get() + i * stride_, static_cast<int>(i), stride_);
        }
    }
    [[nodiscard]] std::span<const weir::port::Packet> next() {
        at_ = at_ + burst == count_ ? 0 : at_ + burst;
        return {packets_.data() + at_, burst};
    }
    static std::uint8_t read_headers(std::span<const weir::port::Packet> packets) {
        std::uint8_t sum = 0;
        for (const auto& packet : packets) sum ^= *rte_pktmbuf_mtod(packet.mbuf, const std::uint8_t*);
        return sum;
    }

private:
    std::size_t stride_;
    std::size_t count_;
    std::unique_ptr<std::byte[]> memory_;
    std::vector<rte_mbuf> mbufs_;
    std::vector<weir::port::Packet> packets_;
    std::size_t at_ = 0;
};

void report(benchmark::State& state) {
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
    state.SetBytesProcessed(state.items_processed() * state.range(0));
}

void record_off(benchmark::State& state) {
    Packets packets(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) benchmark::DoNotOptimize(Packets::read_headers(packets.next()));
    report(state);
}

void record_copy(benchmark::State& state) {
    Packets packets(static_cast<std::size_t>(state.range(0)));
    const auto ring = std::make_unique<std::byte[]>(ring_bytes);
    std::size_t at = 0;
    for (auto _ : state) {
        const auto some = packets.next();
        benchmark::DoNotOptimize(Packets::read_headers(some));
        for (const auto& packet : some) {
            if (at + packet.captured_bytes > ring_bytes) at = 0;
            std::memcpy(ring.get() + at, rte_pktmbuf_mtod(packet.mbuf, const std::byte*), packet.captured_bytes);
            at += (packet.captured_bytes + 31U) / 32 * 32;
        }
        benchmark::ClobberMemory();
    }
    report(state);
}

void record_into(benchmark::State& state, std::uint32_t snap_bytes) {
    Packets packets(static_cast<std::size_t>(state.range(0)));
    RecordRing ring(ring_bytes / RecordRing::block_bytes, snap_bytes);
    for (auto _ : state) {
        const auto some = packets.next();
        benchmark::DoNotOptimize(Packets::read_headers(some));
        ring.add(some, 0);
        ring.release(ring.written());  // as a recorder that lets go at once
    }
    if (ring.left_out() > 0) state.SkipWithError("packets were left out");
    report(state);
}

void record_ring(benchmark::State& state) {
    record_into(state, 0);
}

void record_snap(benchmark::State& state) {
    record_into(state, 128);
}

void record_write(benchmark::State& state) {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("weir-bench-{}.pcapng", ::getpid());
    const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
    std::vector<weir::store::PcapngInterface> interfaces(1);
    weir::store::PcapngPacket packet;
    packet.bytes = bytes;
    packet.wire_bytes = static_cast<std::uint32_t>(bytes.size());
    packet.queue = 0;
    constexpr std::uint64_t file_bytes_max = std::uint64_t{256} << 20U;
    std::unique_ptr<weir::store::PcapngFile> file;
    const auto again = [&] {
        file.reset();
        std::filesystem::remove(weir::store::hidden_path(path));
    };
    for (auto _ : state) {
        if (file == nullptr || file->written_bytes() > file_bytes_max) {
            state.PauseTiming();
            again();
            file = std::make_unique<weir::store::PcapngFile>(path, weir::store::PcapngSection{}, interfaces);
            state.ResumeTiming();
        }
        for (std::size_t i = 0; i < burst; ++i) file->put(packet);
    }
    again();
    report(state);
}

BENCHMARK(record_off)->Name("record/off")->Arg(64)->Arg(1024)->Arg(8192);
BENCHMARK(record_copy)->Name("record/copy")->Arg(64)->Arg(1024)->Arg(8192);
BENCHMARK(record_ring)->Name("record/ring")->Arg(64)->Arg(1024)->Arg(8192);
BENCHMARK(record_snap)->Name("record/snap")->Arg(8192);
BENCHMARK(record_write)->Name("record/write")->Arg(1024)->Arg(8192);

}  // namespace
