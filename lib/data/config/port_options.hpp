// What an operator may ask of a port beyond its device: the keys of [[port]] and of profiles that go to the driver as
// they are. One struct for the configuration and for the port itself.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::config {

/// Pause frames (IEEE 802.3x), in the direction named: `rx` obeys those that come, `tx` sends them.
enum class FlowControl : std::uint8_t { leave, off, rx, tx, full };

/// Where arrival times come from.
enum class Timestamps : std::uint8_t {
    automatic,  ///< the device's where that costs nothing, otherwise weir's
    hardware,   ///< the device's, or the run does not start
    software,   ///< the time of the poll that took the packet
};

/// What becomes of packets whose IPv4 or UDP checksum the device says is wrong.
enum class Checksums : std::uint8_t {
    automatic,  ///< the device checks where it can; what it calls bad is malformed
    ignore,     ///< it is not asked: for senders whose UDP checksums are known to be wrong
};

struct PortOptions {
    bool promiscuous = true;             ///< streams are often addressed to a group, or to a MAC told by hand
    std::uint16_t tx_descriptors = 256;  ///< for answers and acknowledgements
    std::uint32_t link_wait_s = 0;       ///< wait so long for the link before the run is said to run
    FlowControl flow_control = FlowControl::leave;
    std::vector<std::uint32_t> pfc;      ///< priorities 0..7 with flow control of their own (IEEE 802.1Qbb)
    bool flow_control_required = false;  ///< what the driver refuses ends the run, instead of being remarked
    Timestamps timestamps = Timestamps::automatic;
    Checksums checksums = Checksums::automatic;

    bool operator==(const PortOptions&) const = default;
};

}  // namespace weir::config
