// What an rx lcore takes off the packets that a port or a capture has just brought, where the port is asked to
// (`decapsulate`): everything after it sees the frames inside, as if they had come alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "port/buffers.hpp"
#include "wire/decapsulation.hpp"
#include "wire/fragment.hpp"

namespace weir::stages {

class RxDecapsulation {
public:
    /// By the index of the port.
    explicit RxDecapsulation(const std::vector<wire::Tunnels>& ports);

    /// Some port is asked to.
    [[nodiscard]] bool any() const noexcept { return any_; }
    /// take_off() needs the packet in one buffer.
    [[nodiscard]] bool lies_apart(const port::Packet& packet) const noexcept {
        return packet.scattered() && packet.captured_bytes < wire::decapsulation_reads_max &&
               !ports_[packet.port].empty();
    }
    /// The packet is the one inside then, or as it was. Anything but `ok`: it ends in this counter.
    [[nodiscard]] wire::Verdict take_off(port::Packet& packet) noexcept;
    /// A datagram that came in pieces should have been taken off: too late.
    [[nodiscard]] bool missed(std::uint8_t port, const wire::Datagram& datagram) const noexcept {
        return any_ && ports_[port].has(wire::Tunnel::vxlan) &&
               (datagram.dport == wire::vxlan_port || datagram.dport == wire::vxlan_port_of_linux);
    }

    /// Layers that were taken off packets of the port; for any thread.
    [[nodiscard]] std::uint64_t taken(std::size_t port, wire::Tunnel by) const noexcept {
        return any_ ? taken_[port].get(by) : 0;
    }

private:
    std::vector<wire::Tunnels> ports_;
    bool any_ = false;
    std::unique_ptr<wire::TunnelTally[]> taken_;
};

}  // namespace weir::stages
