// What a RoCE responder sent.
#pragma once

#include "core/counters.hpp"

namespace weir::roce {

/// What a RoCE responder sent.
enum class AnswerCounter : std::uint8_t {
    ack,
    rnr_nak,
    nak_sequence,
    nak_invalid_request,
    nak_remote_access,
    nak_remote_operation,
    congestion,
    not_sent,
    count_
};

extern const std::array<core::CounterInfo, core::count_of<AnswerCounter>> answer_counters;

using AnswerTally = core::Tally<AnswerCounter>;

}  // namespace weir::roce
