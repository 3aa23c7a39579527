// What is configured of the messages of one source, and where their numbers come from.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/format.hpp"

namespace weir::roce {

/// Where the number of a message comes from.
enum class NumberBy : std::uint8_t {
    immediate,  ///< the 32 bits in the LAST packet; a message without is unbound
    format,     ///< the detector header at the start of the message, which is stripped
    count,      ///< messages in PSN order from 0 (see Listener)
    arrival,    ///< messages in closing order from 0
};

struct MessageSource {
    std::uint32_t source = 0;  ///< run-wide source id
    NumberBy number_by = NumberBy::immediate;
    std::uint32_t message_bytes = 0;  ///< of every message, if configured; a message of another size is a conflict
    std::uint32_t max_message_bytes = wire::message_bytes_max_default;
    /// NumberBy::count: packets come in the order in which they were sent, as a Responder lets them through, so the
    /// first message that starts is message 0.
    bool in_order = false;
    std::optional<std::uint32_t> first_psn{};   ///< NumberBy::count: of message 0, where it is known (24 bits)
    const wire::FormatEntry* format = nullptr;  ///< NumberBy::format
    wire::FormatContext context{};
};

}  // namespace weir::roce
