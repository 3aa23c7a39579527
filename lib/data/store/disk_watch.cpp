// How long the disk lasts. See disk_watch.hpp.
#include "store/disk_watch.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace weir::store {

void DiskWatch::update(core::TimeNs now_ns, std::uint64_t written_bytes,
                       std::optional<std::uint64_t> free_bytes) noexcept {
    const Sample now{now_ns, written_bytes, free_bytes};
    samples_[next_] = now;
    next_ = (next_ + 1) % samples_.size();
    count_ = std::min(count_ + 1, samples_.size());
    const Sample& oldest = samples_[count_ < samples_.size() ? 0 : next_];

    outlook_ = {};
    outlook_.free_bytes = free_bytes;
    const double seconds = static_cast<double>(now.at_ns - oldest.at_ns) / static_cast<double>(core::ns_per_s);
    if (seconds < 0.5) return;
    std::uint64_t gone = written_bytes - std::min(written_bytes, oldest.written_bytes);
    // Others write to the disk too, and a file system needs more than what is in the files.
    if (free_bytes && oldest.free_bytes && *oldest.free_bytes > *free_bytes)
        gone = std::max(gone, *oldest.free_bytes - *free_bytes);
    const double rate = static_cast<double>(gone) / seconds;
    outlook_.bytes_per_second = static_cast<std::uint64_t>(rate);
    if (free_bytes && *outlook_.bytes_per_second > 0) outlook_.seconds_left = *free_bytes / *outlook_.bytes_per_second;
}

bool DiskAlarm::update(const DiskOutlook& outlook) noexcept {
    if (warn_seconds_ == 0 || !outlook.seconds_left) return false;
    const std::uint64_t left = *outlook.seconds_left;
    if (left >= 2 * warn_seconds_) next_ = warn_seconds_;
    if (left >= next_) return false;
    next_ = left / 2;
    return true;
}

std::string disk_text(const DiskOutlook& outlook) {
    if (!outlook.free_bytes) return {};
    double bytes = static_cast<double>(*outlook.free_bytes) / 1e6;
    const char* unit = "MB";
    for (const char* larger : {"GB", "TB", "PB"}) {
        if (bytes < 1000) break;
        bytes /= 1000;
        unit = larger;
    }
    std::string text = fmt::format("{:.3g} {} free", bytes, unit);
    if (!outlook.seconds_left) return text;
    const double left = static_cast<double>(*outlook.seconds_left);
    if (left < 120) return text + fmt::format(", {:.0f} s left", left);
    if (left < 7200) return text + fmt::format(", {:.0f} min left", left / 60);
    if (left < 48 * 3600) return text + fmt::format(", {:.1f} h left", left / 3600);
    return text + fmt::format(", {:.0f} days left", left / 86400);
}

}  // namespace weir::store
