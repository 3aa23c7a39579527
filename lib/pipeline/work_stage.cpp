#include "pipeline/work_stage.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::pipeline {

using assemble::Event;
using assemble::EventCause;
using assemble::Message;

namespace {

store::Cause cause_of(EventCause cause) noexcept {
    switch (cause) {
        case EventCause::complete:
            return store::Cause::none;
        case EventCause::timeout:
            return store::Cause::timeout;
        case EventCause::evicted:
            return store::Cause::evicted;
        case EventCause::end_of_run:
            return store::Cause::end_of_run;
        case EventCause::no_room:
            break;
    }
    return store::Cause::no_room;
}

constexpr std::size_t null_buffer_bytes = std::size_t{1} << 20U;

void add(std::atomic<std::uint64_t>& value, std::uint64_t n) noexcept {
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // one writer
}

}  // namespace

WorkStage::WorkStage(const Config& config, RunSignals& signals)
    : config_(config),
      signals_(signals),
      refs_(config.refs_max),
      received_(store::BlockWriter::missing_count_max - 1),
      missing_(store::BlockWriter::missing_count_max),
      missing_packets_(config.sources.size()) {
    if (config.zstd_level.has_value()) zstd_ = std::make_unique<reduce::ZstdReducer>(*config.zstd_level);
    if (!config.to_file) {
        null_memory_ = std::make_unique<std::byte[]>(null_buffer_bytes + 64);
        auto* first = null_memory_.get();
        first += (64 - reinterpret_cast<std::uintptr_t>(first) % 64) % 64;
        null_buffer_.memory = {first, null_buffer_bytes};
    }
}

std::uint64_t WorkStage::missing_packets(std::uint32_t source) const noexcept {
    return missing_packets_[source].load(std::memory_order_relaxed);
}

bool WorkStage::take_event() noexcept {
    // The shards take turns.
    std::array<Event*, 1> taken;
    std::size_t asked = 0;
    do {
        if (asked++ == config_.build.size()) return false;
        from_ = from_ + 1 < config_.build.size() ? from_ + 1 : 0;
    } while (config_.build[from_].events->pop(taken) == 0);
    event_ = taken[0];
    phase_ = Phase::event;
    source_ = 0;
    payload_left_ = 0;
    for (const Message* message : event_->messages)
        if (message != nullptr) payload_left_ += message->received_bytes;
    return true;
}

bool WorkStage::ensure_buffer() noexcept {
    if (buffer_ != nullptr) return true;
    if (config_.to_file) {
        std::array<OutputBuffer*, 1> taken;
        if (config_.free_buffers->pop(taken) == 0) {
            blocked(Blocked::output);
            return false;
        }
        buffer_ = taken[0];
    } else {
        buffer_ = &null_buffer_;
    }
    buffer_->events_ended = 0;
    buffer_since_ns_ = now_;
    writer_.reset(buffer_->memory);
    return true;
}

void WorkStage::flush() noexcept {
    buffer_->used_bytes = writer_.blocks().size();
    buffer_->event_open = writer_.event_open();
    add(stored_bytes_, buffer_->used_bytes);
    // As many places in the ring as there are buffers: this cannot fail.
    if (config_.to_file) config_.full_buffers->push(buffer_);
    buffer_ = nullptr;
}

bool WorkStage::step() noexcept {
    if (!ensure_buffer()) return false;
    if (phase_ == Phase::sources) return step_sources();
    if (phase_ == Phase::payload) return step_payload();
    store::EventRecord record;
    record.id = event_->number;
    record.epoch = event_->epoch;
    record.complete = event_->cause == EventCause::complete;
    record.cause = cause_of(event_->cause);
    record.payload_bytes = payload_left_;
    record.first_ns = event_->first_ns;
    record.last_ns = event_->last_ns;
    for (const Message* message : event_->messages) {
        // Of a complete event only the sources that made it complete are listed; of an incomplete one all are.
        if (message != nullptr || !record.complete) ++record.sources;
        if (message != nullptr) record.packets += message->packets;
    }
    if (!writer_.put_event(record)) {
        flush();
        return true;
    }
    phase_ = Phase::sources;
    source_ = 0;
    event_missing_ = event_gaps_ = 0;
    return true;
}

bool WorkStage::step_sources() noexcept {
    for (; source_ < event_->messages.size(); ++source_) {
        const Message* message = event_->messages[source_];
        if (message == nullptr && event_->cause == EventCause::complete) continue;
        const SourceGeometry& geometry = config_.sources[source_];
        store::SourceRecord record;
        record.source = source_;
        std::size_t gaps = 0;
        std::uint64_t missing_bytes = 0;
        if (message == nullptr) {
            record.declared_bytes = geometry.message_bytes;
            record.state = geometry.message_bytes > 0 ? store::SourceState::absent : store::SourceState::absent_unknown;
            missing_bytes = geometry.message_bytes;
            if (geometry.message_bytes > 0) missing_[gaps++] = {0, geometry.message_bytes};
        } else {
            record.received_bytes = message->received_bytes;
            record.packets = message->packets;
            record.first_ns = message->first_ns;
            record.last_ns = message->last_ns;
            record.meta = {message->meta.data(), message->meta_bytes};
            record.declared_bytes = message->total_known ? message->total : 0;
            if (!message->complete) {
                refs_.assign(*message);
                const std::size_t ranges = std::min(refs_.ranges(received_), received_.size());
                const std::uint32_t total =
                    message->total_known ? message->total : (ranges > 0 ? received_[ranges - 1].end : 0);
                gaps = store::missing_ranges({received_.data(), ranges}, total, missing_);
                record.state = message->total_known ? store::SourceState::partial : store::SourceState::size_unknown;
                missing_bytes = total - std::min<std::uint64_t>(total, message->received_bytes);
            }
        }
        if (!writer_.put_source(record, {missing_.data(), gaps})) {
            flush();
            return true;
        }
        if (missing_bytes > 0) account_missing(source_, missing_bytes);
    }
    if (event_gaps_ > 1 && event_gaps_ == event_->messages.size()) add(missing_together_, event_missing_);
    phase_ = Phase::payload;
    source_ = 0;
    load_source();
    scratch_bytes_ = 0;
    return true;
}

void WorkStage::account_missing(std::uint32_t source, std::uint64_t missing_bytes) noexcept {
    if (config_.sources[source].sequenced) return;
    std::uint64_t packet_bytes = config_.sources[source].packet_payload_bytes;
    if (packet_bytes == 0 && event_->messages[source] != nullptr) packet_bytes = refs_.largest_bytes();
    if (packet_bytes == 0) return;
    const std::uint64_t packets = (missing_bytes + packet_bytes - 1) / packet_bytes;
    add(missing_packets_[source], packets);
    event_missing_ += packets;
    ++event_gaps_;
    if (event_->cause == EventCause::end_of_run) add(missing_at_end_, packets);
}

void WorkStage::load_source() noexcept {
    while (source_ < event_->messages.size() && event_->messages[source_] == nullptr) ++source_;
    cursor_ = {};
    if (source_ < event_->messages.size()) refs_.assign(*event_->messages[source_]);
}

/// The next payload bytes of the event, over the borders of its sources.
std::size_t WorkStage::fill(std::span<std::byte> out) noexcept {
    std::size_t done = 0;
    while (source_ < event_->messages.size() && done < out.size()) {
        const std::size_t bytes = reduce::gather(refs_, cursor_, out.subspan(done), false);
        done += bytes;
        if (cursor_.ref == refs_.refs().size()) {
            ++source_;
            load_source();
        }
    }
    return done;
}

void WorkStage::store_raw() noexcept {
    const std::span<std::byte> room = writer_.open_payload();
    if (room.empty() && payload_left_ > 0) return flush();
    const std::size_t bytes = fill(room);
    payload_left_ -= bytes;
    add(raw_bytes_, bytes);
    const auto stored = static_cast<std::uint32_t>(bytes);
    writer_.close_payload(stored, stored, store::Encoding::raw, payload_left_ == 0);
}

void WorkStage::store_zstd() noexcept {
    if (scratch_bytes_ == 0) {
        scratch_bytes_ = fill(zstd_->scratch());
        payload_left_ -= scratch_bytes_;
        add(raw_bytes_, scratch_bytes_);
    }
    if (writer_.payload_room() < reduce::ZstdReducer::bound(scratch_bytes_)) return flush();
    const std::span<std::byte> room = writer_.open_payload();
    const std::size_t stored = zstd_->compress(scratch_bytes_, room);
    const auto raw = static_cast<std::uint32_t>(scratch_bytes_);
    if (stored > 0) {
        writer_.close_payload(static_cast<std::uint32_t>(stored), raw, store::Encoding::zstd, payload_left_ == 0);
    } else {
        std::memcpy(room.data(), zstd_->scratch().data(), scratch_bytes_);
        writer_.close_payload(raw, raw, store::Encoding::raw, payload_left_ == 0);
    }
    scratch_bytes_ = 0;
}

bool WorkStage::step_payload() noexcept {
    if (!config_.reads_payload) payload_left_ = 0;
    const bool had_nothing = payload_left_ == 0 && scratch_bytes_ == 0;
    if (had_nothing) {
        if (writer_.open_payload().empty() && writer_.payload_room() == 0) {
            flush();
            return true;
        }
        writer_.close_payload(0, 0, store::Encoding::raw, true);
    } else if (zstd_ != nullptr) {
        store_zstd();
    } else {
        store_raw();
    }
    if (buffer_ != nullptr && payload_left_ == 0 && scratch_bytes_ == 0) end_event();
    return true;
}

void WorkStage::end_event() noexcept {
    ++buffer_->events_ended;
    if (!config_.to_file) events_.add(core::EventCounter::written);
    for (Message* message : event_->messages)
        if (message != nullptr) config_.recycle[message->owner]->push(message);
    config_.build[from_].released->push(event_);
    event_ = nullptr;
}

std::size_t WorkStage::poll(TimeNs now) noexcept {
    now_ = now;
    // A step formats or copies at most one buffer; small events take several steps per poll.
    constexpr int steps_max = 48;
    constexpr std::uint64_t bytes_max = std::uint64_t{256} << 10U;
    const std::uint64_t bytes_before = raw_bytes_.load(std::memory_order_relaxed);
    std::size_t work = 0;
    const bool input_done = signals_.builders_finished();
    for (int i = 0; i < steps_max; ++i) {
        if (event_ == nullptr && !take_event()) {
            if (buffer_ != nullptr && !writer_.empty() &&
                (input_done || now - buffer_since_ns_ >= config_.flush_after_ns))
                flush();
            if (input_done) finished_.store(true, std::memory_order_release);
            break;
        }
        if (!step()) break;  // the writer has all buffers
        ++work;
        if (raw_bytes_.load(std::memory_order_relaxed) - bytes_before >= bytes_max) break;
    }
    return work;
}

}  // namespace weir::pipeline
