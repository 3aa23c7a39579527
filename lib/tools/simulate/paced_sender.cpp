#include "simulate/paced_sender.hpp"

#include <algorithm>
#include <thread>

namespace weir::simulate {

namespace {

constexpr double capture_gbps = 10;
// Sleeping for less than this costs more than it waits.
constexpr std::int64_t wait_least_ns = 20'000;
// So that Ctrl-C is heard also at one event per minute.
constexpr std::int64_t slice_ns = 50 * core::ns_per_ms;

Pacer::Config pace_of(const PacedSender::Config& config) {
    const bool paced = config.pace.events_per_s > 0 || config.pace.gbps > 0;
    return config.live || paced ? config.pace : Pacer::Config{.gbps = capture_gbps};
}

}  // namespace

PacedSender::PacedSender(Simulator& simulator, FrameTarget& target, const Config& config, const std::atomic<bool>& stop)
    : simulator_(simulator), target_(target), config_(config), stop_(stop), result_{.pacer = Pacer(pace_of(config))} {}

std::int64_t PacedSender::elapsed_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
}

PacedSender::Result PacedSender::send() {
    start_ = std::chrono::steady_clock::now();
    std::int64_t next_progress_ns = core::ns_per_s;
    Simulator::Frame frame;
    while (simulator_.next(target_.slot(filled_), frame)) {
        const core::TimeNs due_ns = result_.pacer.due_ns(frame.due_events, frame.bytes);
        if (config_.live) {
            const std::int64_t now_ns = elapsed_ns();
            stop_if_asked(now_ns);
            wait(due_ns, now_ns);
            if (config_.on_progress && now_ns >= next_progress_ns) {
                config_.on_progress(static_cast<double>(now_ns) * 1e-9);
                next_progress_ns += core::ns_per_s;
            }
        }
        batch_[filled_++] = {frame, capture_start_ns + due_ns};
        if (filled_ == FrameTarget::slots) {
            flush();
            filled_ = sent_ = 0;
            stop_if_asked(0);
        }
    }
    flush();
    target_.finish();
    // A capture ends when the next event would be due, or the last bit is on the wire.
    const core::TimeNs end_ns =
        config_.live ? elapsed_ns() : result_.pacer.due_ns(static_cast<double>(simulator_.account().events), 0);
    result_.seconds = static_cast<double>(end_ns) * 1e-9;
    return result_;
}

void PacedSender::stop_if_asked(std::int64_t now_ns) {
    const bool asked = stop_.load(std::memory_order_relaxed);
    const bool over = config_.duration_s > 0 && static_cast<double>(now_ns) * 1e-9 >= config_.duration_s;
    if (!stopped_ && (asked || over)) {
        stopped_ = true;
        result_.interrupted = asked;
        simulator_.stop();
    }
}

void PacedSender::wait(core::TimeNs due_ns, std::int64_t now_ns) {
    if (stopped_) {
        return;
    }
    std::int64_t wait_ns = result_.pacer.wait_ns(due_ns, now_ns);
    if (wait_ns < wait_least_ns) {
        return;
    }
    flush();
    const std::int64_t end_ns = now_ns + wait_ns;
    for (; wait_ns >= wait_least_ns && !stopped_; wait_ns = end_ns - elapsed_ns()) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(wait_ns, slice_ns)));
        stop_if_asked(elapsed_ns());
    }
}

void PacedSender::flush() {
    const std::span<const OutgoingFrame> due(batch_.data() + sent_, filled_ - sent_);
    if (!due.empty()) {
        result_.refused += due.size() - target_.send(sent_, due);
        sent_ = filled_;
    }
}

}  // namespace weir::simulate
