// Two streams may not claim the same packets: which of them got one would depend on an order that nobody wrote down.
#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"

namespace weir::config::detail {

namespace {

constexpr std::uint16_t roce_udp_port = 4791;  // IANA's assignment for RoCEv2

/// Whether some address satisfies both lists; an empty one means any.
bool overlap(const std::vector<IpAddress>& a, const std::vector<IpAddress>& b) {
    if (a.empty() || b.empty()) return true;
    return std::any_of(a.begin(), a.end(),
                       [&b](const IpAddress& address) { return std::find(b.begin(), b.end(), address) != b.end(); });
}

template <class T>
std::optional<T> common(std::vector<T> a, std::vector<T> b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<T> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both.empty() ? std::nullopt : std::optional<T>(both.front());
}

void check_pair(const StreamConfig& first, const StreamConfig& second, TableReader& table) {
    if (first.node != second.node) return;
    if (first.port != second.port || !overlap(first.dst, second.dst) || !overlap(first.src, second.src)) return;
    if (first.mark && second.mark && first.mark != second.mark) return;
    const std::uint32_t line = first.place.line;
    if (first.transport == Transport::roce && second.transport == Transport::roce) {
        if (const auto qp = common(first.qp, second.qp))
            table.wrong("qp", fmt::format("{:#x}, which the stream at line {} has too", *qp, line),
                        "each queue pair of a destination once; or src, dst or mark that tell the streams apart");
        return;
    }
    if (first.transport == Transport::udp && second.transport == Transport::udp) {
        if (const auto port = common(first.udp_dst, second.udp_dst))
            table.wrong("udp_dst", fmt::format("{}, which the stream at line {} has too", *port, line),
                        "each UDP port once; or src, dst or mark that tell the streams apart");
        return;
    }
    const StreamConfig& udp = first.transport == Transport::udp ? first : second;
    if (std::find(udp.udp_dst.begin(), udp.udp_dst.end(), roce_udp_port) != udp.udp_dst.end())
        table.wrong(second.transport == Transport::udp ? "udp_dst" : "transport",
                    fmt::format("UDP port 4791 in one stream and \"roce\" in another (line {})", line),
                    "4791 belongs to RoCEv2; or src, dst or mark that tell the streams apart");
}

}  // namespace

void check_claims(const RunConfig& run, std::vector<TableReader>& readers) {
    for (std::size_t i = 0; i < run.streams.size(); ++i)
        for (std::size_t j = i + 1; j < run.streams.size(); ++j) check_pair(run.streams[i], run.streams[j], readers[j]);
}

}  // namespace weir::config::detail
