#include "assemble/probation.hpp"

namespace weir::assemble {

bool Probation::whole(Message& message) noexcept {
    message.whole_before = true;
    // Something new came while it was collected, as between the copies of a stream that is mirrored twice.
    if (message.novelty != novelty_) return false;
    const std::uint16_t sender = message.origin.sender;
    if (evidence_.messages == 0 || evidence_.run.sender != sender || !is_after(message.number, evidence_.run.last))
        evidence_ = {0, 0, {message.number, message.number, sender}};
    ++evidence_.messages;
    evidence_.packets += message.packets;
    evidence_.run.last = message.number;
    return evidence_.messages >= messages_of(sender) && evidence_.packets >= packets_of(sender);
}

}  // namespace weir::assemble
