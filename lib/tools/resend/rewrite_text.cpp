#include "resend/rewrite_text.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "core/error.hpp"

namespace weir::resend {

namespace {

constexpr std::string_view device_prefix = "device:";
constexpr std::string_view udp_prefix = "udp:";

std::optional<std::uint16_t> port_number(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
    return port;
}

std::uint16_t port_in(std::string_view text, std::string_view whole) {
    const auto port = port_number(text);
    if (!port) throw core::UsageError(fmt::format("--to {}: found port '{}'; accepted: 1 to 65535", whole, text));
    return *port;
}

/// What follows "udp:".
void take_host(std::string_view text, std::string_view whole, Destination& out) {
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        const std::string_view rest = close == std::string_view::npos ? "" : text.substr(close + 1);
        if (close == std::string_view::npos || (!rest.empty() && !rest.starts_with(':')))
            throw core::UsageError(fmt::format("--to {}: accepted: udp:[IPV6] or udp:[IPV6]:PORT", whole));
        out.host = text.substr(1, close - 1);
        if (!rest.empty()) out.port = port_in(rest.substr(1), whole);
        return;
    }
    const std::size_t colon = text.find(':');
    // An IPv6 address without brackets has more than one.
    const bool has_port = colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos;
    out.host = has_port ? text.substr(0, colon) : text;
    if (has_port) out.port = port_in(text.substr(colon + 1), whole);
}

constexpr std::string_view rewrite_accepted =
    "accepted, with commas between: dst-mac=02:00:00:00:00:02, src-mac=..., dst-ip=10.1.0.2, src-ip=... (IPv4, IPv6 or "
    "one of each), dst-port=50001 (all) or dst-port=50001:60001 (one; any number of them)";

[[noreturn]] void refuse(std::string_view item, std::string_view why) {
    throw core::UsageError(fmt::format("--rewrite: {}: {}; {}", item, why, rewrite_accepted));
}

template <class Value>
void set_once(std::optional<Value>& place, const Value& value, std::string_view item) {
    if (place) refuse(item, "that is given twice");
    place = value;
}

std::array<std::uint8_t, 6> parse_mac(std::string_view text, std::string_view item) {
    std::array<std::uint8_t, 6> mac{};
    for (std::size_t i = 0; i < mac.size(); ++i) {
        const char* const begin = text.data() + i * 3;
        if (text.size() != 17 || (i > 0 && *(begin - 1) != ':')) refuse(item, "no MAC address");
        if (std::from_chars(begin, begin + 2, mac[i], 16).ptr != begin + 2) refuse(item, "no MAC address");
    }
    return mac;
}

void set_address(std::optional<std::array<std::uint8_t, 4>>& ipv4, std::optional<std::array<std::uint8_t, 16>>& ipv6,
                 const std::string& text, std::string_view item) {
    std::array<std::uint8_t, 4> four{};
    std::array<std::uint8_t, 16> sixteen{};
    if (::inet_pton(AF_INET, text.c_str(), four.data()) == 1) return set_once(ipv4, four, item);
    if (::inet_pton(AF_INET6, text.c_str(), sixteen.data()) == 1) return set_once(ipv6, sixteen, item);
    refuse(item, "no IPv4 and no IPv6 address");
}

wire::Rewrite::Port parse_ports(std::string_view text, std::string_view item) {
    const std::size_t colon = text.find(':');
    const auto to = port_number(colon == std::string_view::npos ? text : text.substr(colon + 1));
    const auto from =
        colon == std::string_view::npos ? std::optional<std::uint16_t>(0) : port_number(text.substr(0, colon));
    if (!to || !from) refuse(item, "no UDP port from 1 to 65535, and no two of them");
    return {*from, *to};
}

void take_item(std::string_view item, wire::Rewrite& out) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) refuse(item, "not KEY=VALUE");
    const std::string_view key = item.substr(0, equals);
    const std::string value(item.substr(equals + 1));
    if (key == "dst-mac") return set_once(out.dst_mac, parse_mac(value, item), item);
    if (key == "src-mac") return set_once(out.src_mac, parse_mac(value, item), item);
    if (key == "dst-ip") return set_address(out.dst_ipv4, out.dst_ipv6, value, item);
    if (key == "src-ip") return set_address(out.src_ipv4, out.src_ipv6, value, item);
    if (key != "dst-port") refuse(item, "not known");
    const wire::Rewrite::Port port = parse_ports(value, item);
    const auto same = [&](const wire::Rewrite::Port& other) { return other.from == port.from; };
    if (std::ranges::any_of(out.dst_ports, same)) refuse(item, "that port is given twice");
    // The one for all comes last, so that it is for all others.
    out.dst_ports.insert(port.from == 0 ? out.dst_ports.end() : out.dst_ports.begin(), port);
}

}  // namespace

bool is_destination(const std::string& text) noexcept {
    return text.starts_with(device_prefix) || text.starts_with(udp_prefix);
}

Destination parse_destination(const std::string& text) {
    Destination out;
    if (text.starts_with(device_prefix)) {
        out.device = text.substr(device_prefix.size());
        if (out.device.empty() || out.device.starts_with(','))
            throw core::UsageError(
                fmt::format("--to {}: which one? device:VDEV[,ARGUMENTS] or device:PCI-ADDRESS is accepted", text));
        return out;
    }
    take_host(std::string_view(text).substr(udp_prefix.size()), text, out);
    if (out.host.empty()) throw core::UsageError(fmt::format("--to {}: udp:HOST or udp:HOST:PORT is accepted", text));
    return out;
}

wire::Rewrite parse_rewrite(const std::vector<std::string>& texts) {
    wire::Rewrite out;
    for (const std::string& text : texts) {
        std::string_view rest = text;
        for (bool more = true; more;) {
            const std::size_t comma = rest.find(',');
            take_item(rest.substr(0, comma), out);
            more = comma != std::string_view::npos;
            if (more) rest.remove_prefix(comma + 1);
        }
    }
    return out;
}

}  // namespace weir::resend
