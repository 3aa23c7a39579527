#include "stages/build_stage.hpp"

#include <algorithm>

namespace weir::stages {

using assemble::Command;
using assemble::Descriptor;
using assemble::Event;

BuildStage::BuildStage(const Config& config, RunSignals& signals)
    : config_(config),
      signals_(signals),
      builder_(config.builder, packets_, messages_, events_),
      absences_(config.builder.sources),
      inputs_(config.rx.size()) {}

void BuildStage::refill(std::size_t rx) noexcept {
    Input& input = inputs_[rx];
    if (input.first < input.count || input.finished) return;
    // Both are read before the ring: what they promise is then already in it.
    const bool finished = config_.rx[rx].signals->finished.load(std::memory_order_acquire);
    const TimeNs watermark = config_.rx[rx].signals->watermark.load(std::memory_order_acquire);
    input.first = 0;
    input.count = config_.rx[rx].descriptors->pop(input.items);
    if (input.count < burst) {
        // The ring was emptied, so the promise covers everything up to the watermark.
        input.watermark = watermark;
        if (input.count == 0) input.finished = finished;
    }
}

std::size_t BuildStage::take_descriptors() noexcept {
    for (std::size_t rx = 0; rx < inputs_.size(); ++rx) refill(rx);
    std::size_t taken = 0;
    for (; taken < 4 * std::size_t{burst}; ++taken) {
        // The earliest head goes next, unless an rx lcore of which nothing is here may still send something earlier.
        Input* next = nullptr;
        TimeNs bound = never;
        for (Input& input : inputs_) {
            if (input.first == input.count) {
                if (!input.finished) bound = std::min(bound, input.watermark);
            } else if (next == nullptr || input.items[input.first].time_ns < next->items[next->first].time_ns) {
                next = &input;
            }
        }
        if (next == nullptr) {
            if (bound != never) builder_.advance(bound);
            break;
        }
        const Descriptor& descriptor = next->items[next->first];
        if (inputs_.size() > 1 && descriptor.time_ns > bound) {
            builder_.advance(bound);
            break;
        }
        if (!builder_.offer(descriptor)) {
            blocked(Blocked::queue);
            break;
        }
        if (++next->first == next->count) refill(static_cast<std::size_t>(next - inputs_.data()));
    }
    return taken;
}

std::size_t BuildStage::send_commands() noexcept {
    std::size_t sent = 0;
    for (std::uint32_t rx = 0; rx < config_.rx.size(); ++rx) {
        const std::uint32_t count = config_.rx[rx].commands->push(builder_.commands(rx));
        if (count > 0) builder_.consume_commands(rx, count);
        sent += count;
    }
    return sent;
}

std::size_t BuildStage::send_events() noexcept {
    std::size_t sent = 0;
    std::uint64_t left = 0;
    while (Event* event = builder_.pop_closed()) {
        ++sent;
        if (event->cause != assemble::EventCause::complete) [[unlikely]] {
            note_absent(*event);
            if (config_.triggers != nullptr) ask_for_record(*event);
        }
        left = event->sequence + 1;
        if (event->cause != assemble::EventCause::complete && !config_.keep_incomplete) {
            builder_.discard(*event, assemble::EventCounter::dropped_incomplete);
            continue;
        }
        // The ring holds every event that exists, so this cannot fail.
        config_.work[(event->sequence + config_.builder.shard) % config_.work.size()].events->push(event);
    }
    if (sent > 0) own().left.store(left, std::memory_order_release);
    return sent;
}

void BuildStage::note_absent(const Event& event) noexcept {
    for (std::uint32_t source = 0; source < event.messages.size(); ++source)
        if (event.messages[source] == nullptr) absences_.add(source, event.number);
}

/// What the flight recorder wants to know of an incomplete event.
void BuildStage::ask_for_record(const Event& event) noexcept {
    RecordTrigger trigger;
    trigger.reason = RecordTrigger::Reason::incomplete;
    trigger.cause = event.cause;
    trigger.epoch = event.epoch;
    trigger.number = event.number;
    trigger.first_ns = event.first_ns;
    trigger.last_ns = event.deadline_ns;
    for (std::uint32_t source = 0; source < event.messages.size(); ++source) {
        const assemble::Message* const message = event.messages[source];
        if (message != nullptr && message->complete) continue;
        if (trigger.gap_count < RecordTrigger::gaps_max) {
            RecordTrigger::Gap& gap = trigger.gaps[trigger.gap_count];
            const std::uint32_t payload = config_.geometry[source].packet_payload_bytes;
            gap.source = source;
            gap.all = message == nullptr;
            if (message != nullptr && message->total_known && payload > 0)
                gap.packets = (message->total - message->received_bytes + payload - 1) / payload;
        }
        ++trigger.gap_count;
    }
    config_.triggers->push(trigger);
}

/// What the policy for overload goes by: how full the rx lcores are, and whether another builder has too much.
void BuildStage::watch_levels() noexcept {
    assemble::Fill fill = assemble::Fill::low;
    for (const RxEdge& edge : config_.rx) fill = std::max(fill, edge.signals->fill.load(std::memory_order_relaxed));
    const std::uint32_t all = signals_.overloaded.load(std::memory_order_relaxed);
    builder_.watch(fill, all > (overloaded_ ? 1U : 0U));
    const assemble::Prescaler& prescaler = builder_.prescaler();
    if (prescaler.active() != overloaded_) {
        overloaded_ = prescaler.active();
        signals_.overloaded.fetch_add(overloaded_ ? 1U : ~0U, std::memory_order_relaxed);
    }
    overload_times_.store(prescaler.times(), std::memory_order_relaxed);
    prescale_kept_.store(builder_.prescale_kept(), std::memory_order_relaxed);
}

void BuildStage::make_room() noexcept {
    // What is queued downstream gives its buffers back by itself; only where nothing is queued must an open event go.
    if (builder_.queued_count() > 0) return;
    const bool short_of_buffers = std::ranges::any_of(
        config_.rx, [](const RxEdge& edge) { return edge.signals->need_room.load(std::memory_order_relaxed); });
    if (short_of_buffers && builder_.has_oldest() && builder_.queued_everywhere() == 0) builder_.make_room();
}

void BuildStage::finish_if_done() noexcept {
    if (!input_done_) {
        for (const Input& input : inputs_)
            if (!input.finished) return;
        input_done_ = true;
        builder_.end_input();
        own().newest_whole = builder_.newest_whole();
        own().input_done.store(true, std::memory_order_release);
    }
    if (!closed_all_) {
        // What the others have decides why an event here is not whole.
        if (!signals_.input_done()) return;
        closed_all_ = true;
        // What was due when the input ended timed out, however late that is noticed here.
        TimeNs last = std::numeric_limits<TimeNs>::min();
        for (const RxEdge& edge : config_.rx)
            last = std::max(last, edge.signals->watermark.load(std::memory_order_acquire));
        builder_.advance(last);
        std::array<std::span<const TimeNs>, builders_max> newest_whole;
        for (std::uint32_t i = 0; i < signals_.builders; ++i) newest_whole[i] = signals_.build[i].newest_whole;
        builder_.finish(std::span(newest_whole).first(signals_.builders));
        builder_.meet_shards();
    } else if (builder_.in_use() == builder_.queued_count()) {
        for (std::uint32_t rx = 0; rx < config_.rx.size(); ++rx)
            if (!builder_.commands(rx).empty()) return;
        if (config_.builder.numbers != nullptr) config_.builder.numbers->finish();
        own().finished.store(true, std::memory_order_release);
    }
}

std::size_t BuildStage::poll(TimeNs) noexcept {
    std::size_t work = 0;
    for (const WorkEdge& edge : config_.work) {
        std::array<Event*, burst> released;
        const std::uint32_t count = edge.released->pop(released);
        for (std::uint32_t i = 0; i < count; ++i) builder_.release(*released[i]);
        work += count;
    }
    make_room();
    if (!assemble::evicts(config_.builder.overload)) watch_levels();
    work += take_descriptors();
    work += send_events();
    // Closed events that still wait for their messages have not been told yet.
    if (config_.triggers != nullptr && builder_.in_use() == builder_.open_count() + builder_.queued_count())
        config_.triggers->complete_until(builder_.now());
    work += send_commands();
    builder_.meet_shards();
    if (config_.builder.numbers != nullptr) config_.builder.numbers->publish();
    finish_if_done();
    own().empty.store(builder_.in_use() == 0, std::memory_order_relaxed);
    placed_bytes_.store(builder_.placed_bytes(), std::memory_order_relaxed);
    open_events_.store(builder_.open_count(), std::memory_order_relaxed);
    if (builder_.open_count() > open_highest_.load(std::memory_order_relaxed))
        open_highest_.store(builder_.open_count(), std::memory_order_relaxed);
    if (builder_.queued_count() > queued_highest_.load(std::memory_order_relaxed))
        queued_highest_.store(builder_.queued_count(), std::memory_order_relaxed);
    queued_events_.store(builder_.queued_count(), std::memory_order_relaxed);
    return work;
}

}  // namespace weir::stages
