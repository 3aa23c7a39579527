// Most packets of a long message are like the one before: the next PSN, in the middle of the same message. A stretch
// knows what the next one has to look like, so that such a packet is compared with that and goes into its message, and
// nothing else is looked at. Their PSNs are noted later, all together (Listener::note_psns).
#pragma once

#include <cstdint>

#include "assemble/message.hpp"
#include "core/units.hpp"
#include "roce/listener/run.hpp"
#include "roce/psn.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

/// Of one source. In a cache line.
struct alignas(64) Stretch {
    /// Packets, before their PSNs are noted: so far behind may be what others see of them.
    static constexpr std::uint32_t longest = 64;
    static constexpr std::uint32_t nobody = psn_mask + 1;  ///< no packet has this PSN

    std::uint64_t address_pair = 0;
    std::uint32_t source_qp = 0;
    std::uint32_t psn = nobody;  ///< of the next packet
    std::uint32_t bytes = 0;     ///< of each
    std::uint32_t offset = 0;    ///< of the next packet in the message
    std::uint32_t connection = 0;
    std::uint32_t run = no_run;
    assemble::Message* message = nullptr;
    core::TimeNs last_ns = 0;
    wire::RoceTransport transport = wire::RoceTransport::other;
    bool is_write = false;
    std::uint8_t taken = 0;  ///< whose PSNs have yet to be noted
    std::uint8_t left = 0;   ///< that may come

    [[nodiscard]] bool going_on() const noexcept { return psn != nobody; }
    [[nodiscard]] bool goes_on_with(const wire::RocePacket& packet) const noexcept {
        const auto kind = [](wire::RoceTransport of, bool write, wire::RocePlace place) {
            return static_cast<std::uint32_t>(of) << 16U | std::uint32_t{write} << 8U |
                   static_cast<std::uint32_t>(place);
        };
        // Compared at once.
        const std::uint64_t odd = (packet.address_pair ^ address_pair) | (packet.psn ^ psn) | (packet.bytes ^ bytes) |
                                  (packet.source_qp ^ source_qp) |
                                  (kind(packet.transport, packet.is_write, packet.place) ^
                                   kind(transport, is_write, wire::RocePlace::middle));
        return odd == 0;
    }
    void step(core::TimeNs now) noexcept {
        last_ns = now;
        offset += bytes;
        ++taken;
        psn = --left != 0 ? (psn + 1) & psn_mask : nobody;
    }
};

}  // namespace weir::roce
