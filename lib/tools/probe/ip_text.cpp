#include "probe/ip_text.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "wire/bytes.hpp"

namespace weir::probe {
namespace {

IpText address_of(bool v6, std::uint32_t v4, const std::byte* long_one) noexcept {
    IpText out{v6, {}};
    if (v6)
        std::memcpy(out.bytes.data(), long_one, out.bytes.size());
    else
        wire::store_be(reinterpret_cast<std::byte*>(out.bytes.data()), v4);
    return out;
}

}  // namespace

IpText IpText::source_of(const wire::Datagram& datagram) noexcept {
    return address_of(datagram.ipv6, datagram.src, datagram.ipv6 ? datagram.ipv6_src() : nullptr);
}

IpText IpText::destination_of(const wire::Datagram& datagram) noexcept {
    return address_of(datagram.ipv6, datagram.dst, datagram.ipv6 ? datagram.ipv6_dst() : nullptr);
}

std::string IpText::text() const {
    std::array<char, INET6_ADDRSTRLEN> out{};
    inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), out.data(), out.size());
    return out.data();
}

}  // namespace weir::probe
