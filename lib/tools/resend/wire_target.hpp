// Where packets of a capture go: a DPDK device or a kernel socket. One virtual call per burst and one per packet; what
// is called while sending does not allocate and does not wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "simulate/frame_target.hpp"

namespace weir::resend {

class WireTarget {
public:
    /// Packets that it holds at once.
    static constexpr std::uint32_t slots = 32;
    struct Taken {
        std::uint32_t packets = 0;  ///< that have left their slots
        bool too_long = false;      ///< one, which cannot be sent because of its length
        bool failed = false;        ///< it cannot send any more: failure()
    };

    virtual ~WireTarget() = default;
    /// Copies a packet into a slot. `port` is the UDP destination where the packet is only a payload.
    virtual void load(std::uint32_t slot, std::span<const std::byte> packet, std::uint16_t port) noexcept = 0;
    /// Sends as many of `count` packets in the slots from `first` on as there is room for.
    virtual Taken send(std::uint32_t first, std::uint32_t count) noexcept = 0;

    /// The other side is there, as far as can be known.
    [[nodiscard]] virtual bool is_ready() noexcept { return true; }
    /// After the first packet: waits where the packets after it would be lost, until they would not. Throws
    /// core::RunError where that is in vain.
    virtual void wait_until_reachable() {}
    /// It may take packets yet, though it has taken none for `stalled`; else it is given up.
    [[nodiscard]] virtual bool may_take_more(std::chrono::nanoseconds stalled) noexcept {
        return stalled <= std::chrono::seconds(10);
    }
    /// After the last one: waits for what is on its way.
    virtual void finish() {}
    /// Packets that were taken and then lost, as far as it knows.
    [[nodiscard]] virtual std::uint64_t lost() noexcept { return 0; }
    [[nodiscard]] virtual simulate::NetworkErrors network_errors() const { return {}; }
    /// Why it cannot send, in words.
    [[nodiscard]] virtual std::string failure() const { return {}; }
};

/// The longest IP packet that frames for `device` may have where nobody says it: that of its kernel interface, if it
/// has one, else 9000.
[[nodiscard]] std::uint32_t usual_mtu(const std::string& device);

/// A DPDK device: a vdev with its arguments, or a PCI address. Starts EAL in this process, which can happen only once.
/// Throws core::UsageError or core::RunError.
[[nodiscard]] std::unique_ptr<WireTarget> open_device_target(const std::string& device, std::uint32_t mtu);

/// A kernel socket to `host`, a name or an address of IPv4 or IPv6. Throws core::RunError.
[[nodiscard]] std::unique_ptr<WireTarget> open_socket_target(const std::string& host);

}  // namespace weir::resend
