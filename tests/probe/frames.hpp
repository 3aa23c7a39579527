// Frames that the tests of this room look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/encode.hpp"

namespace weir::probe::test {

using Bytes = std::vector<std::byte>;

inline void put_be(Bytes& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = bytes; i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// Ethernet, IPv4 without a checksum (as on a sender whose NIC fills it in) and UDP, from 10.1.0.`host`.
inline Bytes udp_frame(std::span<const std::byte> payload, std::uint16_t port, std::uint8_t host = 10) {
    Bytes out(12, std::byte{2});
    put_be(out, 0x0800, 2);
    put_be(out, 0x4500, 2);
    put_be(out, 28 + payload.size(), 2);
    put_be(out, 0x0000'4000'4011'0000, 8);
    put_be(out, 0x0a01'0000U + host, 4);
    put_be(out, 0x0a01'0002, 4);
    put_be(out, 30000, 2);
    put_be(out, port, 2);
    put_be(out, 8 + payload.size(), 2);
    put_be(out, 0, 2);
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

}  // namespace weir::probe::test
