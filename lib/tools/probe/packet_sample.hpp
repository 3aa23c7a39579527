// A sample of what goes over a port or lies in a capture: fed frame by frame, it keeps the beginning of each datagram
// and what there is to know of its sender and receiver, in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "probe/fragment_join.hpp"
#include "probe/ip_text.hpp"
#include "wire/decapsulation.hpp"
#include "wire/packet_counter.hpp"
#include "wire/roce.hpp"

namespace weir::probe {

struct SampleLimits {
    std::uint64_t packets = 200'000;
    std::uint64_t bytes = 2'000'000'000;  ///< on the wire
    std::uint32_t flows = 4096;           ///< further ones are counted, and not looked at
    std::uint32_t head_bytes = 528;       ///< kept of a datagram: the longest header that any format reads
};

inline constexpr std::uint16_t no_vlan = 0xffff;

/// Who sends to whom. Source ports are left out: some senders change them from event to event.
struct FlowKey {
    IpText src;
    IpText dst;
    std::uint16_t dport = 0;
    std::uint16_t vlan = no_vlan;  ///< id of the outermost tag

    auto operator<=>(const FlowKey&) const = default;
};

struct Flow {
    FlowKey key;
    std::uint64_t datagrams = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t wire_bytes = 0;
    std::uint64_t fragments = 0;  ///< packets that were pieces of its datagrams
    std::uint32_t payload_min = 0;
    std::uint32_t payload_max = 0;
    wire::Tunnels tunnels{};           ///< that were taken off its packets
    std::uint32_t ip_bytes_max = 0;    ///< the largest IP packet, of a fragmented datagram the piece that came last
    std::set<std::uint16_t> sports{};  ///< of the senders, the first few
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
};

/// A UDP datagram that is no RoCE.
struct SampledDatagram {
    core::TimeNs time_ns = 0;
    std::uint32_t flow = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t head_bytes = 0;
    std::uint64_t head_at = 0;
    bool cut = false;  ///< the capture has only the beginning of its frame
};

/// A SEND or WRITE request. Pointers in `packet` mean nothing any more.
struct SampledRequest {
    core::TimeNs time_ns = 0;
    std::uint32_t flow = 0;
    bool bad_icrc = false;
    bool cut = false;              ///< the capture has only the beginning of its frame
    std::uint32_t head_bytes = 0;  ///< of the payload
    std::uint64_t head_at = 0;
    wire::RocePacket packet;
};

class PacketSample {
public:
    explicit PacketSample(const SampleLimits& limits = {}) : limits_(limits) {}

    /// One Ethernet frame, `wire_bytes` long, of which `frame` was captured. Whatever is in it; what a mirror has put
    /// around it is taken off.
    void add(std::span<const std::byte> frame, std::uint32_t wire_bytes, core::TimeNs time_ns);
    /// As much as was asked for: further frames change nothing.
    [[nodiscard]] bool full() const noexcept { return packets_ >= limits_.packets || bytes_ >= limits_.bytes; }

    [[nodiscard]] std::span<const Flow> flows() const noexcept { return flows_; }
    [[nodiscard]] std::span<const SampledDatagram> datagrams() const noexcept { return datagrams_; }
    [[nodiscard]] std::span<const SampledRequest> requests() const noexcept { return requests_; }
    /// The queue pairs that acknowledgements from one to the other name: those of who sends the requests.
    [[nodiscard]] const std::set<std::uint32_t>* acknowledged(const IpText& from, const IpText& to) const {
        const auto at = answers_.find({from, to});
        return at == answers_.end() ? nullptr : &at->second;
    }
    template <class Sampled>
    [[nodiscard]] std::span<const std::byte> head(const Sampled& of) const noexcept {
        return std::span(heads_).subspan(of.head_at, of.head_bytes);
    }

    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
    [[nodiscard]] std::uint64_t wire_bytes() const noexcept { return bytes_; }
    [[nodiscard]] core::TimeNs first_ns() const noexcept { return first_ns_; }
    [[nodiscard]] core::TimeNs last_ns() const noexcept { return last_ns_; }
    /// Frames of which the capture kept only a part.
    [[nodiscard]] std::uint64_t cut_frames() const noexcept { return cut_frames_; }
    /// Datagrams of which a piece never came.
    [[nodiscard]] std::uint64_t broken_datagrams() const noexcept { return join_.lost(); }
    /// Frames that are nothing a format could be in, by reason: ARP, damaged, RoCE acknowledgements and so on.
    [[nodiscard]] const wire::PacketTally& others() const noexcept { return others_; }
    /// Of flows beyond the limit.
    [[nodiscard]] std::uint64_t unfollowed() const noexcept { return unfollowed_; }

private:
    [[nodiscard]] wire::Verdict parse(std::span<const std::byte> frame, std::uint32_t wire_bytes, wire::Datagram& out);
    [[nodiscard]] wire::Decapsulated take_off(std::span<const std::byte> frame, std::uint32_t wire_bytes);
    void add_piece(const wire::Datagram& piece, std::uint16_t vlan, core::TimeNs time_ns);
    void add_datagram(const wire::Datagram& datagram, std::span<const std::byte> head, std::uint16_t vlan,
                      core::TimeNs time_ns);
    void add_request(const wire::Datagram& datagram, std::uint32_t flow, core::TimeNs time_ns);
    [[nodiscard]] Flow* flow_of(const wire::Datagram& datagram, std::uint16_t vlan, core::TimeNs time_ns);
    [[nodiscard]] std::uint64_t keep(std::span<const std::byte> head);

    SampleLimits limits_;
    std::map<FlowKey, std::uint32_t> index_;
    std::vector<Flow> flows_;
    std::vector<SampledDatagram> datagrams_;
    std::vector<SampledRequest> requests_;
    std::vector<std::byte> heads_;
    std::map<std::pair<IpText, IpText>, std::set<std::uint32_t>> answers_;
    FragmentJoin join_;
    wire::PacketTally others_{};
    std::uint64_t packets_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t cut_frames_ = 0;
    std::uint64_t unfollowed_ = 0;
    // Of the frame that is looked at.
    std::uint32_t frame_bytes_ = 0;     ///< on the wire
    bool frame_cut_ = false;            ///< not all of it was captured
    std::uint32_t readable_bytes_ = 0;  ///< captured of what is behind the headers
    wire::Tunnels tunnels_;             ///< that were taken off it
    std::vector<std::byte> opened_;     ///< a frame that was taken out of another
    std::vector<std::byte> stretched_;  ///< a frame that was cut, with zeros for the rest
    core::TimeNs first_ns_ = 0;
    core::TimeNs last_ns_ = 0;
};

}  // namespace weir::probe
