#include "probe/find.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "probe/rdma_finder.hpp"
#include "probe/stream_finder.hpp"

namespace weir::probe {
namespace {

std::vector<FoundFlow> flows_of(const PacketSample& sample, const std::vector<std::string>& what) {
    std::vector<FoundFlow> out;
    for (std::size_t i = 0; i < sample.flows().size(); ++i) {
        const Flow& flow = sample.flows()[i];
        FoundFlow found{.src = flow.key.src.text(),
                        .dst = flow.key.dst.text(),
                        .dport = flow.key.dport,
                        .datagrams = flow.datagrams,
                        .fragments = flow.fragments,
                        .bytes = flow.payload_bytes,
                        .payload_min = flow.payload_min,
                        .payload_max = flow.payload_max,
                        .ip_bytes_max = flow.ip_bytes_max,
                        .tunnels = flow.tunnels,
                        .sports = flow.sports.size(),
                        .what = what[i]};
        if (flow.key.vlan != no_vlan) found.vlan = flow.key.vlan;
        found.reversed = std::ranges::any_of(sample.flows(), [&](const Flow& other) {
            return other.key.src == flow.key.dst && other.key.dst == flow.key.src;
        });
        out.push_back(std::move(found));
    }
    return out;
}

std::vector<std::pair<std::string, std::uint64_t>> others_of(const PacketSample& sample) {
    std::vector<std::pair<std::string, std::uint64_t>> out;
    for (std::size_t i = 0; i < wire::packet_counters.size(); ++i)
        if (const std::uint64_t count = sample.others().get(static_cast<wire::PacketCounter>(i)); count > 0)
            out.emplace_back(wire::packet_counters[i].name, count);
    if (sample.unfollowed() > 0) out.emplace_back("datagrams of flows beyond the first 4096", sample.unfollowed());
    return out;
}

/// Whether events of both can meet: they have numbers in common.
bool meets(const FoundStream& a, const FoundStream& b) {
    return a.numbers.distinct > 0 && b.numbers.distinct > 0 && a.numbers.first <= b.numbers.last &&
           b.numbers.first <= a.numbers.last && a.numbers.stride == b.numbers.stride;
}

/// Where others send to a stream's UDP ports, it says who its own senders are; failing that, whom they send to.
void name_senders(FoundStream& found, const PacketSample& sample) {
    constexpr std::size_t named_most = 256;
    if (found.stream.transport != config::Transport::udp) return;
    std::set<IpText> from;
    std::set<IpText> to;
    for (const std::uint32_t flow : found.flows) {
        from.insert(sample.flows()[flow].key.src);
        to.insert(sample.flows()[flow].key.dst);
    }
    bool others = false;
    bool other_senders = true;
    for (std::uint32_t flow = 0; flow < sample.flows().size(); ++flow) {
        const FlowKey& key = sample.flows()[flow].key;
        if (std::ranges::find(found.stream.udp_dst, key.dport) == found.stream.udp_dst.end() ||
            std::ranges::find(found.flows, flow) != found.flows.end())
            continue;
        others = true;
        other_senders = other_senders && !from.contains(key.src);
    }
    if (!others) return;
    const std::set<IpText>& named = other_senders ? from : to;
    std::vector<config::IpAddress>& list = other_senders ? found.stream.src : found.stream.dst;
    if (!list.empty() || named.size() > named_most) return;
    for (const IpText& address : named) list.push_back(*config::parse_ip_address(address.text()));
}

/// Whether some packet could be of both.
bool claims_the_same(const FoundStream& a, const FoundStream& b) {
    const auto overlap = [](const std::vector<config::IpAddress>& first, const std::vector<config::IpAddress>& second) {
        return first.empty() || second.empty() || std::ranges::any_of(first, [&](const config::IpAddress& address) {
                   return std::ranges::find(second, address) != second.end();
               });
    };
    const bool same_port = std::ranges::any_of(a.stream.udp_dst, [&](std::uint16_t port) {
        return std::ranges::find(b.stream.udp_dst, port) != b.stream.udp_dst.end();
    });
    return same_port && overlap(a.stream.src, b.stream.src) && overlap(a.stream.dst, b.stream.dst);
}

/// Why a stream is none, whatever else is there.
std::string fault_of(const FoundStream& found) {
    if (found.packets > 0 && found.rejected >= found.packets) return "not one of its packets is accepted";
    if (found.basis != Basis::guess) return "";
    if (found.rejected * 2 > found.packets) return "it is a guess that fits the lesser part of its packets";
    return found.complete == 0 ? "it is a guess, and no event is whole with it" : "";
}

std::string reason_against(const FoundStream& other, const FoundStream& main) {
    const bool counted = other.stream.event == config::EventBy::count || main.stream.event == config::EventBy::count;
    if (other.basis == Basis::guess && main.basis != Basis::guess) return "its format is only a guess";
    if (main.stream.event == config::EventBy::arrival || other.stream.event == config::EventBy::arrival)
        return "events numbered by arrival have one source";
    if (counted || !meets(main, other)) return "its event numbers are not those of the first stream: a run of its own";
    return "";
}

/// The largest stream is proposed, and with it those that share its events.
void choose(std::vector<FoundStream>& streams) {
    const auto proposed = [](const FoundStream& found) { return found.left_out.empty(); };
    for (FoundStream& found : streams) found.left_out = fault_of(found);
    std::stable_partition(streams.begin(), streams.end(), proposed);
    for (std::size_t i = 1; i < streams.size(); ++i) {
        FoundStream& other = streams[i];
        if (!proposed(other)) break;
        other.left_out = reason_against(other, streams.front());
        const auto before = std::span(streams).first(i);
        if (proposed(other) && std::ranges::any_of(before, [&](const FoundStream& earlier) {
                return proposed(earlier) && claims_the_same(earlier, other);
            }))
            other.left_out = "it shares a UDP port with another stream, and no address tells the two apart";
    }
    std::stable_partition(streams.begin(), streams.end(), proposed);
}

void add_remarks(Findings& out) {
    if (out.cut_frames > 0)
        out.remarks.push_back(
            fmt::format("{} frames were cut when they were captured (a snapshot length, as `tcpdump -s`): "
                        "headers are read all the same, but nothing can be assembled of them",
                        out.cut_frames));
    if (out.broken_datagrams > 0)
        out.remarks.push_back(fmt::format("{} IP datagrams lack a piece", out.broken_datagrams));
    for (const FoundStream& found : out.streams)
        if (!found.left_out.empty())
            out.remarks.push_back(
                fmt::format("{} is there, too, and not proposed: {}", found.stream.format, found.left_out));
}

}  // namespace

Findings find(const PacketSample& sample, const std::vector<wire::DeclaredSpec>& declared) {
    Findings out;
    out.packets = sample.packets();
    out.bytes = sample.wire_bytes();
    out.cut_frames = sample.cut_frames();
    out.broken_datagrams = sample.broken_datagrams();
    out.first_ns = sample.first_ns();
    out.last_ns = sample.last_ns();
    std::vector<std::string> what(sample.flows().size());
    out.streams = RdmaFinder(sample).find(what);
    std::vector<std::string> udp_what;
    std::vector<FoundStream> udp = StreamFinder(sample, declared).find(udp_what);
    for (std::size_t i = 0; i < what.size(); ++i)
        if (what[i].empty()) what[i] = udp_what[i];
    // Datagrams that nobody understands are nothing beside what is understood.
    if (!out.streams.empty()) std::erase_if(udp, [](const FoundStream& each) { return each.basis == Basis::message; });
    out.streams.insert(out.streams.end(), udp.begin(), udp.end());
    std::ranges::stable_sort(out.streams, std::greater<>(),
                             [](const FoundStream& each) { return std::pair(each.basis != Basis::guess, each.bytes); });
    for (FoundStream& found : out.streams) name_senders(found, sample);
    choose(out.streams);
    out.flows = flows_of(sample, what);
    out.others = others_of(sample);
    add_remarks(out);
    return out;
}

void Findings::leave_out(std::size_t index, const std::string& why) {
    streams[index].left_out = why;
    remarks.push_back(fmt::format("{} is not proposed: {}", streams[index].stream.format, why));
    std::stable_partition(streams.begin(), streams.end(),
                          [](const FoundStream& found) { return found.left_out.empty(); });
}

std::string_view basis_text(Basis basis) noexcept {
    switch (basis) {
        case Basis::format:
            return "recognised";
        case Basis::declared:
            return "your [[format]]";
        case Basis::shipped:
            return "a [[format]] that weir ships";
        case Basis::rdma:
            return "RDMA messages";
        case Basis::guess:
            return "a guess";
        case Basis::message:
            return "not understood";
    }
    return "";
}

}  // namespace weir::probe
