#include "stages/work_stage.hpp"

#include <algorithm>
#include <array>

#include "core/one_writer.hpp"
#include "stages/pedestal_worker.hpp"

namespace weir::stages {

using assemble::Event;
using assemble::EventCause;
using assemble::Message;

WorkStage::WorkStage(const Config& config, std::unique_ptr<EventEncoder> encoder, RunSignals& signals)
    : config_(config),
      signals_(signals),
      encoder_(std::move(encoder)),
      refs_(config.refs_max),
      received_(store::BlockWriter::missing_count_max - 1),
      missing_(store::BlockWriter::missing_count_max),
      missing_packets_(config.sources.size()),
      always_missing_(config.sources.size()),
      cut_off_(config.sources.size()),
      source_spans_(config.sources.size()) {
    if (!config.to_file) {
        null_memory_ = std::make_unique<std::byte[]>(config.null_buffer_bytes + 64);
        auto* first = null_memory_.get();
        first += (64 - reinterpret_cast<std::uintptr_t>(first) % 64) % 64;
        null_buffer_.memory = {first, config.null_buffer_bytes};
    }
}

std::vector<reduce::ReducerCounters> WorkStage::reducers() const {
    std::vector<reduce::ReducerCounters> all;
    if (config_.pedestals != nullptr)
        all.push_back(reduce::counters_of("pedestal", reduce::pedestal_counters, config_.pedestals->tally()));
    for (const reduce::ReducerCounters& counters : encoder_->counters()) all.push_back(counters);
    return all;
}

/// From the shard whose turn it is.
bool WorkStage::pop_event() noexcept {
    const Config::BuildEdge& edge = config_.build[from_];
    const auto shard = static_cast<std::uint32_t>(from_);
    const std::uint64_t left = config_.pedestals != nullptr ? config_.pedestals->left(shard) : 0;
    std::array<Event*, 1> taken;
    if (edge.events->pop(taken) == 0) {
        if (config_.pedestals != nullptr) config_.pedestals->idle(shard, left);
        return false;
    }
    event_ = EventHandle(*taken[0], *edge.released, config_.recycle);
    return true;
}

bool WorkStage::take_event() noexcept {
    // The shards take turns.
    std::size_t asked = 0;
    do {
        if (asked++ == config_.build.size()) return false;
        from_ = from_ + 1 < config_.build.size() ? from_ + 1 : 0;
    } while (!pop_event());
    if (config_.pedestals == nullptr)
        begin_event();
    else
        phase_ = Phase::pedestals;
    return true;
}

void WorkStage::begin_event() noexcept {
    phase_ = Phase::event;
    source_ = 0;
    if (encoder_->begin(*event_)) return;
    events_.add(assemble::EventCounter::dropped_reduce_error);
    release_event();
}

bool WorkStage::step_pedestals() noexcept {
    switch (config_.pedestals->step(*event_, static_cast<std::uint32_t>(from_))) {
        case PedestalWorker::Step::wait:
            return false;
        case PedestalWorker::Step::more:
            break;
        case PedestalWorker::Step::ready:
            begin_event();
            break;
        case PedestalWorker::Step::veto:
            events_.add(assemble::EventCounter::vetoed);
            release_event();
            break;
    }
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
        if (config_.fence != nullptr) config_.fence->begin_buffer(config_.index);
    } else {
        buffer_ = &null_buffer_;
    }
    buffer_->events_ended = 0;
    buffer_since_ns_ = now_;
    writer_.reset(buffer_->memory);
    return true;
}

void WorkStage::flush() noexcept {
    // Buffers are multiples of it long, so there is room.
    if (config_.buffer_alignment > store::block_align) writer_.pad(config_.buffer_alignment);
    buffer_->used_bytes = writer_.blocks().size();
    buffer_->event_open = spans_buffers_ = writer_.event_open();
    core::add(stored_bytes_, buffer_->used_bytes);
    // As many places in the ring as there are buffers: this cannot fail.
    if (config_.to_file) config_.full_buffers->push(buffer_);
    buffer_ = nullptr;
}

bool WorkStage::step() noexcept {
    if (phase_ == Phase::pedestals) return step_pedestals();
    if (!ensure_buffer()) return false;
    if (phase_ == Phase::sources) return step_sources();
    if (phase_ == Phase::payload) return step_payload();
    return step_event();
}

bool WorkStage::step_event() noexcept {
    // An event that may be taken back at its end has to lie in one buffer until then.
    if (const std::size_t whole = encoder_->whole_event_bytes(); whole > 0) {
        if (buffer_->memory.size() - writer_.blocks().size() < whole && !writer_.empty()) {
            flush();
            return true;
        }
        mark_ = writer_.mark();
    }
    store::EventRecord record;
    record.id = event_->number;
    record.epoch = event_->epoch;
    record.complete = event_->cause == EventCause::complete;
    record.cause = event_->cause;
    record.first_ns = event_->first_ns;
    record.last_ns = event_->last_ns;
    record.content = encoder_->content();
    for (std::size_t source = 0; source < event_->messages.size(); ++source) {
        if (!lists_source(*event_, source)) continue;
        ++record.sources;
        record.reduced_bytes += encoder_->reduced_bytes(static_cast<std::uint32_t>(source));
        const Message* message = event_->messages[source];
        if (message == nullptr) continue;
        record.packets += message->packets;
        record.payload_bytes += message->received_bytes;
    }
    if (!writer_.put_event(record)) {
        flush();
        return true;
    }
    spans_buffers_ = false;
    phase_ = Phase::sources;
    source_ = 0;
    event_missing_ = event_gaps_ = 0;
    return true;
}

bool WorkStage::step_sources() noexcept {
    for (; source_ < event_->messages.size(); ++source_) {
        const Message* message = event_->messages[source_];
        if (!lists_source(*event_, source_)) continue;
        const SourceGeometry& geometry = config_.sources[source_];
        store::SourceRecord record;
        record.source = source_;
        record.reduced_bytes = encoder_->reduced_bytes(source_);
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
        account_source(source_, {{missing_.data(), gaps}, missing_bytes});
    }
    if (is_behind_cut()) core::add(cut_events_, 1);
    if (event_gaps_ > 1 && event_gaps_ == event_->messages.size()) core::add(missing_together_, event_missing_);
    event_span_.add(event_->first_ns, event_->last_ns, event_->cause == EventCause::complete);
    phase_ = Phase::payload;
    return true;
}

/// What the event in hand lacks may be where a capture could not be read.
bool WorkStage::is_behind_cut() const noexcept {
    if (event_->cause == EventCause::complete || config_.cut_ns == nullptr) return false;
    const TimeNs cut_ns = config_.cut_ns->load(std::memory_order_acquire);
    return cut_ns != never && event_->first_ns >= cut_ns - config_.timeout_ns;
}

/// What the event in hand has and lacks of a source: how much, and for who asks at the end why.
void WorkStage::account_source(std::uint32_t source, const Lack& lack) noexcept {
    const Message* message = event_->messages[source];
    const std::uint64_t packets = message == nullptr || !message->complete ? count_missing(source, lack) : 0;
    const bool at_end = event_->cause == EventCause::end_of_run || is_behind_cut();
    if (message == nullptr) {
        source_spans_[source].add_absent(event_->first_ns, packets);
        if (at_end) cut_off_[source].add_absent(event_->first_ns, packets);
        return;
    }
    if (message->complete && config_.sources[source].message_bytes == 0) missing_packets_[source].add_whole(*message);
    always_missing_[source].add(lack.gaps);
    source_spans_[source].add_present(event_->first_ns, event_->number, message->last_ns,
                                      packets > 0 ? count_gaps(source, lack.gaps, true) : 0);
    // A detector sends on after the end of a run, whatever came of an event. A capture has what came until its end: of
    // a message only what was to come last can lie beyond it.
    const bool live = config_.clock != nullptr;
    std::uint64_t cut_off = 0;
    if (at_end && packets > 0) cut_off = live ? packets : count_gaps(source, lack.gaps, false);
    cut_off_[source].add_present(event_->first_ns, cut_off);
}

/// Returns how many packets that are, as far as can be told by now.
std::uint64_t WorkStage::count_missing(std::uint32_t source, const Lack& lack) noexcept {
    const SourceGeometry& geometry = config_.sources[source];
    if (geometry.sequenced) return 0;
    MissingPackets& missing = missing_packets_[source];
    const bool absent = event_->messages[source] == nullptr;
    std::uint64_t packets = 0;
    if (absent && geometry.message_packets > 0) {
        packets = geometry.message_packets;
        missing.add_exact(packets);
    } else if (absent && lack.bytes == 0) {
        packets = missing.add_absent();
    } else if (geometry.packet_payload_bytes > 0) {
        packets = (lack.bytes + geometry.packet_payload_bytes - 1) / geometry.packet_payload_bytes;
        missing.add_exact(packets);
    } else if (lack.bytes > 0) {
        packets = missing.add_gaps(lack.gaps, absent ? 0 : refs_.largest_bytes());
    }
    if (packets == 0) return 0;
    event_missing_ += packets;
    ++event_gaps_;
    return packets;
}

/// Packets of the gaps that lie where a message, or a part of it that is sent on its own, begins or ends.
std::uint64_t WorkStage::count_gaps(std::uint32_t source, std::span<const assemble::ByteRange> gaps,
                                    bool at_begin) const noexcept {
    const Message& message = *event_->messages[source];
    const SourceGeometry& geometry = config_.sources[source];
    const std::uint32_t part =
        geometry.lane_bytes > 0 ? geometry.lane_bytes : std::max<std::uint32_t>(message.total, 1);
    std::uint64_t packets = 0;
    for (const assemble::ByteRange& gap : gaps) {
        if ((at_begin ? gap.begin : gap.end) % part != 0) continue;
        const std::uint64_t bytes = gap.end - gap.begin;
        packets += geometry.packet_payload_bytes > 0
                       ? (bytes + geometry.packet_payload_bytes - 1) / geometry.packet_payload_bytes
                       : missing_packets_[source].packets_in(bytes);
    }
    return packets;
}

bool WorkStage::step_payload() noexcept {
    std::uint64_t read_bytes = 0;
    const EventEncoder::Step step = encoder_->step(writer_, read_bytes);
    core::add(raw_bytes_, read_bytes);
    switch (step) {
        case EventEncoder::Step::more:
            break;
        case EventEncoder::Step::full:
            flush();
            break;
        case EventEncoder::Step::done:
            ++buffer_->events_ended;
            if (!config_.to_file) events_.add(assemble::EventCounter::written);
            note_latency();
            release_event();
            break;
        case EventEncoder::Step::vetoed:
            writer_.rewind(mark_);
            events_.add(assemble::EventCounter::vetoed);
            note_latency();
            release_event();
            break;
    }
    return true;
}

/// A poll's `now` is the same for all that a turn of the lcore does, so the clock is read: once for each event.
void WorkStage::note_latency() noexcept {
    if (config_.clock == nullptr || event_->cause != EventCause::complete) return;
    latency_.add(static_cast<std::uint64_t>(std::max<TimeNs>(0, config_.clock->now() - event_->last_ns)));
}

void WorkStage::release_event() noexcept {
    if (config_.pedestals != nullptr) config_.pedestals->end();
    event_.give_back();
    // So that there is a place between two events at which a sink can go to another file.
    if (config_.buffer_alignment > store::block_align && spans_buffers_) flush();
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
        if (!event_ && !take_event()) {
            if (buffer_ != nullptr && !writer_.empty() &&
                (input_done || now - buffer_since_ns_ >= config_.flush_after_ns))
                flush();
            if (input_done) finished_.store(true, std::memory_order_release);
            break;
        }
        if (event_ && !step()) break;  // the writer has all buffers
        ++work;
        if (event_ && phase_ == Phase::pedestals) break;  // a module of a dark frame is a megabyte
        if (raw_bytes_.load(std::memory_order_relaxed) - bytes_before >= bytes_max) break;
    }
    return work;
}

}  // namespace weir::stages
