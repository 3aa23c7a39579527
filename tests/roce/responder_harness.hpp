// A responder in front of what makes messages, as an rx lcore has them: what is let through of a reliable connection
// goes to the in-order receiver, of others to the listener; the rest is counted.
#pragma once

#include "listener_harness.hpp"
#include "roce/responder/responder.hpp"

namespace weir::roce::test {

inline QueuePair rc_pair() {
    QueuePair qp;
    qp.peer_qp = 0x77;
    qp.psn = 100;
    qp.path_mtu = 256;
    qp.max_message_bytes = 4096;
    qp.region_count = 1;
    qp.regions[0] = {.va = 0x10000, .bytes = 0x1000, .rkey = 5, .stride = 0x1000};
    return qp;
}

/// A packet of the peer; PMTU 256.
struct P {
    wire::RocePacket packet;
    explicit P(wire::RocePlace place, std::uint32_t psn, std::uint32_t bytes, bool write = false) {
        static const std::vector<std::byte> payload(8192);
        packet.transport = wire::RoceTransport::rc;
        packet.place = place;
        packet.psn = psn & 0xffffff;
        packet.bytes = bytes;
        packet.payload = payload.data();
        packet.is_write = write;
        packet.va = 0x10000;
        packet.rkey = 5;
        packet.dma_length = bytes;
        packet.address = packet.address_pair = 1;
    }
    P& ask() { return packet.ack_request = true, *this; }
    P& imm(std::uint32_t value) { return packet.has_immediate = true, packet.immediate = value, *this; }
    P& length(std::uint32_t bytes) { return packet.dma_length = bytes, *this; }
    P& at(std::uint64_t va, std::uint32_t rkey) { return packet.va = va, packet.rkey = rkey, *this; }
    P& over(wire::RoceTransport transport) { return packet.transport = transport, *this; }
    P& opcode(std::uint8_t value) { return packet.opcode = value, *this; }
    P& partition(std::uint16_t value) { return packet.pkey = value, *this; }
    P& from(std::uint64_t address) { return packet.address = packet.address_pair = address, *this; }
};
using enum wire::RocePlace;

class Gate {
public:
    explicit Gate(const QueuePair& qp, NumberBy number_by = NumberBy::count)
        : responder({.sources = {{.source = 0, .queue_pair = qp, .ready = true}}}),
          harness(HarnessConfig{.sources = {{.number_by = number_by, .max_message_bytes = qp.max_message_bytes}},
                                .in_order = qp.service == Service::rc}) {}

    Ruling send(const P& p, wire::Verdict decoded = wire::ok, Room room = {}) { return send(p.packet, decoded, room); }
    Ruling send(const wire::RocePacket& packet, wire::Verdict decoded = wire::ok, Room room = {}) {
        ++now;
        const Ruling ruling = responder.rule(0, packet, decoded, room, now);
        if (ruling.accepted())
            harness.add(packet, now);
        else
            refused.add(ruling.counter);
        if (ruling.failed) harness.forget(now);
        return ruling;
    }
    [[nodiscard]] Responder::Status status() const { return responder.status(0); }

    core::TimeNs now = 0;
    Responder responder;
    Harness harness;
    wire::PacketTally refused;
};

}  // namespace weir::roce::test
