#include "web/url.hpp"

#include <algorithm>
#include <charconv>

namespace weir::web {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool in_host(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

/// With a zone, as in "fe80::1%eth0".
bool in_ipv6(char c) {
    return in_host(c) || c == ':' || c == '%';
}

std::optional<std::uint16_t> port_number(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return port;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (text.size() - i < 3) return {};
            const int high = hex_value(text[i + 1]);
            const int low = hex_value(text[i + 2]);
            if (high < 0 || low < 0) return {};
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0') return {};
        out.push_back(c);
    }
    return out;
}

std::optional<std::vector<std::string_view>> path_parts(std::string_view path) {
    constexpr std::size_t parts_max = 32;
    std::vector<std::string_view> parts;
    if (path.starts_with('/')) path.remove_prefix(1);
    if (path == "/") return {};
    if (path.ends_with('/')) path.remove_suffix(1);
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/'), path.size());
        const std::string_view part = path.substr(0, end);
        if (part.empty() || part == "." || part == ".." || parts.size() == parts_max) return {};
        parts.push_back(part);
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return parts;
}

std::optional<HostPort> parse_host_port(std::string_view text) {
    HostPort out;
    std::string_view host = text;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return {};
        host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
    } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        rest = text.substr(colon);
    }
    for (const char c : host) out.host.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    if (out.host.empty() || !std::ranges::all_of(out.host, text.starts_with('[') ? in_ipv6 : in_host)) return {};
    if (rest.empty()) return out;
    if (!rest.starts_with(':')) return {};
    out.port = port_number(rest.substr(1));
    return out.port ? std::optional(out) : std::nullopt;
}

}  // namespace weir::web
