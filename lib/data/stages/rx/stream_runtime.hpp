// What a stream is to the rx lcores: how its packets are read, and which sources they are of.
#pragma once

#include <cstdint>
#include <optional>

#include "core/number_index.hpp"
#include "wire/format.hpp"

namespace weir::stages {

/// Shared by all rx lcores, constant during a run.
struct StreamRuntime {
    bool roce = false;
    bool check_icrc = true;
    const wire::FormatEntry* format = nullptr;
    wire::FormatContext context;
    bool lane_by_port = false;  ///< the decoder wants to know: ports of first and second interfaces take turns
    bool source_in_header = false;
    bool any_sender = false;  ///< packets of one message may come from several hosts
    std::uint32_t first_source = 0;
    std::uint32_t source_count = 0;
    core::NumberIndex source_ids;      ///< source_in_header: the header's ids, in source order
    bool numbered_by_arrival = false;  ///< udp: datagrams are whole messages, numbered as they come
    /// A declared format read the other way round, to say so where that would fit.
    std::optional<wire::FormatContext> other_byte_order;

    /// Every packet carries its source's sequence number, which tells what is missing. (RoCE has its own, and its
    /// messages may carry a detector header without being a packet of the detector's.)
    [[nodiscard]] bool sequenced() const noexcept { return !roce && context.sequence_bits > 0; }
    /// lane_by_port: the interface that packets of this source come from.
    [[nodiscard]] std::uint8_t lane_of(std::uint32_t source) const noexcept {
        return static_cast<std::uint8_t>((source - first_source) & 1U);
    }
};

}  // namespace weir::stages
