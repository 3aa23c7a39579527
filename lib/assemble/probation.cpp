#include "assemble/probation.hpp"

namespace weir::assemble {

bool Probation::whole(Message& message) noexcept {
    message.whole_before = true;
    // Something new came while it was collected, as between the copies of a stream that is mirrored twice.
    if (message.novelty != novelty_) return false;
    if (evidence_.messages == 0 || !is_after(message.number, evidence_.run.last))
        evidence_ = {0, 0, {message.number, message.number}};
    ++evidence_.messages;
    evidence_.packets += message.packets;
    evidence_.run.last = message.number;
    return evidence_.messages >= restart_messages && evidence_.packets >= restart_packets;
}

}  // namespace weir::assemble
