// See record_trigger.hpp.
#include "stages/record_trigger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace weir::stages {

namespace {

TimeNs plus(TimeNs a, TimeNs b) noexcept {
    TimeNs out = 0;
    if (__builtin_add_overflow(a, b, &out))
        return b < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max();
    return out;
}

std::string gap_text(const RecordTrigger::Gap& gap) {
    if (gap.all) return fmt::format("source {} misses everything", gap.source);
    if (gap.packets == 0) return fmt::format("source {} is not whole", gap.source);
    return fmt::format("source {} misses {} packet{}", gap.source, gap.packets, gap.packets == 1 ? "" : "s");
}

}  // namespace

const char* name_of(RecordTrigger::Reason reason) noexcept {
    switch (reason) {
        case RecordTrigger::Reason::incomplete:
            return "incomplete";
        case RecordTrigger::Reason::drops:
            return "drops";
        case RecordTrigger::Reason::request:
            break;
    }
    return "request";
}

std::string RecordTrigger::text() const {
    if (reason == Reason::request) return "asked for";
    if (reason == Reason::drops) return fmt::format("packets are being lost: {} within a second", number);
    std::string text = fmt::format("event {}{} incomplete: {}", epoch > 0 ? fmt::format("{}:", epoch) : "", number,
                                   assemble::name_of(cause));
    for (std::uint32_t i = 0; i < std::min(gap_count, gaps_max); ++i) text += ", " + gap_text(gaps[i]);
    if (gap_count > gaps_max) text += fmt::format(", and {} more", gap_count - gaps_max);
    return text;
}

bool RecordWindows::trigger(const RecordTrigger& trigger) {
    const TimeNs begin = plus(trigger.first_ns, -config_.before_ns);
    const TimeNs end = plus(trigger.last_ns, config_.after_ns);
    // Triggers come nearly in order of time, so it is the last window that one may belong to.
    if (!windows_.empty() && (begin <= windows_.back().end_ns || windows_.size() == windows_max)) {
        Window& last = windows_.back();
        last.end_ns = std::max(last.end_ns, end);
        // What is before the current window has been let go of; one that has not begun can still grow.
        if (windows_.size() > 1)
            last.begin_ns = std::max(std::min(last.begin_ns, begin), plus(windows_[windows_.size() - 2].end_ns, 1));
        ++last.triggers;
        return false;
    }
    windows_.push_back({begin, end, trigger, 1});
    return true;
}

bool RecordWindows::over(TimeNs written_ns, TimeNs complete_ns) const noexcept {
    if (windows_.empty() || written_ns <= windows_.front().end_ns) return false;
    if (windows_.size() > 1) return true;
    return complete_ns > plus(windows_.front().end_ns, plus(config_.before_ns, config_.reach_ns));
}

std::optional<std::uint64_t> DropBurst::update(TimeNs now_ns, std::uint64_t lost) {
    if (per_second_ == 0) return {};
    // The newest of those that are a second old tells where the second began.
    while (samples_.size() > 1 && samples_[1].at_ns <= now_ns - core::ns_per_s) samples_.pop_front();
    samples_.push_back({now_ns, lost});
    const std::uint64_t within = lost - std::min(lost, samples_.front().lost);
    const bool begins = within >= per_second_ && !burst_;
    burst_ = within >= per_second_;
    return begins ? std::optional(within) : std::nullopt;
}

}  // namespace weir::stages
