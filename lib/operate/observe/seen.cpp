#include "observe/seen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::observe {

using wire::PacketCounter;

namespace {

struct Kind {
    PacketCounter counter;
    const char* words;
};
/// What is on a network besides a detector's data, and says something about who is there.
constexpr Kind kinds[] = {
    {PacketCounter::not_for_us_arp, "ARP"},
    {PacketCounter::not_for_us_icmp, "ICMP (ping, neighbour discovery)"},
    {PacketCounter::not_for_us_ip_protocol, "of other IP protocols (TCP, IGMP)"},
    {PacketCounter::not_for_us_ethertype, "not IP (LLDP, spanning tree)"},
    {PacketCounter::not_for_us_roce_response, "RoCE answers"},
    {PacketCounter::not_for_us_roce_request, "RoCE requests without data"},
    {PacketCounter::not_for_us_roce_management, "RoCE management"},
    {PacketCounter::not_for_us_roce_v1, "RoCEv1"},
    {PacketCounter::not_for_us_encapsulated, "in tunnels, with nothing inside that is known"},
};

void add(std::string& text, const std::string& more, const char* between = ", ") {
    if (!more.empty()) text += (text.empty() ? "" : between) + more;
}

std::string speed_text(std::uint32_t mbps) {
    if (mbps == 0) return "";
    return mbps % 1000 == 0 ? fmt::format(" at {} Gb/s", mbps / 1000) : fmt::format(" at {} Mb/s", mbps);
}

std::string link_text(const Observations::Port& port) {
    return port.link_up ? "link up" + speed_text(port.mbps) : "the link is DOWN";
}

}  // namespace

bool nothing_for_streams(const Ledger& ledger, const Observations& seen) {
    return !seen.replay && ledger.stream_packets() == 0;
}

std::string seen_text(const Ledger& ledger, const Observations& seen) {
    std::string text;
    for (const Observations::Port& port : seen.ports) {
        std::string one =
            fmt::format("port {} ({}): {}, {} packets", port.name, port.driver, link_text(port), port.received);
        if (port.missed + port.no_buffer > 0)
            one += fmt::format(", {} lost by the device", port.missed + port.no_buffer);
        if (port.answered > 0) one += fmt::format(", {} answers to ARP and ping", port.answered);
        add(text, one, "; ");
    }
    std::string what;
    for (const Kind& kind : kinds)
        if (const std::uint64_t count = ledger.get(kind.counter); count > 0)
            add(what, fmt::format("{} {}", count, kind.words));
    if (const std::uint64_t count = ledger.get(PacketCounter::unsteered); count > 0) {
        add(what, fmt::format("{} to no stream", count));
        constexpr std::size_t shown_max = 3;
        const auto& senders = ledger.unmatched.list;
        for (std::size_t i = 0; i < std::min(shown_max, senders.size()); ++i)
            what += fmt::format("{}{} ({})", i == 0 ? ": " : ", ", senders[i].what, senders[i].packets);
        if (senders.size() > shown_max) what += fmt::format(" and {} more", senders.size() - shown_max);
    }
    add(text, what, "; of all packets: ");
    return text;
}

std::string seen_words(const Ledger& ledger, const Observations& seen) {
    std::string text;
    for (const Observations::Port& port : seen.ports)
        if (!port.link_up) add(text, seen.ports.size() == 1 ? "link DOWN" : fmt::format("link of {} DOWN", port.name));
    if (const std::uint64_t count = ledger.get(PacketCounter::not_for_us_arp); count > 0)
        add(text, fmt::format("{} ARP", count));
    if (const std::uint64_t count = ledger.get(PacketCounter::unsteered); count > 0) {
        add(text, fmt::format("{} to no stream", count));
        if (!ledger.unmatched.list.empty()) text += fmt::format(" ({})", ledger.unmatched.list.front().what);
    }
    if (text.empty())
        text = ledger.received > 0 ? fmt::format("{} other packets", ledger.received) : "no packet at all";
    return text;
}

nlohmann::json seen_json(const Ledger& ledger, const Observations& seen) {
    nlohmann::json json{{"nothing_for_streams", nothing_for_streams(ledger, seen)},
                        {"text", seen_text(ledger, seen)},
                        {"stream_packets", ledger.stream_packets()},
                        {"unsteered", ledger.get(PacketCounter::unsteered)},
                        {"arp", ledger.get(PacketCounter::not_for_us_arp)},
                        {"icmp", ledger.get(PacketCounter::not_for_us_icmp)},
                        {"ports", nlohmann::json::array()},
                        {"other_senders", nlohmann::json::array()}};
    for (const Observations::Port& port : seen.ports)
        json["ports"].push_back({{"port", port.name},
                                 {"link_up", port.link_up},
                                 {"link_mbps", port.mbps},
                                 {"received", port.received},
                                 {"answered", port.answered}});
    for (const UnmatchedSender& sender : ledger.unmatched.list)
        json["other_senders"].push_back({{"to", sender.what}, {"packets", sender.packets}});
    return json;
}

}  // namespace weir::observe
