#include "probe/packet_sample.hpp"

#include <algorithm>

#include "wire/network.hpp"

namespace weir::probe {
namespace {

constexpr std::uint32_t frame_bytes_most = 1U << 17U;  ///< that is looked at of one that was cut

/// Of the outermost tag.
std::uint16_t vlan_of(std::span<const std::byte> frame) {
    if (frame.size() < wire::ethernet_header_bytes + wire::vlan_tag_bytes) return no_vlan;
    const auto type = wire::load_be<std::uint16_t>(frame.data() + wire::ethernet_header_bytes - 2);
    if (type != wire::ethertype_vlan && type != wire::ethertype_service_vlan) return no_vlan;
    return wire::load_be<std::uint16_t>(frame.data() + wire::ethernet_header_bytes) & 0xfffU;
}

/// A frame that may have another inside; it was parsed as far as it was captured.
bool may_be_opened(std::span<const std::byte> frame, wire::Verdict verdict, const wire::Datagram& datagram) {
    if (verdict == wire::ok) return datagram.dport == wire::vxlan_port || datagram.dport == wire::vxlan_port_of_linux;
    return wire::encapsulation_of(frame).has_value();
}

}  // namespace

void PacketSample::add(std::span<const std::byte> frame, std::uint32_t wire_bytes, core::TimeNs time_ns) {
    if (full()) return;
    if (packets_ == 0) first_ns_ = last_ns_ = time_ns;
    first_ns_ = std::min(first_ns_, time_ns);
    last_ns_ = std::max(last_ns_, time_ns);
    ++packets_;
    bytes_ += wire_bytes;
    if (frame.size() < wire_bytes) ++cut_frames_;
    frame_bytes_ = wire_bytes;
    wire::Datagram datagram;
    wire::Verdict verdict = parse(frame, wire_bytes, datagram);
    tunnels_ = {};
    if (may_be_opened(frame, verdict, datagram)) {
        const wire::Decapsulated inside = take_off(frame, wire_bytes);
        if (inside.verdict != wire::ok) return others_.add(inside.verdict);
        for (std::uint32_t layer = 0; layer < inside.layers; ++layer) tunnels_.add(inside.by[layer]);
        if (inside.layers > 0) {
            frame = std::span(opened_).subspan(inside.front_bytes, inside.captured_bytes);
            verdict = parse(frame, inside.wire_bytes, datagram = {});
        }
    }
    if (verdict == wire::ok)
        add_datagram(datagram, {datagram.payload, readable_bytes_}, vlan_of(frame), time_ns);
    else if (verdict == wire::Verdict::malformed_ip_fragment && datagram.fragment)
        add_piece(datagram, vlan_of(frame), time_ns);
    else
        others_.add(verdict);
}

/// The frame inside is in `opened_` then. Of one that was cut the headers say how long it was; it stays a cut one.
wire::Decapsulated PacketSample::take_off(std::span<const std::byte> frame, std::uint32_t wire_bytes) {
    const auto captured = static_cast<std::uint32_t>(frame.size());
    const bool stretch = captured < wire_bytes && wire_bytes <= frame_bytes_most;
    opened_.assign(frame.begin(), frame.end());
    if (stretch) opened_.resize(wire_bytes);
    wire::Decapsulated inside =
        wire::decapsulate(opened_.data(), static_cast<std::uint32_t>(opened_.size()), wire_bytes, wire::Tunnels::all());
    if (stretch && inside.layers > 0)
        inside.captured_bytes = std::min(inside.captured_bytes, captured - std::min(captured, inside.front_bytes));
    return inside;
}

/// A frame that was cut is read as far as it goes: its headers say how long it was.
wire::Verdict PacketSample::parse(std::span<const std::byte> frame, std::uint32_t wire_bytes, wire::Datagram& out) {
    const auto captured = static_cast<std::uint32_t>(frame.size());
    frame_cut_ = false;
    const wire::Verdict verdict = wire::parse_frame(frame.data(), captured, wire_bytes, out);
    readable_bytes_ = out.payload_bytes;
    if (verdict != wire::Verdict::malformed_truncated || captured >= wire_bytes || wire_bytes > frame_bytes_most)
        return verdict;
    stretched_.assign(frame.begin(), frame.end());
    stretched_.resize(wire_bytes);
    out = {};
    const wire::Verdict whole = wire::parse_frame(stretched_.data(), wire_bytes, wire_bytes, out);
    const bool piece = whole == wire::Verdict::malformed_ip_fragment && out.fragment;
    if (whole != wire::ok && !piece) return verdict;
    const auto headers = static_cast<std::uint32_t>(out.payload - stretched_.data());
    // The first piece of a datagram has the UDP header.
    if (captured < headers + (piece ? wire::udp_header_bytes : 0)) return verdict;
    frame_cut_ = true;
    readable_bytes_ = std::min(out.payload_bytes, captured - headers);
    return whole;
}

void PacketSample::add_piece(const wire::Datagram& piece, std::uint16_t vlan, core::TimeNs time_ns) {
    wire::Datagram datagram = piece;
    const std::uint32_t readable =
        frame_cut_ ? std::min(limits_.head_bytes, readable_bytes_ - wire::udp_header_bytes) : limits_.head_bytes;
    const auto whole = join_.add(datagram, readable, time_ns);
    if (!whole) return;
    datagram.sport = whole->sport;
    datagram.dport = whole->dport;
    datagram.payload_bytes = whole->payload_bytes;
    // As in a run: nobody checks the iCRC of pieces.
    if (datagram.dport == wire::roce_port) return others_.add(wire::Verdict::ip_fragment_roce);
    frame_cut_ = frame_cut_ || whole->head.size() < std::min(limits_.head_bytes, whole->payload_bytes);
    add_datagram(datagram, whole->head, vlan, whole->first_ns);
    if (const auto at =
            index_.find({IpText::source_of(datagram), IpText::destination_of(datagram), datagram.dport, vlan});
        at != index_.end())
        flows_[at->second].fragments += whole->pieces;
}

Flow* PacketSample::flow_of(const wire::Datagram& datagram, std::uint16_t vlan, core::TimeNs time_ns) {
    const FlowKey key{IpText::source_of(datagram), IpText::destination_of(datagram), datagram.dport, vlan};
    auto at = index_.find(key);
    if (at == index_.end()) {
        if (flows_.size() >= limits_.flows) return nullptr;
        at = index_.emplace(key, static_cast<std::uint32_t>(flows_.size())).first;
        flows_.push_back({.key = key, .payload_min = datagram.payload_bytes, .first_ns = time_ns, .last_ns = time_ns});
    }
    return &flows_[at->second];
}

void PacketSample::add_datagram(const wire::Datagram& datagram, std::span<const std::byte> head, std::uint16_t vlan,
                                core::TimeNs time_ns) {
    Flow* flow = flow_of(datagram, vlan, time_ns);
    if (flow == nullptr) {
        ++unfollowed_;
        return;
    }
    constexpr std::size_t sports_max = 16;
    ++flow->datagrams;
    flow->payload_bytes += datagram.payload_bytes;
    flow->wire_bytes += frame_bytes_;
    flow->payload_min = std::min(flow->payload_min, datagram.payload_bytes);
    flow->payload_max = std::max(flow->payload_max, datagram.payload_bytes);
    flow->tunnels.add(tunnels_);
    flow->ip_bytes_max = std::max(flow->ip_bytes_max, datagram.ip_bytes);
    flow->first_ns = std::min(flow->first_ns, time_ns);
    flow->last_ns = std::max(flow->last_ns, time_ns);
    if (flow->sports.size() < sports_max) flow->sports.insert(datagram.sport);
    const auto index = static_cast<std::uint32_t>(flow - flows_.data());
    if (datagram.dport == wire::roce_port) return add_request(datagram, index, time_ns);
    const std::span<const std::byte> kept = head.first(std::min<std::size_t>(head.size(), limits_.head_bytes));
    datagrams_.push_back(
        {time_ns, index, datagram.payload_bytes, static_cast<std::uint32_t>(kept.size()), keep(kept), frame_cut_});
}

void PacketSample::add_request(const wire::Datagram& datagram, std::uint32_t flow, core::TimeNs time_ns) {
    constexpr std::size_t qps_max = 1024;
    SampledRequest request{.time_ns = time_ns, .flow = flow, .cut = frame_cut_, .packet = {}};
    if (frame_cut_ && (readable_bytes_ < wire::roce_bth_bytes ||
                       wire::roce_headers_end(datagram) > datagram.payload + readable_bytes_))
        return others_.add(wire::Verdict::malformed_truncated);
    // The checksum goes over what was cut off, too.
    wire::Verdict verdict = wire::decode_roce(datagram, !frame_cut_, request.packet);
    if (verdict == wire::Verdict::malformed_bad_icrc) {
        request.bad_icrc = true;
        verdict = wire::decode_roce(datagram, false, request.packet);
        others_.add(wire::Verdict::malformed_bad_icrc);
    }
    if (verdict == wire::Verdict::not_for_us_roce_response)
        if (auto& known = answers_[{IpText::source_of(datagram), IpText::destination_of(datagram)}];
            known.size() < qps_max)
            known.insert(request.packet.qp);
    if (verdict != wire::ok) return others_.add(verdict);
    constexpr std::uint32_t head_bytes = 64;
    const auto headers = static_cast<std::uint32_t>(request.packet.payload - datagram.payload);
    const std::uint32_t there = frame_cut_ ? readable_bytes_ - std::min(readable_bytes_, headers) : head_bytes;
    const std::span<const std::byte> kept(request.packet.payload, std::min({request.packet.bytes, head_bytes, there}));
    request.head_bytes = static_cast<std::uint32_t>(kept.size());
    request.head_at = keep(kept);
    request.packet.payload = nullptr;
    requests_.push_back(request);
}

std::uint64_t PacketSample::keep(std::span<const std::byte> head) {
    const std::uint64_t at = heads_.size();
    heads_.insert(heads_.end(), head.begin(), head.end());
    return at;
}

}  // namespace weir::probe
