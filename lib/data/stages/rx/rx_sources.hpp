// The sources whose packets an rx lcore decodes: which one a packet is of, how many came, which are missing, and the
// numbers of datagrams that carry none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "assemble/sequence_tracker.hpp"
#include "core/one_writer.hpp"
#include "stages/rx/other_senders.hpp"
#include "stages/rx/rx_notes.hpp"
#include "stages/rx/stream_runtime.hpp"
#include "wire/fragment.hpp"

namespace weir::stages {

/// Written by one lcore; the counts are for any thread.
class RxSources {
public:
    RxSources(const std::vector<StreamRuntime>& streams, std::size_t sources, RxNotes& notes);

    /// Whether identify() does anything for packets of the stream.
    [[nodiscard]] static bool has_to_identify(const StreamRuntime& stream) noexcept {
        return stream.source_in_header || stream.sequenced();
    }
    /// After a packet of the stream was decoded: which source it is of, where its header says so, and whether it is new
    /// by its sequence number. Returns the decoder's verdict, or malformed_source for a source that is not configured.
    [[nodiscard]] wire::Verdict identify(std::uint16_t stream, wire::Fragment& fragment, std::uint32_t& source,
                                         wire::Verdict verdict) noexcept {
        const StreamRuntime& runtime = streams_[stream];
        if (verdict == wire::ok && !find_source(runtime, fragment, source))
            verdict = wire::PacketCounter::malformed_source;
        if (runtime.sequenced()) track(stream, fragment, source, verdict);
        return verdict;
    }
    /// For a transport that tells senders apart itself.
    void note_and_count(std::uint32_t source, const wire::Datagram& datagram) noexcept {
        if (packets(source) == 0) [[unlikely]]
            notes_.came_from(source, datagram);
        count(source);
    }
    /// Which host the datagram came from: Fragment::sender, 0 where that makes no difference, or
    /// OtherSenders::too_many.
    [[nodiscard]] std::uint8_t sender_of(std::uint32_t source, const wire::Datagram& datagram,
                                         std::uint8_t lane) noexcept {
        if (datagram.src == from_[source].first_ipv4[lane]) [[likely]]
            return 0;
        return other_sender_of(source, datagram, lane);
    }
    void count(std::uint32_t source, std::uint64_t packets = 1) noexcept { core::add(from_[source].packets, packets); }
    /// StreamRuntime::numbered_by_arrival: the number of the datagram that has just come.
    [[nodiscard]] std::uint64_t next_arrival(std::uint16_t stream) noexcept { return arrivals_[stream]++; }
    /// The same packets come once more (a looped capture).
    void begin_pass() noexcept;

    [[nodiscard]] std::uint64_t packets(std::uint32_t source) const noexcept {
        return from_[source].packets.load(std::memory_order_relaxed);
    }
    /// Beside the one that a source's first packet came from.
    [[nodiscard]] const OtherSenders& other_senders() const noexcept { return other_senders_; }
    /// Sequence numbers of this source that did not come; 0 where packets carry none.
    [[nodiscard]] std::uint64_t missing(std::uint32_t source) const noexcept {
        return missing_[source].load(std::memory_order_relaxed);
    }

private:
    [[nodiscard]] static bool find_source(const StreamRuntime& stream, const wire::Fragment& fragment,
                                          std::uint32_t& source) noexcept {
        if (!stream.source_in_header) return true;
        const std::size_t found = stream.source_ids.find(fragment.header_source);
        if (found == core::NumberIndex::absent) return false;
        source = stream.first_source + static_cast<std::uint32_t>(found);
        return true;
    }
    [[nodiscard]] std::uint8_t other_sender_of(std::uint32_t source, const wire::Datagram& datagram,
                                               std::uint8_t lane) noexcept;
    void track(std::uint16_t stream, wire::Fragment& fragment, std::uint32_t& source, wire::Verdict verdict) noexcept;

    const std::vector<StreamRuntime>& streams_;
    RxNotes& notes_;
    std::vector<std::uint64_t> arrivals_;              ///< per stream
    std::vector<assemble::SequenceTracker> trackers_;  ///< per source of the streams that are sequenced
    std::vector<std::uint32_t> first_tracker_;         ///< per stream
    OtherSenders other_senders_;
    // Per source; one writer.
    struct From {
        std::atomic<std::uint64_t> packets{0};
        /// By lane, as in wire::Datagram::src: where the first packet came from, if that is an IPv4 address.
        std::array<std::uint32_t, 2> first_ipv4{no_host, no_host};
    };
    static constexpr std::uint32_t no_host = 0xffff'ffff;  ///< no packet comes from the broadcast address
    std::vector<From> from_;
    struct First {
        std::array<HostAddress, 2> by_lane{HostAddress::nobody(), HostAddress::nobody()};
        bool any = false;  ///< StreamRuntime::any_sender
    };
    std::vector<First> first_;  ///< per source
    std::vector<std::atomic<std::uint64_t>> missing_;
};

}  // namespace weir::stages
