// Why a packet of a capture was not sent. Each that was read was sent, or is counted under one of these.
#pragma once

#include <array>
#include <string_view>

#include "core/counters.hpp"

namespace weir::resend {

enum class NotSent : std::uint8_t {
    truncated,
    too_long,
    too_short,
    arp,
    icmp,
    other_ip,
    not_ip,
    ip_fragment,
    malformed,
    unsent,
    count_
};

struct NotSentReason {
    std::string_view name;  ///< as in the report
    std::string_view why;
};
/// In the order of the enumeration.
extern const std::array<NotSentReason, core::count_of<NotSent>> not_sent_reasons;

using NotSentTally = core::Tally<NotSent>;

}  // namespace weir::resend
