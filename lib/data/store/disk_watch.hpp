// How long the disk lasts: free space against the rate at which it goes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/units.hpp"

namespace weir::store {

/// What is known at one moment. Nothing where it is not known: a file system that does not say, a run that has just
/// begun.
struct DiskOutlook {
    std::optional<std::uint64_t> free_bytes;        ///< that an ordinary user may still write
    std::optional<std::uint64_t> bytes_per_second;  ///< at which it goes, over the last ten seconds
    std::optional<std::uint64_t> seconds_left;      ///< until it is full at that rate; nothing if nothing is written
};

/// Fed once a second or so by the thread that writes.
class DiskWatch {
public:
    /// `written_bytes`: by this run so far. `now_ns`: any clock that does not go back.
    void update(core::TimeNs now_ns, std::uint64_t written_bytes, std::optional<std::uint64_t> free_bytes) noexcept;
    [[nodiscard]] const DiskOutlook& outlook() const noexcept { return outlook_; }

private:
    struct Sample {
        core::TimeNs at_ns = 0;
        std::uint64_t written_bytes = 0;
        std::optional<std::uint64_t> free_bytes;
    };
    std::array<Sample, 11> samples_{};  ///< a ring, oldest first from next_ on once it is full
    std::size_t next_ = 0;
    std::size_t count_ = 0;
    DiskOutlook outlook_;
};

/// Says when a disk is about to be full: once when less than `warn_seconds` are left, again whenever half of that time
/// has gone, and anew after there was twice as much for a while. 0: never.
class DiskAlarm {
public:
    explicit DiskAlarm(std::uint64_t warn_seconds) : warn_seconds_(warn_seconds), next_(warn_seconds) {}
    /// Whether to say something now.
    [[nodiscard]] bool update(const DiskOutlook& outlook) noexcept;

private:
    std::uint64_t warn_seconds_;
    std::uint64_t next_;
};

/// "1.2 TB free, 3.4 h left", as far as it is known; for the progress line and warnings. Empty if nothing is.
std::string disk_text(const DiskOutlook& outlook);

}  // namespace weir::store
