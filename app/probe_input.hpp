// What `weir probe` looks at: a capture, or what comes to a port while it listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/packet_sample.hpp"

namespace weir::app {

/// A frame that was asked for by its place.
struct KeptFrame {
    std::uint64_t number = 0;  ///< from 1 on; 0: none is wanted
    bool found = false;
    std::vector<std::byte> bytes{};
    std::uint32_t wire_bytes = 0;
};

struct ProbeInput {
    bool sample_only = false;  ///< there was more
    std::string cut_off{};     ///< why the capture could not be read to its end
    std::uint64_t records = 0;
};

/// The DPDK device that `text` names: a PCI address, a virtual device, or an interface of the kernel; empty if it is
/// none of these.
[[nodiscard]] std::string device_of(const std::string& text);

/// Throws core::RunError if it is no capture.
[[nodiscard]] ProbeInput read_capture(const std::string& file, probe::PacketSample& sample, KeptFrame& keep);

struct ListenFor {
    double seconds = 5;
    std::uint64_t packets = 0;  ///< 0: as many as there are
};
/// Starts DPDK. Throws core::RunError with the driver's reason.
[[nodiscard]] ProbeInput listen(const std::string& device, const ListenFor& limits, probe::PacketSample& sample,
                                KeptFrame& keep);

}  // namespace weir::app
