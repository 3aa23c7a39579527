#include "roce/responder/answer_counter.hpp"

namespace weir::roce {

namespace {
constexpr core::CounterFamily sent{"roce_answers", "answer", "What was sent as a RoCE responder."};
}  // namespace

constinit const std::array<core::CounterInfo, core::count_of<AnswerCounter>> answer_counters =
    core::make_counter_table<AnswerCounter>({
        {AnswerCounter::ack, "ack",
         "Acknowledgements. About as many as messages where the sender asks for one at the end of each.",
         core::Fate::none, &sent},
        {AnswerCounter::rnr_nak, "rnr_nak",
         "Senders told to wait because event memory was short. See `dropped.roce.not_ready`.", core::Fate::none, &sent},
        {AnswerCounter::nak_sequence, "nak_sequence",
         "Senders told, once per gap, which packet is missing. About as many as losses on the way to this box.",
         core::Fate::none, &sent},
        {AnswerCounter::nak_invalid_request, "nak_invalid_request",
         "Requests refused for good because they break the rules of the transport. See `dropped.roce.invalid_request`.",
         core::Fate::none, &sent},
        {AnswerCounter::nak_remote_access, "nak_remote_access",
         "WRITEs refused for good because they touch what is not declared. See `dropped.roce.access`.",
         core::Fate::none, &sent},
        {AnswerCounter::nak_remote_operation, "nak_remote_operation",
         "Messages refused for good because no event can be made of them. See `dropped.roce.operation`.",
         core::Fate::none, &sent},
        {AnswerCounter::congestion, "congestion",
         "Congestion notifications: a switch marked packets on the way, and their sender was asked to slow down. "
         "Look for the congested port, or set the sender's rate.",
         core::Fate::none, &sent},
        {AnswerCounter::not_sent, "not_sent",
         "Of the answers above, those that could not be handed to the device. Their senders time out and repeat, "
         "so nothing is lost but time. The transmit queue is full or has no buffers: "
         "the link is slower than its answers, or paused."},
    });

}  // namespace weir::roce
