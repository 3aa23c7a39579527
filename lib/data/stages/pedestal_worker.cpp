#include "stages/pedestal_worker.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <cstring>

namespace weir::stages {

using reduce::PedestalCounter;

PedestalWorker::PedestalWorker(const Config& config)
    : config_(config), follower_(config.options.interval), raw_(config.refs_max) {
    view_.gain = config.options.gain;
}

bool PedestalWorker::is_dark(const assemble::Event& event) const noexcept {
    const config::PedestalOptions& options = config_.options;
    if (options.dark == config::PedestalOptions::Dark::all) return true;
    if (options.dark == config::PedestalOptions::Dark::every) return event.number % options.every == 0;
    bool any = false;
    for (const assemble::Message* message : event.messages) {
        if (message == nullptr) continue;
        const auto value = reduce::field_of({message->meta.data(), message->meta_bytes}, options.flag);
        if (!value || (options.flag_value ? *value != *options.flag_value : *value == 0)) return false;
        any = true;
    }
    return any;
}

void PedestalWorker::publish(std::uint64_t done) noexcept {
    config_.shared->progress[config_.worker].done[shard_].store(done, std::memory_order_release);
}

void PedestalWorker::idle(std::uint32_t shard, std::uint64_t left) noexcept {
    std::atomic<std::uint64_t>& done = config_.shared->progress[config_.worker].done[shard];
    if (done.load(std::memory_order_relaxed) < left) done.store(left, std::memory_order_release);
}

void PedestalWorker::begin(const assemble::Event& event, std::uint32_t shard) noexcept {
    event_ = &event;
    shard_ = shard;
    publish(event.sequence);
    place_ = reduce::interval_of(event.epoch, event.number, config_.options.interval);
    const auto step = follower_.follow(place_, event.number);
    if (step != reduce::IntervalFollower::Step::none) {
        note_.kind =
            step == reduce::IntervalFollower::Step::back ? PedestalNote::Kind::back : PedestalNote::Kind::closes;
        note_.shard = shard;
        note_.sequence = event.sequence;
        note_.place = follower_.closed();
        has_note_ = true;
    }
    needed_ = std::min(reduce::needed_by(place_), follower_.closed());
    dark_ = is_dark(event);
    if (dark_) tally_.add(PedestalCounter::dark_frames);
    if (dark_ && !follower_.collects(place_)) {
        tally_.add(PedestalCounter::dark_late);
        dark_ = dark_ && !config_.options.keep;
        frame_ = nullptr;
        source_ = static_cast<std::uint32_t>(event.messages.size());
    } else {
        source_ = 0;
    }
    phase_ = Phase::waits;
}

/// A copy to write to, or none. False: there will be one.
bool PedestalWorker::take_frame() noexcept {
    std::array<DarkFrame*, 1> taken{};
    if (config_.frames->pop(taken) == 0) {
        if (config_.wait) return false;
        tally_.add(PedestalCounter::dark_skipped);
        source_ = static_cast<std::uint32_t>(event_->messages.size());
        return true;
    }
    frame_ = taken[0];
    frame_->number = event_->number;
    frame_->epoch = event_->epoch;
    frame_->shard = shard_;
    frame_->sequence = event_->sequence;
    frame_->place = place_;
    for (DarkFrame::Part& part : frame_->parts) part.came = false;
    return true;
}

bool PedestalWorker::prepare() noexcept {
    if (has_note_) {
        // A place is left for each frame. Where there is no room now, live, the next event says it.
        const bool room = config_.notes->count() + config_.frames->capacity() < config_.notes->capacity();
        has_note_ = !room || !config_.notes->push(note_);
        if (has_note_ && config_.wait) return false;
    }
    const bool waits = config_.wait && config_.shared->closed.load(std::memory_order_acquire) < needed_;
    config_.shared->progress[config_.worker].waits.store(waits, std::memory_order_relaxed);
    if (waits) return false;
    return !dark_ || frame_ != nullptr || source_ == event_->messages.size() || take_frame();
}

void PedestalWorker::copy(std::uint32_t source, const assemble::Message& message) noexcept {
    const reduce::PixelSource& from = config_.sources[source];
    if (message.total_known && message.total != from.pixels() * sizeof(std::uint16_t)) return;
    const auto cell = reduce::cell_of(message, config_.storage_cell, config_.storage_cells);
    if (!cell) return;
    DarkFrame::Part& part = frame_->parts[source];
    part.came = true;
    part.first = (std::size_t{from.module} * config_.storage_cells + *cell) * reduce::jungfrau_pixels +
                 reduce::first_pixel_of(from, message);
    part.pixels = from.pixels();
    raw_.begin(message);
    for (std::size_t done = 0; done < part.pixels;) {
        const std::size_t chunk = std::min(part.pixels - done, reduce::RawPixels::chunk_pixels);
        std::memcpy(frame_->pixels.data() + part.at + done, raw_.next(chunk).data(), chunk * sizeof(std::uint16_t));
        done += chunk;
    }
}

PedestalWorker::Step PedestalWorker::acquire() noexcept {
    phase_ = Phase::converts;
    if (dark_ && !config_.options.keep) return Step::veto;
    const bool behind = config_.shared->closed.load(std::memory_order_acquire) < needed_;
    const reduce::Generations::View view = config_.shared->generations.acquire(config_.worker, needed_);
    if (behind || view.late) tally_.add(PedestalCounter::late_events);
    view_.mean = view.mean;
    view_.rms = view.rms;
    view_.generation = view.generation;
    return Step::ready;
}

PedestalWorker::Step PedestalWorker::step(const assemble::Event& event, std::uint32_t shard) noexcept {
    const std::uint64_t begin = __rdtsc();
    const Step step = advance(event, shard);
    if (step != Step::wait) tally_.add(PedestalCounter::cycles, __rdtsc() - begin);
    return step;
}

PedestalWorker::Step PedestalWorker::advance(const assemble::Event& event, std::uint32_t shard) noexcept {
    if (phase_ == Phase::none) begin(event, shard);
    if (phase_ == Phase::waits) {
        if (!prepare()) return Step::wait;
        phase_ = Phase::copies;
    }
    if (frame_ != nullptr && source_ < event.messages.size()) {
        // A module at a time: a poll stays short.
        if (const assemble::Message* message = event.messages[source_]; message != nullptr) copy(source_, *message);
        ++source_;
        return Step::more;
    }
    if (frame_ != nullptr) {
        config_.notes->push({PedestalNote::Kind::frame, shard, event.sequence, place_, frame_});  // has a place left
        frame_ = nullptr;
    }
    return acquire();
}

void PedestalWorker::end() noexcept {
    config_.shared->generations.release(config_.worker);
    publish(event_->sequence + 1);
    tally_.add(PedestalCounter::events);
    phase_ = Phase::none;
    event_ = nullptr;
}

}  // namespace weir::stages
