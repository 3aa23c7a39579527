// See recorder.hpp.
#include "record/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/allocation_context.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/host_topology.hpp"

namespace weir::record {

namespace {

constexpr core::TimeNs before_all = std::numeric_limits<core::TimeNs>::min();
constexpr core::TimeNs patience_ns = 100 * core::ns_per_ms;
constexpr core::TimeNs flush_every_ns = 200 * core::ns_per_ms;
constexpr core::TimeNs publish_every_ns = 10 * core::ns_per_ms;
constexpr std::size_t comments_max = 64;  ///< that wait for their packet

core::TimeNs in_ns(double seconds) noexcept {
    return static_cast<core::TimeNs>(seconds * 1e9);
}

stages::RecordWindows::Config windows_config(const Recorder::Config& config) {
    return {in_ns(config.record.before), in_ns(config.record.after), config.timeout_ns};
}

/// How far `earlier` is before `later`; never negative, whatever the times are.
core::TimeNs distance(core::TimeNs earlier, core::TimeNs later) noexcept {
    core::TimeNs out = 0;
    if (__builtin_sub_overflow(later, earlier, &out)) return later > earlier ? core::never : 0;
    return std::max<core::TimeNs>(out, 0);
}

}  // namespace

Recorder::Recorder(Config config)
    : config_(std::move(config)),
      files_(config_.files, [this] { return statistics(); }),
      windows_(windows_config(config_)) {
    const std::uint64_t lcores = config_.nodes.size();
    const std::uint64_t blocks = config_.record.memory_bytes / stages::RecordRing::block_bytes / lcores;
    if (blocks < stages::RecordRing::blocks_min)
        throw core::UsageError(fmt::format("sink.memory: found {} MiB; accepted: at least {} MiB, {} for each rx lcore",
                                           config_.record.memory_bytes >> 20U, lcores * stages::RecordRing::blocks_min,
                                           stages::RecordRing::blocks_min));
    const core::AllocationContext allocating("the flight recorder");
    for (const int node : config_.nodes) {
        const port::PreferNode memory(node);
        sources_.push_back({std::make_unique<stages::RecordRing>(blocks, config_.record.snap_bytes), nullptr, 0, 0});
    }
    for (std::uint32_t i = 0; i < config_.builders; ++i) queues_.push_back(std::make_unique<stages::TriggerQueue>());
    devices_.resize(config_.files.interfaces.size());
    status_.mode = config_.record.packets;
    status_.memory_bytes = lcores * blocks * stages::RecordRing::block_bytes;
    published_ = status_;
}

Recorder::~Recorder() {
    finish();
}

void Recorder::start() {
    flushed_ns_ = core::clock_ns(CLOCK_MONOTONIC);
    if (config_.record.packets == config::RecordMode::all) files_.begin({});
    thread_ = std::thread([this] { work(); });
}

void Recorder::work() {
    while (!stop_.load(std::memory_order_acquire))
        if (!turn(false)) std::this_thread::sleep_for(std::chrono::microseconds(500));
}

void Recorder::finish() {
    if (finished_) return;
    finished_ = true;
    stop_.store(true, std::memory_order_release);
    if (!thread_.joinable()) return;  // it never began
    thread_.join();
    while (turn(true)) {
    }
    files_.end();
    publish(record_ns_);
}

/// What can be read now, and the time up to which nothing more comes.
core::TimeNs Recorder::look_at_rings(bool final) noexcept {
    core::TimeNs safe = core::never;
    for (Source& source : sources_) {
        // The promise first: what it is about is then in the ring.
        if (!final && source.signals != nullptr && !source.signals->steered_all.load(std::memory_order_acquire))
            safe = std::min(safe, source.signals->steered_until.load(std::memory_order_acquire));
        source.end = source.ring->written();
        move_to(source, source.ring->record_from(source.at, source.end));
    }
    return safe;
}

void Recorder::move_to(Source& source, std::uint64_t position) noexcept {
    const bool left = position / stages::RecordRing::block_bytes != source.at / stages::RecordRing::block_bytes;
    source.at = position;
    if (left) source.ring->release(position);
}

void Recorder::take(const stages::RecordTrigger& trigger) {
    ++status_.triggers[static_cast<std::size_t>(trigger.reason)];
    if (!files_.stopped().empty()) {
        ++status_.triggers_unsaved;
        return;
    }
    // The first one of a file is in its header.
    if (config_.record.packets == config::RecordMode::incomplete && windows_.trigger(trigger)) return;
    if (comments_.size() < comments_max) comments_.push_back({trigger.last_ns, trigger.text()});
}

/// Returns the time before which nothing will turn out to have gone wrong.
core::TimeNs Recorder::take_triggers(bool final) {
    core::TimeNs complete = core::never;
    for (const auto& queue : queues_) {
        if (!final) complete = std::min(complete, queue->complete_until());
        stages::RecordTrigger trigger;
        while (queue->pop(trigger))
            if (config_.replay || trigger.cause != assemble::EventCause::end_of_run) take(trigger);
    }
    std::vector<stages::RecordTrigger> requests;
    {
        const std::lock_guard lock(mutex_);
        requests.swap(requests_);
    }
    for (const stages::RecordTrigger& request : requests) take(request);
    return complete;
}

bool Recorder::write_record(const Source& source) {
    const stages::RecordHead& head = source.ring->head_at(source.at);
    store::PcapngPacket packet;
    packet.bytes = source.ring->bytes_at(source.at);
    packet.time_ns = head.time_ns;
    packet.wire_bytes = head.wire_bytes;
    packet.interface = head.port;
    if (!config_.replay) packet.queue = head.queue;
    packet.dropped = head.lost_before;
    packet_comments_.clear();
    if (!comments_.empty()) {
        std::erase_if(comments_, [&](const Comment& comment) {
            if (comment.from_ns > head.time_ns) return false;
            packet_comments_.push_back(comment.text);
            return true;
        });
        packet.comments = packet_comments_;
    }
    return files_.put(packet);
}

/// Writes what is from `begin_ns` to `end_ns`, in order of time over all lcores, and lets go of what is before. `more`:
/// there is more than was done in this turn.
bool Recorder::write(core::TimeNs begin_ns, core::TimeNs end_ns, bool& more) {
    std::uint64_t done = 0;
    for (;;) {
        Source* next = nullptr;
        for (Source& source : sources_)
            if (source.at < source.end &&
                (next == nullptr || source.ring->head_at(source.at).time_ns < next->ring->head_at(next->at).time_ns))
                next = &source;
        if (next == nullptr) return done > 0;
        const stages::RecordHead& head = next->ring->head_at(next->at);
        if (head.time_ns > end_ns) return done > 0;
        if (done >= turn_bytes) {
            more = true;
            return true;
        }
        done += sizeof head + head.bytes;
        if (!began_ns_) began_ns_ = head.time_ns;
        record_ns_ = head.time_ns;
        if (head.time_ns >= begin_ns) write_record(*next) ? ++put_ : ++discarded_;
        const std::uint64_t after = next->ring->next(next->at);
        move_to(*next, next->ring->record_from(after, next->end));
    }
}

/// The flight recorder: writes the windows that are due.
bool Recorder::serve_windows(core::TimeNs safe_ns, core::TimeNs complete_ns, bool& more) {
    bool any = false;
    while (const stages::RecordWindows::Window* window = windows_.current()) {
        if (!begun_) files_.begin(window->first.text());
        begun_ = true;
        any |= write(window->begin_ns, std::min(window->end_ns, safe_ns), more);
        if (more || !windows_.over(safe_ns, complete_ns)) break;
        for (Comment& comment : comments_) files_.note(std::move(comment.text));
        comments_.clear();
        files_.end();
        begun_ = false;
        windows_.next();
    }
    return any;
}

/// The flight recorder: gives blocks back that are too old, or that there is no more room for.
void Recorder::let_go(core::TimeNs complete_ns) noexcept {
    const core::TimeNs kept_ns = in_ns(config_.record.seconds);
    const stages::RecordWindows::Window* const window = windows_.current();
    bool pressed = false;
    for (Source& source : sources_) {
        stages::RecordRing& ring = *source.ring;
        const std::uint64_t reserve = std::max(2 * stages::RecordRing::burst_blocks, ring.blocks() / 16);
        while (source.at / stages::RecordRing::block_bytes < source.end / stages::RecordRing::block_bytes) {
            const core::TimeNs newest = ring.newest_in(source.at);
            if (window != nullptr && newest >= window->begin_ns && ring.head_at(source.at).time_ns <= window->end_ns)
                break;  // still to be written
            const bool old = distance(newest, complete_ns) > kept_ns;
            const bool full = ring.free_blocks(source.end) < std::min(reserve, ring.blocks() / 2);
            if (!old && !full) break;
            if (!old) {
                // An input that waits would rather have everything judged that is here, if that comes to an end.
                pressed = true;
                const core::TimeNs now = core::clock_ns(CLOCK_MONOTONIC);
                if (pressed_ns_ == 0) pressed_ns_ = now;
                if (wait_ && record_ns_ > complete_ns && now - pressed_ns_ < patience_ns) break;
                const double held = static_cast<double>(distance(newest, record_ns_)) * 1e-9;
                status_.shortest_seconds = status_.short_of_memory ? std::min(status_.shortest_seconds, held) : held;
                status_.short_of_memory = true;
            }
            if (!began_ns_) began_ns_ = ring.head_at(source.at).time_ns;
            const std::uint64_t after =
                (source.at / stages::RecordRing::block_bytes + 1) * stages::RecordRing::block_bytes;
            move_to(source, ring.record_from(after, source.end));
        }
    }
    if (!pressed) pressed_ns_ = 0;
}

bool Recorder::turn(bool final) {
    const core::TimeNs complete = take_triggers(final);
    const core::TimeNs safe = look_at_rings(final);
    bool more = false;
    bool any = false;
    if (config_.record.packets == config::RecordMode::all) {
        any = write(before_all, safe, more);
    } else {
        any = serve_windows(safe, complete, more);
        if (safe != core::never) record_ns_ = std::max(record_ns_, safe);
        // A source that keeps an event from being closed must not keep old packets here for ever.
        const bool moving = !config_.replay && safe != core::never && safe != before_all;
        let_go(moving ? std::max(complete, safe - config_.timeout_ns - core::ns_per_s) : complete);
    }
    const core::TimeNs now = core::clock_ns(CLOCK_MONOTONIC);
    if (now - flushed_ns_ > flush_every_ns) {
        flushed_ns_ = now;
        files_.flush();
    }
    if (now - published_ns_ > publish_every_ns || final) {
        published_ns_ = now;
        publish(safe);
    }
    return final ? more : any;
}

std::vector<store::PcapngStatistics> Recorder::statistics() {
    const std::lock_guard lock(mutex_);
    std::vector<store::PcapngStatistics> out;
    for (std::uint32_t i = 0; i < devices_.size(); ++i) {
        store::PcapngStatistics statistics;
        statistics.interface = i;
        statistics.time_ns = record_ns_;
        statistics.start_ns = began_ns_;
        statistics.end_ns = record_ns_;
        std::uint64_t accepted = 0;
        std::uint64_t dropped = 0;
        for (const Source& source : sources_) {
            accepted += source.ring->seen_of(static_cast<std::uint8_t>(i));
            dropped += source.ring->left_out_of(static_cast<std::uint8_t>(i));
        }
        statistics.received = devices_[i].received.value_or(accepted);
        statistics.device_dropped = devices_[i].dropped;
        statistics.accepted = accepted;
        statistics.capture_dropped = dropped;
        out.push_back(statistics);
    }
    return out;
}

void Recorder::set_devices(std::vector<Device> devices) {
    const std::lock_guard lock(mutex_);
    devices.resize(devices_.size());
    devices_ = std::move(devices);
}

void Recorder::trigger(stages::RecordTrigger trigger) {
    const std::lock_guard lock(mutex_);
    trigger.first_ns = trigger.last_ns = published_.newest_ns;
    // Somebody who asks wants what there is.
    if (trigger.reason == stages::RecordTrigger::Reason::request)
        trigger.first_ns -= std::max<core::TimeNs>(0, in_ns(config_.record.seconds) - in_ns(config_.record.before));
    requests_.push_back(trigger);
}

Recorder::Status Recorder::status() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

void Recorder::publish(core::TimeNs safe_ns) {
    status_.seen = 0;
    status_.copied_bytes = 0;
    status_.left_out = discarded_ + put_ - files_.packets();
    core::TimeNs oldest = core::never;
    for (const Source& source : sources_) {
        status_.seen += source.ring->seen();
        status_.left_out += source.ring->left_out();
        status_.copied_bytes += source.end;
        if (source.at < source.end) oldest = std::min(oldest, source.ring->head_at(source.at).time_ns);
    }
    status_.written = files_.packets();
    status_.files = files_.files();
    status_.bytes = files_.bytes();
    if (safe_ns != core::never && safe_ns != before_all) status_.newest_ns = safe_ns;
    status_.seconds_held = static_cast<double>(oldest == core::never ? 0 : distance(oldest, status_.newest_ns)) * 1e-9;
    status_.saving = files_.is_open();
    status_.failed = files_.failed();
    status_.stopped = files_.stopped();
    if (status_.names.size() != files_.names().size()) status_.names = files_.names();
    const std::lock_guard lock(mutex_);
    published_ = status_;
}

}  // namespace weir::record
