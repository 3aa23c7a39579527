#include "resend/timed_sender.hpp"

#include <rte_pause.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "core/hot_thread.hpp"
#include "core/one_writer.hpp"

namespace weir::resend {

using core::TimeNs;

namespace {

/// Below this the thread spins: a sleep of any length ends about so late where the machine is not idle.
constexpr TimeNs spin_ns = 150'000;
/// So that Ctrl-C is heard.
constexpr TimeNs slice_ns = 50 * core::ns_per_ms;

void sleep(TimeNs ns) noexcept {
    const timespec time{ns / core::ns_per_s, ns % core::ns_per_s};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace

bool TimedSender::is_over() const noexcept {
    return failed_ || stop_.load(std::memory_order_relaxed);
}

void TimedSender::send() {
    // The default of 50 us is added to every sleep.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    core::hot_thread(true);
    loop();
    core::hot_thread(false);
    if (failed_ && result_.error.empty()) result_.error = target_.failure();
    result_.interrupted = stop_.load(std::memory_order_relaxed);
    // What is left in slots or on its way there.
    not_sent_.add(NotSent::unsent, filled_ - sent_);
}

void TimedSender::loop() {
    while (!is_over()) {
        const TimeNs now_ns = core::monotonic_ns();
        if (filled_ == sent_) static_cast<void>(load_next(core::never));
        // All that is due goes in one burst.
        while (load_next(now_ns)) {
        }
        if (filled_ == sent_) {
            if (ring_.ended()) return;
            wait_for_file(now_ns);
        } else if (loaded_[sent_].due_ns <= now_ns) {
            if (const TimeNs late_ns = send_due(now_ns); late_ns >= 0) result_.last_late_ns = late_ns;
            if (!settled_ && first_sent_ns_) wait_after_first();
        } else if (!load_next(core::never)) {  // time to make the next ones ready
            wait_until(loaded_[sent_].due_ns);
        }
    }
}

TimeNs TimedSender::due_of(const FrameRing::Frame& frame) const noexcept {
    if (speed_ <= 0) return 0;
    // Stamps can be anything: what is due in more than a century is due then.
    constexpr double most_ns = 4e18;
    const double after_ns = static_cast<double>(frame.time_ns - *first_time_ns_) / speed_;
    return start_ns_ + static_cast<TimeNs>(std::min(after_ns, most_ns));
}

/// The next frame into a slot, if there is one that is due by then, and a slot.
bool TimedSender::load_next(TimeNs due_until) {
    if (filled_ == loaded_.size()) {
        if (sent_ < filled_) return false;
        sent_ = filled_ = 0;
    }
    const FrameRing::Frame* const frame = ring_.front();
    if (frame == nullptr) return false;
    if (!first_time_ns_) {
        first_time_ns_ = frame->time_ns;
        start_ns_ = core::monotonic_ns();
    }
    const TimeNs due_ns = due_of(*frame);
    if (due_ns > due_until) return false;
    target_.load(filled_, ring_.front_bytes(), frame->port);
    loaded_[filled_++] = {due_ns, frame->bytes};
    ring_.pop();
    return true;
}

/// How late the last of them was; less than 0 if none went.
TimeNs TimedSender::send_due(TimeNs now_ns) {
    std::uint32_t due = sent_ + 1;
    // The way is tried with one packet first.
    while (settled_ && due < filled_ && loaded_[due].due_ns <= now_ns) ++due;
    const WireTarget::Taken taken = target_.send(sent_, due - sent_);
    const TimeNs after_ns = core::monotonic_ns();
    if (taken.too_long) {
        not_sent_.add(NotSent::too_long, taken.packets);
        sent_ += taken.packets;
        return -1;
    }
    if (taken.packets == 0) {
        result_.for_target.times += stalled_since_ns_ == 0 ? 1 : 0;
        result_.for_target.ns += after_ns - now_ns;
        if (stalled_since_ns_ == 0) stalled_since_ns_ = now_ns;
        const std::chrono::nanoseconds stalled(after_ns - stalled_since_ns_);
        failed_ = taken.failed || !target_.may_take_more(stalled);
        std::this_thread::yield();
        return -1;
    }
    stalled_since_ns_ = 0;
    const TimeNs last_due_ns = loaded_[sent_ + taken.packets - 1].due_ns;
    if (!first_sent_ns_) {
        first_sent_ns_ = after_ns;
        first_due_ns_ = loaded_[sent_].due_ns;
    }
    count(taken.packets, after_ns);
    result_.actual_ns = after_ns - *first_sent_ns_;
    if (speed_ <= 0) return 0;
    result_.intended_ns = last_due_ns - first_due_ns_;
    return after_ns - last_due_ns;
}

void TimedSender::count(std::uint32_t packets, TimeNs now_ns) noexcept {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < packets; ++i) {
        const Loaded& packet = loaded_[sent_ + i];
        bytes += packet.bytes;
        if (speed_ <= 0) continue;
        const auto late_ns = static_cast<std::uint64_t>(std::max<TimeNs>(0, now_ns - packet.due_ns));
        const bool first = packets_.load(std::memory_order_relaxed) + i == 0;
        result_.late_ns_min = first ? late_ns : std::min(result_.late_ns_min, late_ns);
        result_.late_over_1ms += late_ns > static_cast<std::uint64_t>(core::ns_per_ms) ? 1 : 0;
        result_.late_ns.add(late_ns);
    }
    sent_ += packets;
    core::add(packets_, packets);
    core::add(packet_bytes_, bytes);
}

void TimedSender::wait_for_file(TimeNs now_ns) noexcept {
    ++result_.for_file.times;
    while (ring_.front() == nullptr && !ring_.ended() && !is_over()) sleep(20'000);
    if (ring_.front() != nullptr) result_.for_file.ns += core::monotonic_ns() - now_ns;
}

void TimedSender::wait_until(TimeNs due_ns) noexcept {
    for (TimeNs now_ns = core::monotonic_ns(); now_ns < due_ns && !is_over(); now_ns = core::monotonic_ns()) {
        if (due_ns - now_ns > spin_ns)
            sleep(std::min(due_ns - now_ns - spin_ns, slice_ns));
        else
            ::rte_pause();
    }
}

/// What that takes is not the sender's: the schedule begins when the way is open.
void TimedSender::wait_after_first() {
    settled_ = true;
    core::hot_thread(false);
    const TimeNs begin_ns = core::monotonic_ns();
    try {
        target_.wait_until_reachable();
    } catch (const core::RunError& error) {
        result_.error = error.what();
        failed_ = true;
    }
    const TimeNs waited_ns = core::monotonic_ns() - begin_ns;
    core::hot_thread(true);
    if (waited_ns < core::ns_per_ms) return;
    result_.settled_ns = waited_ns;
    start_ns_ += waited_ns;
    first_due_ns_ += waited_ns;
    *first_sent_ns_ += waited_ns;
    for (std::uint32_t slot = sent_; slot < filled_; ++slot) loaded_[slot].due_ns += speed_ > 0 ? waited_ns : 0;
}

}  // namespace weir::resend
