// Which of the streams that were found a single packet is of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"
#include "wire/format.hpp"

namespace weir::probe {

struct StreamMatch {
    std::string name;
    const wire::FormatEntry* format = nullptr;
    wire::FormatOptions options;
    std::uint8_t lane = 0;
};

/// By its flow; a packet of a flow that no format fits is compared with the stream that has its UDP port. Nothing if
/// there is none either.
[[nodiscard]] std::optional<StreamMatch> stream_of_packet(const wire::Datagram& datagram, const PacketSample& sample,
                                                          const Findings& findings);

}  // namespace weir::probe
