#include "store/payload_placer.hpp"

#include <algorithm>

namespace weir::store {

void PayloadPlacer::take(std::span<const std::byte> payload) {
    while (!payload.empty() && source_ < event_.sources.size()) {
        const SourceInfo& source = event_.sources[source_];
        if (taken_ == event_.content_bytes(source)) {
            ++source_;
            gap_ = offset_ = taken_ = 0;
            continue;
        }
        const bool gaps = !event_.reduced();
        while (gaps && gap_ < source.missing.size() && source.missing[gap_].offset == offset_)
            offset_ += source.missing[gap_++].bytes;
        std::uint64_t count = std::min<std::uint64_t>(payload.size(), event_.content_bytes(source) - taken_);
        if (gaps && gap_ < source.missing.size()) count = std::min(count, source.missing[gap_].offset - offset_);
        sink_(source_, offset_, payload.first(count));
        offset_ += count;
        taken_ += count;
        payload = payload.subspan(count);
    }
}

}  // namespace weir::store
