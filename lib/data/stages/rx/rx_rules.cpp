#include "stages/rx/rx_rules.hpp"

#include <rte_prefetch.h>

#include <algorithm>

#include "core/one_writer.hpp"
#include "wire/network.hpp"

namespace weir::stages {

using port::Packet;
using steer::Looks;
using steer::RuleTally;

namespace {

constexpr std::uint64_t mark_flags = RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;

/// As a device would: where drivers put the id of a rule's mark.
void set_mark(const Packet& packet, const steer::Outcome* outcome) noexcept {
    if (outcome == nullptr || !outcome->marks) {
        packet.mbuf->ol_flags &= ~mark_flags;
        return;
    }
    packet.mbuf->hash.fdir.hi = outcome->mark;
    packet.mbuf->ol_flags |= mark_flags;
}

/// Of a fragmented datagram: devices differ in whether they see its ports.
bool is_piece(const steer::PacketFields& fields, const std::byte* frame) noexcept {
    if (fields.shape.network != steer::Network::ipv4) return false;
    constexpr std::uint16_t more_and_offset = 0x3fff;
    const std::byte* ip = frame + wire::ethernet_header_bytes + fields.shape.tags * wire::vlan_tag_bytes;
    return (wire::load_be<std::uint16_t>(ip + 6) & more_and_offset) != 0;
}

/// A number from 0 to 63 that packets of one flow share.
std::uint32_t flow_hash(const steer::PacketFields& fields) noexcept {
    std::uint64_t hash = fields[steer::Field::ipv4_src].low ^ fields[steer::Field::ipv6_src].low ^
                         fields[steer::Field::ipv6_src].high ^ fields[steer::Field::udp_src].low << 32U ^
                         fields[steer::Field::udp_dst].low << 48U;
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    constexpr std::uint32_t top_six = 58;
    hash = (hash ^ hash >> 29U) * golden;
    return static_cast<std::uint32_t>(hash >> top_six);
}

}  // namespace

std::optional<std::uint32_t> mark_of(const Packet& packet) noexcept {
    if ((packet.mbuf->ol_flags & RTE_MBUF_F_RX_FDIR_ID) == 0) return std::nullopt;
    return packet.mbuf->hash.fdir.hi;
}

RxRules::RxRules(std::vector<steer::RuleRuntime*> ports)
    : ports_(std::move(ports)), tallies_(ports_.size()), until_sample_(ports_.size()) {
    for (std::size_t i = 0; i < ports_.size(); ++i)
        if (ports_[i] != nullptr) tallies_[i] = std::make_unique<RuleTally[]>(ports_[i]->classifier.rules().size());
    if (std::ranges::all_of(ports_, [](const steer::RuleRuntime* rules) { return rules == nullptr; })) ports_.clear();
}

/// The headers in one piece, as for a frame in one buffer.
steer::Classifier::Frame RxRules::frame_of(const Packet& packet, std::size_t place) noexcept {
    if (!packet.scattered()) [[likely]]
        return {port::frame_of(packet), packet.captured_bytes};
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(header_bytes, packet.mbuf->pkt_len));
    const void* const headers = ::rte_pktmbuf_read(packet.mbuf, 0, bytes, headers_[place].data());
    return {static_cast<const std::byte*>(headers), bytes};
}

/// Compares how a packet arrived with what the device was to do, if it was to do it.
void RxRules::verify(const steer::RuleRuntime& rules, const Packet& packet, const steer::Classifier::Frame& frame,
                     std::uint32_t rule) noexcept {
    const steer::PacketFields fields = steer::read_fields({frame.data, frame.bytes});
    if (is_piece(fields, frame.data)) return;
    const steer::Outcome& outcome = rules.outcomes[rule];
    const bool marked = !outcome.marks || mark_of(packet) == outcome.mark;
    const bool right = !outcome.drop && marked && (!outcome.steers || outcome.sends_to(*queue_));
    RuleTally& tally = tallies_[packet.port][rule];
    core::add(right ? tally.right : tally.wrong);
    if (!right) return;
    if (outcome.marks) core::add(tally.marked);
    tally.flows.store(tally.flows.load(std::memory_order_relaxed) | std::uint64_t{1} << flow_hash(fields),
                      std::memory_order_relaxed);
}

/// Packets of one port; returns how many are in `kept`, which may be the same place.
std::uint32_t RxRules::apply_port(std::span<Packet> packets, std::span<Packet> kept, std::size_t port) noexcept {
    const steer::RuleRuntime& rules = *ports_[port];
    std::array<steer::Classifier::Frame, burst> frames;
    std::array<std::uint32_t, burst> winners;
    for (const Packet& packet : packets) rte_prefetch0(port::frame_of(packet));
    for (std::size_t i = 0; i < packets.size(); ++i) frames[i] = frame_of(packets[i], i);
    rules.classifier.match_burst({frames.data(), packets.size()}, winners.data());
    const bool watch = queue_.has_value() && was_empty_ && rules.verify.load(std::memory_order_relaxed);
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const std::uint32_t winner = winners[i];
        const steer::Outcome* outcome = nullptr;
        if (winner != steer::Classifier::none) {
            outcome = &rules.outcomes[winner];
            core::add(tallies_[port][winner].hits);
            if (watch) verify(rules, packets[i], frames[i], winner);
        }
        if (rules.marks) set_mark(packets[i], outcome);
        if (outcome != nullptr && outcome->drop)
            dropped_[dropped_count_++] = {packets[i], winner};
        else
            kept[count++] = packets[i];
    }
    return count;
}

std::uint32_t RxRules::apply(std::span<Packet> packets, std::optional<std::uint16_t> queue, bool was_empty) noexcept {
    dropped_count_ = 0;
    queue_ = queue;
    was_empty_ = was_empty;
    std::uint32_t count = 0;
    for (std::size_t at = 0; at < packets.size();) {
        // A capture may bring packets of several ports in turn.
        const std::size_t port = packets[at].port;
        std::size_t end = at + 1;
        while (end < packets.size() && packets[end].port == port) ++end;
        const std::span<Packet> these = packets.subspan(at, end - at);
        at = end;
        const Looks looks = ports_[port] != nullptr ? ports_[port]->looks.load(std::memory_order_relaxed) : Looks::none;
        std::size_t first = 0;  // of those that are classified
        std::size_t last = 0;
        if (looks == Looks::every) {
            last = these.size();
        } else if (looks == Looks::some) {
            std::uint32_t& left = until_sample_[port];
            if (left < these.size()) {
                first = left;
                last = first + 1;
                left += steer::RuleRuntime::sample_every;
            }
            left -= static_cast<std::uint32_t>(these.size());
        }
        // Nothing has been dropped yet in most bursts: then every packet is where it belongs.
        const auto keep = [&](std::span<const Packet> some) noexcept {
            if (packets.data() + count != some.data()) std::copy(some.begin(), some.end(), packets.begin() + count);
            count += static_cast<std::uint32_t>(some.size());
        };
        keep(these.first(first));
        if (last > first) count += apply_port(these.subspan(first, last - first), packets.subspan(count), port);
        keep(these.subspan(last));
    }
    return count;
}

void RxRules::count_of_stream(const Dropped& dropped) noexcept {
    core::add(tallies_[dropped.packet.port][dropped.rule].of_streams);
}

}  // namespace weir::stages
