#include "stages/capture_feeder.hpp"

#include <rte_lcore.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/clock_ns.hpp"
#include "core/one_writer.hpp"

namespace weir::stages {

using port::Packet;
using wire::PacketCounter;

namespace {

void rest() {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace

CaptureFeeder::CaptureFeeder(const Config& config, port::Ring<Packet>& ring, port::BufferPool& pool,
                             PassSignals* passes)
    : config_(config),
      ring_(ring),
      pool_(pool),
      passes_(passes),
      blocks_(config.blocks),
      source_({config.files, config.from, config.to}, &blocks_) {}

CaptureFeeder::~CaptureFeeder() {
    join();
}

void CaptureFeeder::start(const RunSignals& signals) {
    thread_ = std::thread([this, &signals] { run(signals); });
}

void CaptureFeeder::join() {
    if (thread_.joinable()) thread_.join();
}

/// Waits until the first pass has gone through all rx lcores and it is known how far its numbers reach. False when the
/// run ends before.
bool CaptureFeeder::close_first_pass(const RunSignals& signals) {
    flush(signals);
    const auto is_processed = [&] {
        // In this order: a packet that is steered on is counted as steered before it is counted as processed.
        std::uint64_t processed = 0;
        std::uint64_t steered = 0;
        for (const PassSignals::Rx& rx : passes_->rx) processed += rx.processed.load(std::memory_order_acquire);
        for (const PassSignals::Rx& rx : passes_->rx) steered += rx.steered.load(std::memory_order_relaxed);
        return processed == pushed_ + steered;
    };
    const auto is_closed = [&] {
        return std::ranges::all_of(passes_->rx,
                                   [](const auto& rx) { return rx.closed.load(std::memory_order_acquire); });
    };
    const auto is_over = [&] {
        return signals.exit.load(std::memory_order_relaxed) || signals.stop_input.load(std::memory_order_relaxed);
    };
    while (!is_processed() && !is_over()) rest();
    if (is_over()) return false;
    passes_->close.store(true, std::memory_order_release);
    while (!is_closed() && !is_over()) rest();
    if (is_over()) return false;
    passes_->measure();
    return true;
}

/// Begins another pass. False when there is none.
bool CaptureFeeder::rewind(const RunSignals& signals) {
    if (source_.passes() == 1 && !close_first_pass(signals)) return false;
    return source_.next_pass();
}

void CaptureFeeder::wait_for_room() noexcept {
    const TimeNs begin = core::clock_ns(CLOCK_MONOTONIC);
    rest();
    core::add(waiting_ns_, static_cast<std::uint64_t>(core::clock_ns(CLOCK_MONOTONIC) - begin));
}

void CaptureFeeder::flush(const RunSignals& signals) noexcept {
    while (!batch_.empty()) {
        pushed_ += batch_.push_to(ring_);
        if (batch_.empty()) return;
        if (!config_.wait || signals.exit.load(std::memory_order_relaxed)) {
            packets_.add(PacketCounter::ring_full_capture, batch_.size());
            ring_.count_dropped(batch_.size());
            return batch_.give_back();
        }
        wait_for_room();
    }
}

void CaptureFeeder::keep_pace(TimeNs time_ns, const RunSignals& signals) {
    if (config_.pace.speed <= 0) return;
    const auto due =
        wall_start_ns_ + static_cast<TimeNs>(static_cast<double>(time_ns - source_.first_ns()) / config_.pace.speed);
    if (core::clock_ns(CLOCK_MONOTONIC) >= due) return;
    flush(signals);
    const TimeNs begin = core::clock_ns(CLOCK_MONOTONIC);
    while (core::clock_ns(CLOCK_MONOTONIC) < due && !signals.stop_input.load(std::memory_order_relaxed))
        std::this_thread::sleep_for(
            std::chrono::nanoseconds(std::min<TimeNs>(due - core::clock_ns(CLOCK_MONOTONIC), 10 * core::ns_per_ms)));
    core::add(pacing_ns_, static_cast<std::uint64_t>(core::clock_ns(CLOCK_MONOTONIC) - begin));
}

/// A buffer with the record in it, or nullptr where there is none and nobody wants to wait.
rte_mbuf* CaptureFeeder::buffer_for(const store::CaptureReader::Record& record, const RunSignals& signals) {
    // Where it lies, unless open events hold all blocks and the reader has only its own memory left.
    if (record.block != nullptr)
        if (rte_mbuf* mbuf = blocks_.refer(*record.block, record.bytes); mbuf != nullptr) return mbuf;
    rte_mbuf* mbuf = pool_.allocate();
    while (mbuf == nullptr && config_.wait) {
        if (signals.exit.load(std::memory_order_relaxed)) break;
        flush(signals);
        wait_for_room();
        mbuf = pool_.allocate();
    }
    if (mbuf == nullptr) return nullptr;
    std::memcpy(rte_pktmbuf_mtod(mbuf, void*), record.bytes.data(), record.bytes.size());
    mbuf->data_len = static_cast<std::uint16_t>(record.bytes.size());
    mbuf->pkt_len = mbuf->data_len;
    return mbuf;
}

void CaptureFeeder::hand_over(const store::CaptureReader::Record& record, std::uint16_t port, TimeNs time_ns,
                              const RunSignals& signals) {
    if (record.bytes.size() > pool_.room_bytes()) {
        packets_.add(PacketCounter::malformed_oversized);
        return;
    }
    rte_mbuf* mbuf = buffer_for(record, signals);
    if (mbuf == nullptr) {
        packets_.add(PacketCounter::ring_full_capture);
        return;
    }
    batch_.push({mbuf, time_ns, record.wire_bytes, mbuf->data_len, static_cast<std::uint8_t>(port),
                 static_cast<std::uint8_t>(source_.passes() - 1)});
    if (batch_.full()) flush(signals);
}

void CaptureFeeder::run_once(const RunSignals& signals) {
    CaptureSource::Item item;
    for (;;) {
        if (signals.stop_input.load(std::memory_order_relaxed)) {
            was_stopped_.store(true, std::memory_order_relaxed);
            return;
        }
        if (!source_.next(item)) return;
        if (item.record == nullptr) continue;
        keep_pace(item.time_ns, signals);
        core::add(records_, 1);
        core::add(record_bytes_, item.record->bytes.size());
        hand_over(*item.record, config_.ports[item.file], item.time_ns, signals);
    }
}

void CaptureFeeder::run(const RunSignals& signals) {
    // A registered thread has a cache of its own in the pool. Where there is no lcore id left it works without.
    const bool registered = ::rte_thread_register() == 0;
    wall_start_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    run_once(signals);
    for (std::uint32_t pass = 1; pass < config_.loop; ++pass) {
        if (signals.stop_input.load(std::memory_order_relaxed) || !rewind(signals)) break;
        run_once(signals);
    }
    flush(signals);
    if (registered) ::rte_thread_unregister();
    ended_.store(true, std::memory_order_release);
}

}  // namespace weir::stages
