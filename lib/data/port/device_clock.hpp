// Time stamps that the device puts into packets, as UNIX time: its clock is read now and then beside the system's.
#pragma once

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/disciplined_clock.hpp"

namespace weir::port {

class DeviceClock {
public:
    /// Reads the device's clock; nothing if that fails.
    using Reader = std::function<std::optional<std::uint64_t>()>;

    /// For a port that was started with time stamps. Null, with the reason, where its clock cannot be read: stamps of
    /// an unknown clock are no times. Takes 20 ms.
    static std::unique_ptr<DeviceClock> open(std::uint16_t port_id, std::string& why_not);
    /// `name` is said in the report. `reader` must work at least now.
    /// `source`: of the stamps, in a word.
    DeviceClock(std::string name, Reader reader, int field, std::uint64_t flag, std::string source = "hardware");

    /// For the thread that controls the run, many times a second.
    void look() noexcept;

    /// What a burst of packets needs.
    struct Stamps {
        core::DisciplinedClock::Line line;
        int field = -1;          ///< offset of the stamp in the mbuf
        std::uint64_t flag = 0;  ///< of packets that have one
        /// When `mbuf` arrived, within [floor, now]: packets that were promised not to come any more, and a card that
        /// is ahead of us, are taken for the nearest time that can be. `moved` counts them. `now` where there is no
        /// stamp.
        [[nodiscard]] core::TimeNs time_of(const rte_mbuf& mbuf, core::TimeNs floor, core::TimeNs now,
                                           std::uint64_t& moved) const noexcept {
            if ((mbuf.ol_flags & flag) == 0) return now;
            const core::TimeNs time = line.at(*RTE_MBUF_DYNFIELD(&mbuf, field, const rte_mbuf_timestamp_t*));
            if (time >= floor && time <= now) return time;
            ++moved;
            return std::clamp(time, std::min(floor, now), now);
        }
    };
    /// For any thread.
    [[nodiscard]] Stamps stamps() const noexcept { return {clock_->line(), field_, flag_}; }

    /// For the thread that calls look().
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }
    [[nodiscard]] const core::DisciplinedClock::Accuracy& accuracy() const noexcept { return clock_->accuracy(); }

private:
    [[nodiscard]] std::optional<core::ClockReading> read() const noexcept;

    std::string name_;
    std::string source_;
    Reader reader_;
    int field_;
    std::uint64_t flag_;
    std::unique_ptr<core::DisciplinedClock> clock_;
    core::TimeNs looked_ns_ = 0;
};

}  // namespace weir::port
