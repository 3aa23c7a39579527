#include "probe/find.hpp"

#include <fmt/format.h>

#include <algorithm>

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

/// The largest stream is proposed, and with it those that share its events.
void choose(std::vector<FoundStream>& streams) {
    if (streams.empty()) return;
    const FoundStream& main = streams.front();
    for (FoundStream& other : streams) {
        if (&other == &main) continue;
        const bool counted =
            other.stream.event == config::EventBy::count || main.stream.event == config::EventBy::count;
        if (other.basis == Basis::guess && main.basis != Basis::guess)
            other.left_out = "its format is only a guess";
        else if (main.stream.event == config::EventBy::arrival || other.stream.event == config::EventBy::arrival)
            other.left_out = "events numbered by arrival have one source";
        else if (counted || !meets(main, other))
            other.left_out = "its event numbers are not those of the first stream: a run of its own";
    }
    std::stable_partition(streams.begin(), streams.end(),
                          [](const FoundStream& found) { return found.left_out.empty(); });
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
    choose(out.streams);
    out.flows = flows_of(sample, what);
    out.others = others_of(sample);
    add_remarks(out);
    return out;
}

std::string_view basis_text(Basis basis) noexcept {
    switch (basis) {
        case Basis::format:
            return "recognised";
        case Basis::declared:
            return "your [[format]]";
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
