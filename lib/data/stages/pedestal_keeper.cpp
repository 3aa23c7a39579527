#include "stages/pedestal_keeper.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/reduce_memory.hpp"
#include "core/clock_ns.hpp"

namespace weir::stages {

using reduce::IntervalPlace;
using reduce::PedestalCounter;

namespace {

constexpr std::size_t generations_reported = 1000;  ///< the newest
constexpr std::uint32_t notes_room = 64;            ///< besides frames
constexpr std::array<std::uint16_t, 3> gain_bits{0, 0x4000, 0xc000};
/// Frames that are added up at once: sums are read from memory once for all of them, which is most of the work.
constexpr std::size_t waiting_max = 16;

reduce::PedestalTracker::Config tracker_config(const config::PedestalOptions& options) {
    return {options.frames, options.outlier_after, static_cast<float>(options.rms_max)};
}

}  // namespace

PedestalKeeper::PedestalKeeper(const Config& config)
    : setup_(config.setup),
      wait_(config.wait),
      signals_(config.signals),
      pixels_(setup_->pixels()),
      shared_(pixels_, config.workers),
      outlier_(setup_->options.outlier > 0 ? static_cast<float>(setup_->options.outlier)
                                           : std::numeric_limits<float>::infinity()),
      tracker_(tracker_config(setup_->options), std::move(config.setup->start)),
      last_place_(config.workers, reduce::interval_none) {
    const config::PedestalOptions& options = setup_->options;
    for (std::size_t i = 0; i < intervals; ++i) intervals_.push_back(std::make_unique<Interval>(pixels_));
    const std::uint32_t frames = config::dark_frames_of_worker(options.queue, config.workers);
    for (std::uint32_t worker = 0; worker < config.workers; ++worker) {
        note_rings_.push_back(
            std::make_unique<port::Ring<PedestalNote>>(fmt::format("darknotes{}", worker), frames + notes_room));
        frame_rings_.push_back(std::make_unique<port::Ring<DarkFrame*>>(fmt::format("dark{}", worker), frames));
        for (std::uint32_t i = 0; i < frames; ++i) {
            auto frame = std::make_unique<DarkFrame>();
            std::size_t at = 0;
            for (const reduce::PixelSource& source : setup_->sources) {
                frame->parts.push_back({false, 0, at, source.pixels()});
                at += source.pixels();
            }
            frame->pixels.resize(at);
            frame_rings_.back()->push(frame.get());
            frames_.push_back(std::move(frame));
        }
        PedestalWorker::Config of_worker{
            options, setup_->sources, setup_->storage_cell,     setup_->storage_cells,     config.refs_max, worker,
            wait_,   &shared_,        note_rings_.back().get(), frame_rings_.back().get(), config.signals};
        workers_.push_back(std::make_unique<PedestalWorker>(of_worker));
    }
    shared_.generations.begin();
    const reduce::Generations::Planes planes = shared_.generations.planes();
    tracker_.publish(0, planes.mean, planes.rms, {});
    shared_.generations.publish(0, reduce::interval_none);
    generations_.push_back({});
    about_.gain = options.gain;
    about_.modules = setup_->modules;
    about_.storage_cells = setup_->storage_cells;
    about_.window = options.frames;
    about_.run = setup_->run;
}

PedestalKeeper::~PedestalKeeper() {
    join();
}

void PedestalKeeper::start(std::filesystem::path snapshots, std::function<bool(std::uint32_t)> worker_finished) {
    snapshots_ = std::move(snapshots);
    worker_finished_ = std::move(worker_finished);
    saved_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    threads_ = std::make_unique<core::SliceThreads>(setup_->options.threads);
    counts_.resize(threads_->count());
    waiting_.reserve(waiting_max);
    thread_ = std::thread([this] { run(); });
}

void PedestalKeeper::join() {
    if (thread_.joinable()) thread_.join();
}

void PedestalKeeper::run() noexcept {
    const core::TimeNs save_every_ns = setup_->options.snapshot_seconds * core::ns_per_s;
    for (;;) {
        // Asked before the rings are looked at: what a finished worker handed over is then in them.
        bool all_finished = true;
        for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) all_finished &= worker_finished_(worker);
        bool worked = drain();
        worked |= close_ready();
        if (save_every_ns > 0 && core::clock_ns(CLOCK_MONOTONIC) - saved_ns_ >= save_every_ns) save();
        if (worked) continue;
        if (all_finished) break;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    close(std::max(intervals_[0]->place, intervals_[1]->place));
    save();
    finished_.store(true, std::memory_order_release);
}

bool PedestalKeeper::drain() noexcept {
    bool worked = false;
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
        std::array<PedestalNote, 16> notes;
        while (const std::uint32_t count = note_rings_[worker]->pop(notes)) {
            for (std::uint32_t i = 0; i < count; ++i) handle(worker, notes[i]);
            worked = true;
        }
    }
    add_waiting();
    return worked;
}

void PedestalKeeper::handle(std::uint32_t worker, const PedestalNote& note) noexcept {
    switch (note.kind) {
        case PedestalNote::Kind::frame:
            take(worker, *note.frame);
            break;
        case PedestalNote::Kind::back:
            last_place_[worker] = note.place;
            fall_back();
            break;
        case PedestalNote::Kind::closes: {
            last_place_[worker] = note.place;
            if (note.place <= shared_.closed.load(std::memory_order_relaxed)) break;
            const auto at = std::ranges::lower_bound(closing_, note.place, {}, &Closing::place);
            if (at == closing_.end() || at->place != note.place)
                closing_.insert(at, {note.place, note.shard, note.sequence});
            else if (at->shard == note.shard && note.sequence < at->sequence)
                at->sequence = note.sequence;
            break;
        }
    }
}

/// Whether its interval is still collected.
bool PedestalKeeper::admit(const DarkFrame& frame) noexcept {
    const IntervalPlace closed = shared_.closed.load(std::memory_order_relaxed);
    // Live, a worker that lags must not hold the others up. (In a replay they wait for it.)
    if (frame.place > closed + 2 && closed != reduce::interval_none) close(frame.place - 2);
    const Interval& interval = *intervals_[static_cast<std::uint64_t>(frame.place) % 2];
    return frame.place > shared_.closed.load(std::memory_order_relaxed) &&
           (interval.frames == 0 || interval.place == frame.place);
}

void PedestalKeeper::take(std::uint32_t worker, DarkFrame& frame) noexcept {
    if (waiting_.size() == waiting_max || (!waiting_.empty() && waiting_.front().frame->place != frame.place))
        add_waiting();
    if (!admit(frame)) {
        tally_.add(PedestalCounter::dark_late);
        frame_rings_[worker]->push(&frame);
        return;
    }
    waiting_.push_back({&frame, worker});
    Interval& interval = *intervals_[static_cast<std::uint64_t>(frame.place) % 2];
    interval.place = frame.place;
    ++interval.frames;
    std::uint64_t& last = interval.last_sequence[frame.shard];
    last = std::max(last, frame.sequence);
    tally_.add(PedestalCounter::dark_taken);
    if (about_.dark_frames++ == 0) {
        about_.first_epoch = frame.epoch;
        about_.first_event = frame.number;
    }
    about_.last_epoch = frame.epoch;
    about_.last_event = frame.number;
}

/// Adds the frames that wait to the sums of their interval, and gives them back to their workers.
void PedestalKeeper::add_waiting() noexcept {
    if (waiting_.empty()) return;
    const IntervalPlace place = waiting_.front().frame->place;
    Interval& interval = *intervals_[static_cast<std::uint64_t>(place) % 2];
    // By what the events of its own interval are converted with.
    const reduce::Generations::View judge = shared_.generations.find(reduce::needed_by(place));
    threads_->run([&](std::uint32_t slice) { counts_[slice] = add_slice(slice, interval, judge); });
    reduce::PedestalCounts counts;
    for (const reduce::PedestalCounts& of_slice : counts_) counts += of_slice;
    interval.counts += counts;
    tally_.add(PedestalCounter::pixels_taken, counts.taken);
    tally_.add(PedestalCounter::pixels_outlier, counts.outliers);
    tally_.add(PedestalCounter::pixels_other_gain, counts.other_gain);
    tally_.add(PedestalCounter::pixels_missing, counts.missing);
    for (const Waiting& one : waiting_) frame_rings_[one.worker]->push(one.frame);
    waiting_.clear();
}

/// The same pixels of every module and storage cell for a slice, so that no two threads write to one sum whatever the
/// frames say of where they belong.
reduce::PedestalCounts PedestalKeeper::add_slice(std::uint32_t slice, Interval& interval,
                                                 const reduce::Generations::View& judge) const noexcept {
    const std::size_t begin = reduce::jungfrau_pixels * slice / threads_->count();
    const std::size_t end = reduce::jungfrau_pixels * (slice + std::size_t{1}) / threads_->count();
    reduce::PedestalCounts counts;
    for (std::size_t source = 0; source < setup_->sources.size(); ++source) {
        // Frames that bring the same pixels together; others differ in the storage cell, or in the half of the module.
        std::array<bool, waiting_max> done{};
        for (std::size_t i = 0; i < waiting_.size(); ++i) {
            const DarkFrame::Part& part = waiting_[i].frame->parts[source];
            if (done[i] || !part.came) continue;
            const std::size_t in_module = part.first % reduce::jungfrau_pixels;
            const std::size_t from = std::max(in_module, begin);
            const std::size_t to = std::min(in_module + part.pixels, end);
            if (from >= to) continue;
            std::array<const std::uint16_t*, waiting_max> raw{};
            std::size_t frames = 0;
            for (std::size_t k = i; k < waiting_.size(); ++k) {
                const DarkFrame::Part& same = waiting_[k].frame->parts[source];
                if (!same.came || same.first != part.first) continue;
                done[k] = true;
                raw[frames++] = waiting_[k].frame->pixels.data() + same.at + (from - in_module);
            }
            const std::size_t first = part.first + (from - in_module);
            counts +=
                reduce::collect(std::span(raw).first(frames),
                                {std::span(judge.mean + first, to - from), std::span(judge.rms + first, to - from),
                                 outlier_, gain_bits[setup_->options.gain]},
                                interval.sums.of(first, to - from));
        }
    }
    return counts;
}

/// The first numbers were wrong: what was collected by them is not in any order.
void PedestalKeeper::fall_back() noexcept {
    const IntervalPlace place = std::ranges::max(last_place_);  // no worker waits for more
    if (place >= shared_.closed.load(std::memory_order_relaxed)) return;
    add_waiting();
    for (const auto& interval : intervals_)
        if (interval->frames > 0) publish(*interval);
    closing_.clear();
    shared_.generations.rebase();
    shared_.closed.store(place, std::memory_order_release);
}

/// Whether every worker has done all events before one that closes an interval. Of several shards, which have no order
/// among each other, a worker that waits may be left behind: it waits for this.
bool PedestalKeeper::all_past(const Closing& closing) const noexcept {
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
        const PedestalProgress& progress = shared_.progress[worker];
        if (progress.done[closing.shard].load(std::memory_order_acquire) >= closing.sequence) continue;
        if (signals_->builders > 1 && progress.waits.load(std::memory_order_relaxed)) continue;
        if (!worker_finished_(worker)) return false;
    }
    return true;
}

bool PedestalKeeper::close_ready() noexcept {
    if (closing_.empty()) return false;
    // What closes a later interval closes this one as well. Live, half an interval is what a worker may lag.
    const bool ready = (!wait_ && closing_.size() > 1) ||
                       std::ranges::any_of(closing_, [&](const Closing& closing) { return all_past(closing); });
    if (!ready) return false;
    const IntervalPlace place = closing_.front().place;
    (void)drain();  // what they handed over before they were past it
    for (const auto& interval : intervals_)
        if (interval->frames > 0 && interval->place <= place &&
            std::ranges::any_of(closing_, [&](const Closing& closing) {
                return interval->last_sequence[closing.shard] > closing.sequence;
            }))
            tally_.add(PedestalCounter::disordered);
    close(place);
    return true;
}

void PedestalKeeper::close(IntervalPlace place) noexcept {
    add_waiting();
    std::array<Interval*, 2> order{intervals_[0].get(), intervals_[1].get()};
    if (order[1]->place < order[0]->place) std::swap(order[0], order[1]);
    for (Interval* interval : order)
        if (interval->frames > 0 && interval->place <= place) publish(*interval);
    if (place > shared_.closed.load(std::memory_order_relaxed)) shared_.closed.store(place, std::memory_order_release);
    std::erase_if(closing_, [place](const Closing& closing) { return closing.place <= place; });
}

void PedestalKeeper::publish(Interval& interval) noexcept {
    const reduce::Generations::View before = shared_.generations.find(interval.place);
    shared_.generations.begin();
    while (shared_.generations.in_use()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    const reduce::Generations::Planes planes = shared_.generations.planes();
    const std::uint64_t masked_before = tracker_.masked();
    threads_->run([&](std::uint32_t slice) {
        const std::size_t first = pixels_ * slice / threads_->count();
        const std::size_t pixels = pixels_ * (slice + std::size_t{1}) / threads_->count() - first;
        tracker_.fold(first, interval.sums.of(first, pixels));
        tracker_.publish(first, planes.mean.subspan(first, pixels), planes.rms.subspan(first, pixels),
                         std::span(before.mean, pixels_).subspan(first, pixels));
    });
    shared_.generations.publish(++generation_, interval.place);
    tally_.add(PedestalCounter::generations);
    tally_.add(PedestalCounter::pixels_masked, tracker_.masked() - masked_before);
    {
        const std::lock_guard lock(report_);
        generations_.push_back({generation_, reduce::epoch_of(interval.place),
                                reduce::first_number_after(interval.place, setup_->options.interval), interval.frames,
                                interval.counts, tracker_.masked()});
        if (generations_.size() > generations_reported) generations_.pop_front();
    }
    interval.frames = 0;
    interval.counts = {};
    interval.last_sequence.fill(0);
}

void PedestalKeeper::save() noexcept {
    saved_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    if (snapshots_.empty()) return;
    std::string saved;
    std::string error;
    try {
        about_.generation = generation_;
        about_.created_ns = core::clock_ns(CLOCK_REALTIME);
        const reduce::Generations::View newest =
            shared_.generations.find(std::numeric_limits<IntervalPlace>::max() - 1);
        saved = store::write_pedestal_snapshot(snapshots_, about_, tracker_.state(), std::span(newest.mean, pixels_),
                                               std::span(newest.rms, pixels_))
                    .filename()
                    .string();
        tally_.add(PedestalCounter::snapshots);
    } catch (const std::exception& failure) {
        error = failure.what();
    }
    const std::lock_guard lock(report_);
    if (!saved.empty()) saved_.push_back(saved);
    if (error_.empty()) error_ = error;
}

nlohmann::json PedestalKeeper::json() const {
    const std::lock_guard lock(report_);
    nlohmann::json list = nlohmann::json::array();
    for (const Generation& generation : generations_) {
        nlohmann::json one{{"generation", generation.number}};
        if (generation.number == 0) {
            one["from"] = setup_->started_from;
        } else {
            one["epoch"] = generation.epoch;
            one["first_event"] = generation.first_event;
            one["dark_frames"] = generation.frames;
            one["pixels"] = {{"taken", generation.counts.taken},
                             {"outliers", generation.counts.outliers},
                             {"other_gain", generation.counts.other_gain},
                             {"missing", generation.counts.missing},
                             {"masked", generation.masked}};
        }
        list.push_back(std::move(one));
    }
    nlohmann::json out{{"gain", setup_->options.gain}, {"generations", std::move(list)}, {"snapshots", saved_}};
    if (!snapshots_.empty()) out["snapshot_folder"] = snapshots_.string();
    if (!error_.empty()) out["error"] = error_;
    return out;
}

std::string PedestalKeeper::error() const {
    const std::lock_guard lock(report_);
    return error_;
}

}  // namespace weir::stages
