// See record_ring.hpp.
#include "stages/record_ring.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/error.hpp"
#include "core/one_writer.hpp"

namespace weir::stages {

using port::Packet;

namespace {

constexpr std::uint32_t stride = sizeof(RecordHead);
constexpr std::uint32_t past_caches_min = 4096;  ///< smaller copies are cheaper through them

constexpr std::uint64_t record_bytes(std::uint32_t bytes) noexcept {
    return (std::uint64_t{bytes} + 2 * stride - 1) / stride * stride;
}

/// Copies past the caches: it will be long until anybody reads it, if ever, and the rx lcore's caches have better to
/// hold. docs/internals/benchmarks/FILES.md has the measurement. `to` is a multiple of 16.
void copy_past_caches(std::byte* to, const std::byte* from, std::uint32_t bytes) noexcept {
#if defined(__SSE2__)
    std::uint32_t at = 0;
    if (bytes >= past_caches_min) {
        for (; at + 64 <= bytes; at += 64)
            for (std::uint32_t part = 0; part < 64; part += 16)
                _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part)));
    }
    std::memcpy(to + at, from + at, bytes - at);
#else
    std::memcpy(to, from, bytes);
#endif
}

/// What of the packet can be read: all of it, in whatever number of buffers.
std::uint32_t readable_bytes(const Packet& packet) noexcept {
    return packet.mbuf->nb_segs > 1 ? packet.mbuf->pkt_len : packet.captured_bytes;
}

void copy_packet(std::byte* to, const Packet& packet, std::uint32_t bytes) noexcept {
    if (packet.mbuf->nb_segs == 1) return copy_past_caches(to, rte_pktmbuf_mtod(packet.mbuf, const std::byte*), bytes);
    for (const rte_mbuf* part = packet.mbuf; part != nullptr && bytes > 0; part = part->next) {
        const std::uint32_t some = std::min<std::uint32_t>(bytes, part->data_len);
        std::memcpy(to, rte_pktmbuf_mtod(part, const std::byte*), some);
        to += some;
        bytes -= some;
    }
}

}  // namespace

RecordRing::RecordRing(std::uint64_t blocks, std::uint32_t snap_bytes)
    : blocks_(std::max(blocks, blocks_min)),
      size_(blocks_ * block_bytes),
      snap_bytes_(snap_bytes == 0 ? packet_bytes_max : std::min(snap_bytes, packet_bytes_max)),
      newest_(blocks_, std::numeric_limits<TimeNs>::min()),
      ports_(std::make_unique<Port[]>(256)) {
    void* const memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw core::RunError(
            fmt::format("no memory for the recorder's {} MiB: {}", size_ >> 20U, std::strerror(errno)));
    memory_ = static_cast<std::byte*>(memory);
    ::madvise(memory, size_, MADV_HUGEPAGE);  // where there are none, small pages do
    // Touched now: the lcore's first lap would pay for every page otherwise.
    constexpr std::uint64_t page_bytes = 4096;
    for (std::uint64_t at = 0; at < size_; at += page_bytes) memory_[at] = std::byte{0};
}

RecordRing::~RecordRing() {
    ::munmap(memory_, size_);
}

/// Memory for a record, or nullptr when all blocks are in use. Records do not cross the border of a block.
std::byte* RecordRing::room_for(std::uint32_t bytes, TimeNs time_ns) noexcept {
    const std::uint64_t wanted = record_bytes(bytes);
    const std::uint64_t in_block = at_ % block_bytes;
    if (in_block != 0 && in_block + wanted <= block_bytes) {
        std::byte* const at = memory_ + at_ % size_;
        at_ += wanted;
        if (at_ % block_bytes == 0) newest_[(at_ / block_bytes - 1) % blocks_] = time_ns;
        return at;
    }
    // The next block, if it has been given back.
    const std::uint64_t next_block = (at_ + block_bytes - 1) / block_bytes;
    if (next_block - released_.load(std::memory_order_acquire) >= blocks_) return nullptr;
    if (in_block != 0) {
        reinterpret_cast<RecordHead*>(memory_ + at_ % size_)->bytes = RecordHead::block_end;
        newest_[(next_block - 1) % blocks_] = block_newest_;
    }
    at_ = next_block * block_bytes + wanted;
    return memory_ + next_block % blocks_ * block_bytes;
}

void RecordRing::add(std::span<const Packet> packets, std::uint16_t queue) noexcept {
    constexpr std::size_t ahead = 4;
    std::uint64_t left_out = 0;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (i + ahead < packets.size()) rte_prefetch0(packets[i + ahead].mbuf);
        const Packet& packet = packets[i];
        Port& port = ports_[packet.port];
        core::add(port.seen, 1);
        const std::uint32_t bytes = std::min(readable_bytes(packet), snap_bytes_);
        std::byte* const to = room_for(bytes, packet.time_ns);
        if (to == nullptr) {
            ++port.lost;
            ++left_out;
            core::add(port.left_out, 1);
            continue;
        }
        auto* const head = reinterpret_cast<RecordHead*>(to);
        *head = {packet.time_ns, packet.wire_bytes, bytes, port.lost, queue, packet.port, 0, 0};
        port.lost = 0;
        block_newest_ = packet.time_ns;
        copy_packet(to + sizeof(RecordHead), packet, bytes);
    }
#if defined(__SSE2__)
    _mm_sfence();  // stores past the caches are not ordered with others
#endif
    core::add(seen_, packets.size());
    if (left_out > 0) core::add(left_out_, left_out);
    written_.store(at_, std::memory_order_release);
}

std::uint64_t RecordRing::next(std::uint64_t position) const noexcept {
    return position + record_bytes(head_at(position).bytes);
}

std::uint64_t RecordRing::record_from(std::uint64_t position, std::uint64_t end) const noexcept {
    while (position < end && position % block_bytes != 0 && head_at(position).bytes == RecordHead::block_end)
        position = (position / block_bytes + 1) * block_bytes;
    return std::min(position, end);
}

}  // namespace weir::stages
