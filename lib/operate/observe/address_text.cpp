#include "observe/address_text.hpp"

#include <arpa/inet.h>

#include <array>

namespace weir::observe {

std::string address_text(const stages::SenderAddress& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(address.ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text.data(), text.size());
    return text.data();
}

std::string address_text(const stages::HostAddress& address) {
    stages::SenderAddress bytes{!address.is_ipv4(), {}};
    if (bytes.ipv6) wire::store_be(reinterpret_cast<std::byte*>(bytes.bytes.data()), address.high);
    const std::uint64_t low = bytes.ipv6 ? address.low : address.low << 32U;
    wire::store_be(reinterpret_cast<std::byte*>(bytes.bytes.data()) + (bytes.ipv6 ? 8 : 0), low);
    return address_text(bytes);
}

}  // namespace weir::observe
