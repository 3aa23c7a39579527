// A frame as an rx lcore gets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "../wire/wire_support.hpp"
#include "port/buffers.hpp"
#include "wire/network.hpp"

namespace weir::stages::test {

/// A packet of a port, with nothing after its last byte.
struct Received {
    explicit Received(const wire::test::Bytes& frame, std::uint8_t port = 0) : Received(frame, frame.size(), port) {}
    Received(const wire::test::Bytes& frame, std::size_t captured, std::uint8_t port)
        : bytes(std::span<const std::byte>(frame).first(captured)) {
        mbuf.buf_addr = const_cast<std::byte*>(bytes.data());
        mbuf.nb_segs = 1;
        packet.mbuf = &mbuf;
        packet.wire_bytes = static_cast<std::uint32_t>(frame.size());
        packet.captured_bytes = static_cast<std::uint16_t>(captured);
        packet.port = port;
    }
    [[nodiscard]] wire::Verdict parse(wire::Datagram& out) const {
        return wire::parse_any_frame(bytes.data(), packet.captured_bytes, packet.wire_bytes, out);
    }

    wire::test::Exact bytes;
    rte_mbuf mbuf{};
    port::Packet packet;
};

}  // namespace weir::stages::test
