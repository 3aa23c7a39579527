#include "store/unsynced_segments.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "store/manifest.hpp"

namespace weir::store {

void UnsyncedSegments::sync_oldest(EventSink::Stats& stats) {
    Segment segment = std::move(segments_.front());
    segments_.pop_front();
    try {
        segment.file.sync();
        segment.file.close();
    } catch (const core::RunError&) {
        set_aside(segment);
        throw;
    }
    stats.synced_bytes += segment.size.bytes - segment.on_device.bytes;
    stats.synced_events += segment.size.events - segment.on_device.events;
}

/// Nobody knows which of its bytes are on the device, and another sync would not tell. They may be of use to somebody,
/// but must not pass for written: the segment loses its name, and its events.
void UnsyncedSegments::set_aside(const Segment& segment) noexcept {
    bool renamed = true;
    try {
        rename_new(segment.file.path(), segment.file.path().string() + ".unsynced");
    } catch (const std::exception&) {
        renamed = false;
    }
    set_aside_.push_back({segment.number, segment.size.events, renamed});
}

bool UnsyncedSegments::is_set_aside(std::uint32_t number) const noexcept {
    return std::ranges::find(set_aside_, number, &SetAside::number) != set_aside_.end();
}

std::string UnsyncedSegments::set_aside_text() const {
    constexpr std::size_t named_max = 8;
    std::string text = "nobody knows what the device has of";
    for (std::size_t i = 0; i < std::min(set_aside_.size(), named_max); ++i) {
        const auto& [number, events, renamed] = set_aside_[i];
        text += fmt::format("{} {} ({} events, {})", i > 0 ? "," : "", segment_name(number), events,
                            renamed ? "now *.unsynced" : "which could not be renamed either");
    }
    if (set_aside_.size() > named_max) text += fmt::format(" and {} more", set_aside_.size() - named_max);
    return text;
}

}  // namespace weir::store
