// Why and what the flight recorder saves (docs/guides/RECORDER.md): triggers become windows of time, windows that touch
// become one file. No clock, no memory, no files: times are given.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "assemble/event_cause.hpp"
#include "core/units.hpp"

namespace weir::stages {

using core::TimeNs;

/// Something happened that is worth the packets around it. By value, from any thread.
struct RecordTrigger {
    enum class Reason : std::uint8_t {
        incomplete,  ///< an event closed as incomplete
        drops,       ///< packets began to be lost
        request,     ///< somebody asked
    };
    static constexpr std::uint32_t gaps_max = 4;
    struct Gap {
        std::uint32_t source = 0;
        std::uint32_t packets = 0;  ///< that are missing; 0: not known how many
        bool all = false;           ///< nothing of the source came
    };

    Reason reason = Reason::request;
    assemble::EventCause cause = assemble::EventCause::complete;  ///< incomplete
    std::uint32_t epoch = 0;
    TimeNs first_ns = 0;               ///< when it began: of an event, its first packet
    TimeNs last_ns = 0;                ///< when it was over: of an event, when it closed
    std::uint64_t number = 0;          ///< incomplete: of the event. drops: packets lost so far within the second
    std::uint32_t gap_count = 0;       ///< incomplete: sources that miss something
    std::array<Gap, gaps_max> gaps{};  ///< the first of them

    /// "event 17 incomplete: timeout, source 3 misses 2 packets".
    [[nodiscard]] std::string text() const;
};
inline constexpr std::size_t record_reasons = 3;
[[nodiscard]] const char* name_of(RecordTrigger::Reason reason) noexcept;

/// From triggers to windows. Each window becomes a file; one that a trigger comes for while it is open, or shortly
/// after its end, goes on.
class RecordWindows {
public:
    struct Config {
        TimeNs before_ns = core::ns_per_s;
        TimeNs after_ns = core::ns_per_s;
        /// How far back a trigger may reach besides: an event's time-out. A window that is over waits so long for
        /// triggers that belong to it.
        TimeNs reach_ns = 0;
    };
    struct Window {
        TimeNs begin_ns = 0;
        TimeNs end_ns = 0;  ///< the last moment of it
        RecordTrigger first;
        std::uint64_t triggers = 0;
    };

    explicit RecordWindows(const Config& config) : config_(config) {}

    /// True: the trigger made a window of its own; false: it extended one.
    bool trigger(const RecordTrigger& trigger);
    /// The window that is to be written now: everything in it that there is, in order of time.
    [[nodiscard]] const Window* current() const noexcept { return windows_.empty() ? nullptr : &windows_.front(); }
    /// All packets before `written_ns` are written, and no trigger that ended before `complete_ns` comes any more.
    /// True: the current window is over, and its file can be closed.
    [[nodiscard]] bool over(TimeNs written_ns, TimeNs complete_ns) const noexcept;
    /// The current window has been closed.
    void next() noexcept { windows_.pop_front(); }

private:
    static constexpr std::size_t windows_max = 64;  ///< that wait; further triggers extend the last one
    Config config_;
    std::deque<Window> windows_;  ///< in order of time, apart from each other
};

/// Says when a burst of lost packets begins: more than so many within a second, after a second with fewer.
class DropBurst {
public:
    /// `per_second`: 0: never.
    explicit DropBurst(std::uint64_t per_second) : per_second_(per_second) {}
    /// `lost`: packets so far. Returns how many were lost within the last second when a burst begins, otherwise
    /// nothing.
    std::optional<std::uint64_t> update(TimeNs now_ns, std::uint64_t lost);

private:
    struct Sample {
        TimeNs at_ns = 0;
        std::uint64_t lost = 0;
    };
    std::uint64_t per_second_;
    std::deque<Sample> samples_;  ///< of the last second, and one before it
    bool burst_ = false;
};

}  // namespace weir::stages
