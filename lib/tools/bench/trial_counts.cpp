#include "bench/trial_counts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::bench {
namespace {

std::uint64_t more(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

/// Each loss goes to the layer that counted it; what is left over went where both sides have counters, or nobody knows.
Losses losses(const SenderCounts& sender, const ReceiverCounts& receiver) {
    Losses lost;
    std::uint64_t left = more(sender.handed_over, receiver.received);
    const auto give = [&left](std::uint64_t& layer, std::uint64_t packets) {
        const std::uint64_t part = std::min(left, packets);
        layer += part;
        left -= part;
    };
    give(lost.application, more(receiver.taken, receiver.received + receiver.duplicates));
    give(lost.kernel, receiver.kernel_dropped.value_or(0));
    give(lost.device, receiver.device_dropped.value_or(0));
    if (receiver.arrived) give(lost.wire, more(sender.on_wire.value_or(sender.handed_over), *receiver.arrived));
    lost.unknown = left;
    if (receiver.assembled) lost.application += more(receiver.received, *receiver.assembled);
    return lost;
}

std::string problem(const SenderCounts& sender, const ReceiverCounts& receiver, const Rules& rules) {
    if (!sender.stopped.empty()) return sender.stopped;
    const std::uint64_t unsent = more(sender.intended, sender.handed_over);
    if (static_cast<double>(unsent) > rules.unsent_ratio * static_cast<double>(sender.intended)) {
        return fmt::format("the sender did not get {} of {} packets out in time", unsent, sender.intended);
    }
    if (sender.on_wire && *sender.on_wire < sender.handed_over)
        return fmt::format("the sender's device sent {} of {} packets", *sender.on_wire, sender.handed_over);
    if (sender.took_s > sender.planned_s * (1 + rules.stretch_ratio) + rules.stretch_s)
        return fmt::format("sending took {:.3f} s, not {:.3f}: the load was lower than it should be", sender.took_s,
                           sender.planned_s);
    if (sender.lag_max_s > rules.lag_s)
        return fmt::format("the sender was {:.0f} ms behind its schedule, and then sent faster than it should",
                           sender.lag_max_s * 1e3);
    if (!receiver.settled) return "packets still came when the receiver's counters were read";
    if (receiver.received > sender.handed_over)
        return fmt::format("{} packets were received, more than the {} that were sent", receiver.received,
                           sender.handed_over);
    if (sender.handed_over == 0) return "no packet was sent";
    return {};
}

}  // namespace

Judgement judge(const SenderCounts& sender, const ReceiverCounts& receiver, const Rules& rules) {
    Judgement judgement{.why = problem(sender, receiver, rules), .loss_ratio = 0, .lost = losses(sender, receiver)};
    if (!judgement.valid()) return judgement;
    const std::uint64_t whole = receiver.assembled.value_or(receiver.received);
    judgement.loss_ratio =
        static_cast<double>(more(sender.handed_over, whole)) / static_cast<double>(sender.handed_over);
    return judgement;
}

}  // namespace weir::bench
