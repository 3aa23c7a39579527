// The configuration of one rx lcore's messages; the parts of MessageTable read what concerns them.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/copy_store.hpp"
#include "assemble/event_room.hpp"
#include "core/units.hpp"

namespace weir::assemble {

/// What a MessageTable is made for.
struct MessageConfig {
    std::uint16_t owner = 0;           ///< index of this rx lcore, stamped into its messages
    std::uint32_t sources = 1;         ///< run-wide number of sources; source ids are below it
    std::uint32_t messages_max = 64;   ///< messages at once: open, unbound, on probation and not yet recycled
    std::uint32_t buffers_max = 4096;  ///< references (so received buffers) held at once
    CopyConfig copies{};
    std::uint32_t range_blocks = 16;  ///< messages at once with more separate ranges than fit inline
    std::uint32_t horizon = 1024;     ///< closed event numbers remembered, per source
    std::uint32_t message_bytes_max = 16U << 20;
    core::TimeNs timeout_ns = 500 * core::ns_per_ms;
    std::vector<std::uint8_t> number_bits{};  ///< per source: width of the event number on the wire, 1..64
    std::vector<std::uint8_t> in_sequence{};  ///< per source: see Fragment::in_sequence; empty: none of them
    /// Messages on probation, per source; the pool has room for so many beside all others.
    std::uint32_t probation_max = 64;
    /// The input waits until there is room, so nothing is given up for want of it that may get some yet.
    bool waits = false;
    bool follows_numbers = false;     ///< a looped capture: keeps numbers() until begin_pass
    std::uint32_t shards = 1;         ///< of the builder
    EventRoom* event_room = nullptr;  ///< null: nobody claims places for events
    std::vector<std::uint8_t> own{};  ///< per source: its packets come here; empty: those of all do
    /// No event number comes twice, and none is another one's: nothing is remembered of numbers.
    bool numbers_once = false;
    bool keeps = false;  ///< append_kept is used: messages without buffers or cells
    bool touch = false;  ///< make the memory resident at once, rather than when it is used
};

}  // namespace weir::assemble
