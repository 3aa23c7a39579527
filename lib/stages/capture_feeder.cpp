#include "stages/capture_feeder.hpp"

#include <rte_lcore.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "core/clock_ns.hpp"
#include "core/one_writer.hpp"

namespace weir::stages {

using port::Packet;
using wire::PacketCounter;

namespace {

void rest() {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// Stamps can be anything, so what is made of them stops at the ends of the scale.
TimeNs sum(TimeNs a, TimeNs b) noexcept {
    TimeNs out = 0;
    if (__builtin_add_overflow(a, b, &out))
        return a < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max();
    return out;
}

TimeNs difference(TimeNs a, TimeNs b) noexcept {
    TimeNs out = 0;
    if (__builtin_sub_overflow(a, b, &out))
        return a < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max();
    return out;
}

}  // namespace

CaptureFeeder::CaptureFeeder(const Config& config, port::Ring<Packet>& ring, port::BufferPool& pool,
                             PassSignals* passes)
    : config_(config), ring_(ring), pool_(pool), passes_(passes), blocks_(config.blocks) {
    for (std::size_t i = 0; i < config.files.size(); ++i)
        files_.push_back({store::CaptureReader(config.files[i], &blocks_), config.ports[i], {}, false});
}

CaptureFeeder::~CaptureFeeder() {
    join();
}

void CaptureFeeder::start(const RunSignals& signals) {
    for (File& file : files_) file.has_record = file.reader.next(file.record);
    set_range();
    thread_ = std::thread([this, &signals] { run(signals); });
}

void CaptureFeeder::join() {
    if (thread_.joinable()) thread_.join();
}

std::vector<std::string> CaptureFeeder::warnings() const {
    std::vector<std::string> texts = warnings_;
    for (const File& file : files_)
        if (file.reader.cut_off() && std::ranges::find(texts, file.reader.cut_off_text()) == texts.end())
            texts.push_back(file.reader.cut_off_text());
    return texts;
}

/// Distances count from the first record of all files.
void CaptureFeeder::set_range() {
    std::size_t file = 0;
    const TimeNs first_ns = next_record(file) ? files_[file].record.time_ns : 0;
    const auto moment = [&](const TimeBound& bound) { return bound.relative ? sum(first_ns, bound.ns) : bound.ns; };
    if (config_.from.has_value()) from_ns_ = moment(*config_.from);
    if (config_.to.has_value()) to_ns_ = moment(*config_.to);
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

/// Opens the files once more. Their first record is then due one mean distance after the last one.
bool CaptureFeeder::rewind(const RunSignals& signals) {
    if (pass_ == 0 && !close_first_pass(signals)) return false;
    if (records_per_pass_ == 0) records_per_pass_ = records_.load(std::memory_order_relaxed);
    if (records_per_pass_ == 0) return false;
    const TimeNs span = difference(difference(time_ns_, shift_ns_), first_ns_);
    const auto step = std::max<TimeNs>(1, span / static_cast<TimeNs>(records_per_pass_));
    if (__builtin_add_overflow(shift_ns_, sum(span, step), &shift_ns_)) return false;
    warnings_ = warnings();
    try {
        for (File& file : files_) {
            file.reader = store::CaptureReader(file.reader.name(), &blocks_);
            file.has_record = file.reader.next(file.record);
        }
    } catch (const std::exception& error) {
        warnings_.push_back(error.what());
        return false;
    }
    return true;
}

/// The file whose next record is the earliest.
bool CaptureFeeder::next_record(std::size_t& file) noexcept {
    bool found = false;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        if (!files_[i].has_record) continue;
        if (!found || files_[i].record.time_ns < files_[file].record.time_ns) file = i;
        found = true;
    }
    return found;
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
        wall_start_ns_ + static_cast<TimeNs>(static_cast<double>(time_ns - first_ns_) / config_.pace.speed);
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
    // Where it lies, unless it is small, or open events hold all blocks and the reader has only its own memory left.
    if (record.block != nullptr && record.bytes.size() >= port::CaptureBlocks::referred_bytes_min)
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
                 static_cast<std::uint8_t>(pass_)});
    if (batch_.full()) flush(signals);
}

void CaptureFeeder::run_once(const RunSignals& signals) {
    std::size_t file = 0;
    while (!signals.stop_input.load(std::memory_order_relaxed) && next_record(file)) {
        const store::CaptureReader::Record& record = files_[file].record;
        if (record.time_ns < from_ns_ || record.time_ns >= to_ns_) {
            core::add(skipped_, 1);
            files_[file].has_record = files_[file].reader.next(files_[file].record);
            continue;
        }
        if (!started_) first_ns_ = record.time_ns;
        started_ = true;
        time_ns_ = std::max(time_ns_, sum(record.time_ns, shift_ns_));  // time never runs backwards
        keep_pace(time_ns_, signals);
        core::add(records_, 1);
        core::add(record_bytes_, record.bytes.size());
        hand_over(record, files_[file].port, time_ns_, signals);
        files_[file].has_record = files_[file].reader.next(files_[file].record);
    }
}

void CaptureFeeder::run(const RunSignals& signals) {
    // A registered thread has a cache of its own in the pool. Where there is no lcore id left it works without.
    const bool registered = ::rte_thread_register() == 0;
    wall_start_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    run_once(signals);
    for (std::uint32_t pass = 1; pass < config_.loop; ++pass) {
        if (signals.stop_input.load(std::memory_order_relaxed) || !rewind(signals)) break;
        pass_ = pass;
        run_once(signals);
    }
    flush(signals);
    if (registered) ::rte_thread_unregister();
    ended_.store(true, std::memory_order_release);
}

}  // namespace weir::stages
