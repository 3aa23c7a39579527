#include "stages/rx/rx_sources.hpp"

#include <algorithm>

namespace weir::stages {

RxSources::RxSources(const std::vector<StreamRuntime>& streams, std::size_t sources, RxNotes& notes)
    : streams_(streams), notes_(notes), arrivals_(streams.size()), from_(sources), first_(sources), missing_(sources) {
    for (const StreamRuntime& stream : streams) {
        first_tracker_.push_back(static_cast<std::uint32_t>(trackers_.size()));
        for (std::uint32_t i = 0; stream.sequenced() && i < stream.source_count; ++i)
            trackers_.emplace_back(stream.context.sequence_bits);
        for (std::uint32_t i = 0; i < stream.source_count; ++i) first_[stream.first_source + i].any = stream.any_sender;
    }
}

/// Of the first packet, and of what came from elsewhere.
std::uint8_t RxSources::other_sender_of(std::uint32_t source, const wire::Datagram& datagram,
                                        std::uint8_t lane) noexcept {
    const HostAddress host = HostAddress::of(datagram);
    First& first = first_[source];
    if (host == first.by_lane[lane]) return 0;
    if (first.by_lane[lane] == HostAddress::nobody()) {
        if (first.by_lane[1 - lane] == HostAddress::nobody()) notes_.came_from(source, datagram);
        first.by_lane[lane] = host;
        if (!datagram.ipv6 && datagram.src != 0) from_[source].first_ipv4[lane] = datagram.src;  // 0 is all of IPv6
        return 0;
    }
    return first.any ? std::uint8_t{0} : other_senders_.add(source, host);
}

/// Follows the sequence numbers of a source. Whatever becomes of a packet, one that could be read has arrived.
void RxSources::track(std::uint16_t stream, wire::Fragment& fragment, std::uint32_t& source,
                      wire::Verdict verdict) noexcept {
    const StreamRuntime& runtime = streams_[stream];
    if (verdict == wire::PacketCounter::control) {
        if (!find_source(runtime, fragment, source)) {
            fragment.in_sequence = false;
            return;
        }
        count(source);
    } else if (verdict != wire::ok) {
        return;
    }
    assemble::SequenceTracker& tracker = trackers_[first_tracker_[stream] + source - runtime.first_source];
    fragment.fresh = tracker.add(fragment.sequence) == assemble::SequenceTracker::Seen::fresh;
    missing_[source].store(tracker.missing(), std::memory_order_relaxed);
}

void RxSources::begin_pass() noexcept {
    std::ranges::fill(arrivals_, 0);
    for (assemble::SequenceTracker& tracker : trackers_) tracker.begin_anew();
}

}  // namespace weir::stages
